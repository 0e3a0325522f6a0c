"""The small tables of `query --sql`: what series there are, notes, alerts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mindpulse.alerts.journal import event_fields, read_alerts
from mindpulse.errors import UsageError
from mindpulse.store.overview import MIN_POINTS
from mindpulse.store.run import Attempt, Run

NOTES = {"rank": "INTEGER", "attempt": "INTEGER", "kind": "VARCHAR", "step": "BIGINT"}
NOTES |= {"wall_time": "DOUBLE", "data": "VARCHAR"}
ALERTS = {"id": "VARCHAR", "rule": "VARCHAR", "state": "VARCHAR", "severity": "VARCHAR"}
ALERTS |= {"part": "VARCHAR", "step": "BIGINT", "since_step": "BIGINT", "wall_time": "DOUBLE"}
ALERTS |= {"rank": "INTEGER", "attempt": "INTEGER", "columns": "VARCHAR", "evidence": "VARCHAR"}
ALERTS |= {"origin": "VARCHAR", "grouped_under": "VARCHAR", "inhibited_by": "VARCHAR"}
ALERTS |= {"silenced": "VARCHAR"}
SERIES = {"tag": "VARCHAR", "plugin": "VARCHAR", "unit": "VARCHAR", "axes": "VARCHAR"}
SERIES |= {"dtype": "VARCHAR", "width": "INTEGER", "ranks": "INTEGER", "rows": "BIGINT"}
SERIES |= {"first_step": "BIGINT", "last_step": "BIGINT"}

Record = dict[str, Any]


def series(run: Run, ranks: Sequence[int], attempt: Attempt) -> Iterator[Record]:
    """What each series is, how many rows the ranks have of it, and of which steps."""
    for tag, spec in run.specs().items():
        yield {
            "tag": tag,
            "plugin": spec.plugin,
            "unit": spec.unit,
            "axes": " x ".join(spec.axes),
            "dtype": spec.dtype,
            "width": spec.width,
            **_span(run, tag, ranks, attempt),
        }


def _span(run: Run, tag: str, ranks: Sequence[int], attempt: Attempt) -> dict[str, int | None]:
    views = []
    for rank in ranks:
        try:
            views.append(run.overview(tag, MIN_POINTS, rank, attempt, columns=[0]))
        except UsageError:  # not every rank has every series
            continue
    firsts = [int(view.low_steps.min()) for view in views if len(view.counts)]
    lasts = [int(view.high_steps.max()) for view in views if len(view.counts)]
    return {
        "ranks": len(firsts),
        "rows": sum(int(view.counts.sum()) for view in views),
        "first_step": min(firsts, default=None),
        "last_step": max(lasts, default=None),
    }


def notes(run: Run, ranks: Sequence[int], attempt: Attempt) -> Iterator[Record]:
    """The notes of the ranks; `data` is JSON."""
    for note in run.notes(attempt if isinstance(attempt, int) else None):
        if note.rank in ranks:
            yield {key: getattr(note, key) for key in NOTES}


def alerts(run: Run, ranks: Sequence[int], attempt: Attempt) -> Iterator[Record]:
    """What a watcher said; `columns` and `evidence` are JSON."""
    for event in read_alerts(run.path) if run.path.is_dir() else []:
        if attempt in (None, "all", event.attempt):
            yield event_fields(event)


RECORDS: dict[
    str, tuple[dict[str, str], Callable[[Run, Sequence[int], Attempt], Iterator[Record]]]
] = {"series": (SERIES, series), "notes": (NOTES, notes), "alerts": (ALERTS, alerts)}


def as_text(value: object) -> str | None:
    """A field as text, so that None stays apart from NaN; lists and objects as JSON."""
    if value is None or isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) else json.dumps(value, ensure_ascii=False)
