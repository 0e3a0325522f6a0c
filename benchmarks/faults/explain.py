"""One run told at length: its alerts, how the rules fared, and the series around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.common import table
from benchmarks.faults.index import RecordedRun
from benchmarks.faults.replay import judge_events, read_chunks
from benchmarks.faults.why import stories, terms, whole_window
from mindpulse.alerts import AlertEvent
from mindpulse.alerts.words import alert_text
from mindpulse.errors import UsageError
from mindpulse.rules.nearest import nearest
from mindpulse.rules.rule import Rule
from mindpulse.window import Window

KEY_SERIES = ("train_loss", "eval_loss", "grad_norm", "learning_rate", "loss_scale")
AROUND = (-20, -10, -5, -1, 0, 1, 2, 5, 10, 20, 50)
MOST_STEPS = 16


def explain(
    run: RecordedRun,
    folder: Path,
    rules: Sequence[Rule],
    only: str | None = None,
    at: Sequence[int] = (),
    tags: Sequence[str] = (),
) -> str:
    """The text of `--explain`.

    Args:
        only: the name of a rule whose terms are to be shown.
        at: steps to show; by default some around the label and where alerts began.
        tags: more series to show than the usual ones and those of the rules that rang.

    Raises:
        UsageError: there is no such rule, or no such recording.
    """
    chunks = read_chunks(folder / run.run)
    window = whole_window(chunks)
    events, unknown = judge_events(chunks, rules)
    first = min(int(track.rows.steps[0]) for track in window.tracks(window.ranks[0]).values())
    steps = tuple(at) or _interesting(run, events, first, window)
    parts = [
        f"{run}",
        *[alert_text(event) for event in events],
        "",
        f"rules from step {run.label_step or first} on:",
        *[f"  {story}" for story in stories(window, rules, run.label_step or first)],
        *[f"  {rule}: unknown at the end, {reason}" for rule, reason in unknown.items()],
        "",
        series_table(window, steps, [*_tags(events, rules, only), *tags]),
    ]
    if only:
        parts += ["", term_table(window, _named(rules, only), steps)]
    return "\n".join(parts)


def _interesting(
    run: RecordedRun, events: Iterable[AlertEvent], first: int, window: Window
) -> tuple[int, ...]:
    last = max(window.last_step(rank) for rank in window.ranks)
    begun = [event.step for event in events if event.state == "firing"][:4]
    label = run.label_step if run.label_step is not None else (begun[0] if begun else first + 20)
    chosen = sorted({*[label + offset for offset in AROUND], *begun, last})
    return tuple(step for step in chosen if first <= step <= last)[-MOST_STEPS:]


def _tags(events: Iterable[AlertEvent], rules: Sequence[Rule], only: str | None) -> list[str]:
    rung = {event.rule for event in events} | {only}
    read = [tag for rule in rules if rule.name in rung for tag in rule.expression.series]
    return list(dict.fromkeys([*KEY_SERIES, *read]))


def series_table(window: Window, steps: Sequence[int], tags: Iterable[str]) -> str:
    """The newest row at each step; of a series of many columns smallest and largest value."""
    rows = []
    for rank in window.ranks:
        for tag in tags:
            if tag in window.tracks(rank):
                cells = [_cell(window, rank, tag, step) for step in steps]
                rows.append((f"{tag}{f' rank {rank}' if rank else ''}", *cells))
    return table(("series", *map(str, steps)), rows)


def _cell(window: Window, rank: int, tag: str, step: int) -> str:
    found, values = window.view(step, rank).window(tag, 0, 1)
    if not len(found):
        return ""
    low, high = _ends(np.asarray(values[0], np.float64))
    text = f"{low:.4g}" if low == high or np.isnan(low) else f"{low:.3g}..{high:.3g}"
    return text if found[0] == step else f"({text})"


def _ends(values: np.ndarray) -> tuple[float, float]:
    """Smallest and largest, NaN if one is NaN."""
    return float(values.min()), float(values.max())


def term_table(window: Window, rule: Rule, steps: Sequence[int]) -> str:
    """What each term of a rule was at each step: smallest..largest over the columns."""
    rank = window.ranks[0]
    at = [{name: ends for name, *ends in terms(window, rule, step, rank)} for step in steps]
    names = list(dict.fromkeys(name for found in at for name in found))
    rows = []
    for name in names:
        ends = [found.get(name) for found in at]
        rows.append((name, *("" if e is None else _span(e) for e in ends)))
    said = [rule.expression.evaluate(window.view(step, rank)).state for step in steps]
    return table((rule.name, *map(str, steps)), [*rows, ("says", *said)])


def _span(ends: Sequence[float]) -> str:
    low, high = ends
    return f"{low:.4g}" if low == high or np.isnan(low) else f"{low:.3g}..{high:.3g}"


def _named(rules: Sequence[Rule], name: str) -> Rule:
    for rule in rules:
        if rule.name == name:
            return rule
    names = [rule.name for rule in rules]
    raise UsageError(f"no rule {name!r}{nearest(name, names)}; there are {', '.join(names)}")
