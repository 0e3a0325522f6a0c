"""Which measures a user wants and how often: families, tags and levels brought to tag -> interval.

measures    "cheap", "default", "all", or names of families and tags
interval    steps between two measurements of the dear ones, or one number for each name
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from mindpulse.catalogue.measure import Measure
from mindpulse.errors import UsageError
from mindpulse.schedule import Every

LEVELS = ("cheap", "default", "all")
CHEAP_INTERVAL, DEAR_INTERVAL = 1, 10


def select(
    measures: str | Iterable[str],
    interval: int | Mapping[str, int] | None,
    known: Mapping[str, Measure],
) -> dict[str, int]:
    """Tag -> steps between two measurements, in the order of the catalogue.

    Args:
        measures: a level, or names of families and tags.
        interval: None for the defaults (1 for cheap measures, 10 for dear ones); a number for all
            dear ones; or a number for each family or tag named. A tag goes before its family.
        known: the catalogue, tag -> measure.

    Raises:
        UsageError: a name is unknown or taken by the watcher, or an interval is no whole number
            from 1 up.

    Example:
        >>> from mindpulse.catalogue import MEASURES
        >>> select(["attn_focus", "grad_norm"], {"attention": 5}, MEASURES)
        {'attn_focus': 5, 'grad_norm': 1}
    """
    wanted = _wanted(measures, known)
    dear = DEAR_INTERVAL if interval is None or isinstance(interval, Mapping) else interval
    Every(dear)
    found = {
        tag: CHEAP_INTERVAL if known[tag].cost == "cheap" else dear
        for tag in known
        if tag in wanted
    }
    named = interval if isinstance(interval, Mapping) else {}
    by_family_first = sorted(named, key=lambda name: name in known)
    for name in by_family_first:
        Every(named[name])
        for tag in tags_of(name, known):
            if tag in found:
                found[tag] = named[name]
    return found


def tags_of(name: Any, known: Mapping[str, Measure]) -> list[str]:
    """The tags that a name of a family or a tag stands for.

    Raises:
        UsageError: there is no such family or tag.
    """
    if name in known:
        return [name]
    found = [tag for tag, measure in known.items() if measure.family == name]
    if found:
        return found
    families = sorted({measure.family for measure in known.values()})
    near = difflib.get_close_matches(str(name), [*families, *known], n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise UsageError(
        f"measure {name!r} is not known; {hint or 'families are ' + ', '.join(families)}"
    )


def _wanted(measures: str | Iterable[str], known: Mapping[str, Measure]) -> set[str]:
    if isinstance(measures, str):
        if measures not in LEVELS:
            return _wanted([measures], known)
        levels = LEVELS[: LEVELS.index(measures) + 1]
        inside = {tag for tag, measure in known.items() if measure.place != "watcher"}
        return {tag for tag in inside if known[tag].level in levels}
    found = {tag: name for name in measures for tag in tags_of(name, known)}
    for tag, name in found.items():
        if known[tag].place == "watcher":
            raise UsageError(
                f"measure {name!r} is not taken in the training but by 'mindpulse watch', "
                "without being asked for; leave it out"
            )
    return set(found)
