"""What other tools call a quantity, and what we call it, by the table in `alias_table`.

A name of theirs that the table does not hold stays as it is. Two names of theirs never become one
series: where both would, the one that stands first in the table gets our name, and the other
keeps its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from mindpulse.catalogue import MEASURES
from mindpulse.interop.alias_table import (
    ALIASES,
    DEEPSPEED,
    DLLOGGER,
    GALORE,
    HUGGING_FACE,
    KERAS,
    LIGHTNING,
    MEGATRON,
    MINDFORMERS,
    MSPROBE,
    TORCHTITAN,
    Alias,
)

__all__ = [
    "ALIASES",
    "DEEPSPEED",
    "DLLOGGER",
    "GALORE",
    "HUGGING_FACE",
    "KERAS",
    "LIGHTNING",
    "MEGATRON",
    "MINDFORMERS",
    "MSPROBE",
    "TORCHTITAN",
    "Alias",
    "our_name",
    "resolve",
]

_BY_TOOL = {(alias.tool, alias.theirs): (rank, alias) for rank, alias in enumerate(ALIASES)}


def _any_tool() -> dict[str, tuple[int, Alias]]:
    """The names that mean the same whoever wrote them; ours mean what they say."""
    found: dict[str, tuple[int, Alias]] = {}
    dropped: set[str] = set()
    for rank, alias in enumerate(ALIASES):
        if alias.theirs in MEASURES or alias.theirs in dropped or not _says_its_unit(alias):
            continue
        _, other = found.setdefault(alias.theirs, (rank, alias))
        if (other.ours, other.divide) != (alias.ours, alias.divide):
            dropped.add(alias.theirs)
            del found[alias.theirs]
    for tag, measure in MEASURES.items():
        # TensorBoard groups tags by "/": that is how ours look there.
        found.setdefault(tag.replace("_", "/", 1), (0, Alias("", "", tag, measure.unit)))
    return found


def _says_its_unit(alias: Alias) -> bool:
    """A "time" is in milliseconds only if MindFormers says it; a "time (ms)" always is."""
    return alias.divide == 1.0 or "(" in alias.theirs


_ANY_TOOL = _any_tool()


def our_name(theirs: str, tool: str = "") -> Alias:
    """The alias of a name, with its own name where the table has none.

    Args:
        theirs: the name that stands in the file.
        tool: who wrote it; "" where that is not known, then only names that mean the same with
            every tool are translated.

    Example:
        >>> our_name("lm loss", MEGATRON).ours, our_name("loss").ours, our_name("my metric").ours
        ('train_loss', 'train_loss', 'my metric')
        >>> our_name("elapsed time per iteration (ms)", MEGATRON).divide
        1000.0
    """
    return _ranked(theirs, tool)[1]


def resolve(names: Iterable[str], tool: str = "") -> tuple[dict[str, Alias], list[str]]:
    """The aliases of all names of one run, no two of which have the same tag.

    Returns:
        The alias by their name, in the order given; and a sentence for each name that would
        have taken a tag that another has.

    Example:
        >>> found, told = resolve(["lm-loss", "loss"], MINDFORMERS)
        >>> found["loss"].ours, found["lm-loss"].ours, len(told)
        ('train_loss', 'lm-loss', 1)
    """
    known = list(dict.fromkeys(names))
    ranked = {name: _ranked(name, tool) for name in known}
    holder: dict[str, str] = {}
    for name in sorted(known, key=lambda n: ranked[n][0]):
        holder.setdefault(ranked[name][1].ours, name)
    told: list[str] = []
    for name in known:
        alias = ranked[name][1]
        if holder[alias.ours] != name:
            ranked[name] = (0, _as_it_is(_free(name, holder)))
            holder[ranked[name][1].ours] = name
            told.append(f"{name!r} keeps its name: {holder[alias.ours]!r} is {alias.ours!r}")
    return {name: ranked[name][1] for name in known}, told


def _ranked(theirs: str, tool: str) -> tuple[int, Alias]:
    """The alias, and its right to a tag: the lowest comes first.

    What the tool itself calls so, then what is called as we call it, then what other tools do.
    """
    if (tool, theirs) in _BY_TOOL:
        return _BY_TOOL[tool, theirs]
    if theirs in MEASURES:
        return len(ALIASES), Alias(tool, theirs, theirs, MEASURES[theirs].unit)
    if theirs not in _ANY_TOOL:
        return 3 * len(ALIASES), _as_it_is(theirs)
    rank, alias = _ANY_TOOL[theirs]
    known = Alias(tool, theirs, alias.ours, alias.unit, alias.divide)
    return len(ALIASES) + 1 + rank, known


def _as_it_is(theirs: str) -> Alias:
    return Alias("", theirs, theirs)


def _free(name: str, holder: dict[str, str]) -> str:
    """The name itself, or with a mark behind it where another series is called so."""
    while name in holder:
        name += "'"
    return name
