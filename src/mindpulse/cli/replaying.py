"""What a watcher would have told over a recorded run: its rules, and its ranks compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from mindpulse.alerts import AlertEvent
from mindpulse.errors import UsageError
from mindpulse.health import replay
from mindpulse.rules.rule import Rule
from mindpulse.store.reader import Chunk
from mindpulse.store.run import Run
from mindpulse.watcher.ranks import COMPARED, compared


def replay_run(run: Run, rules: Sequence[Rule]) -> list[AlertEvent]:
    """All alerts by attempt and step, those that are only kept included."""
    events = [*replay(run, rules), *(compared(list(_chunks(run))) if len(run.ranks) > 1 else ())]
    return sorted(events, key=lambda event: (event.attempt, event.step))


def _chunks(run: Run) -> Iterator[Chunk]:
    tags = sorted(COMPARED & set(run.specs()))
    for attempt, tag, rank in product(run.attempts, tags, run.ranks):
        try:
            series = run.series(tag, rank=rank, attempt=attempt)
        except UsageError:
            continue  # this attempt or rank did not write that series
        if len(series):
            yield Chunk(rank, attempt, series.spec, series.rows)
