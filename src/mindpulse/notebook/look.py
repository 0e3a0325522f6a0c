"""What a live view shows of a run: read again every few seconds, so nothing dear is read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mindpulse import health
from mindpulse.errors import UsageError
from mindpulse.health import Judgement
from mindpulse.interop import open_run
from mindpulse.recorder import Recorder, living
from mindpulse.report import history
from mindpulse.report.data import FileSummary, ReportData, drawn_tags
from mindpulse.report.scalar import Scalar, read_scalar
from mindpulse.rules.rule import Rule
from mindpulse.series import SeriesSpec
from mindpulse.store.notes import END_NOTE
from mindpulse.store.run import Run

CURVES = 6
POINTS = 2000
# After a judgement that took 0.5 s there is none for 5 s: the training may need the processor.
PAUSE_TO_WORK = 10.0
FLUSH_TIMEOUT_S = 2.0
# The files are not counted here: that would read every byte of them.
UNCOUNTED = FileSummary(0, 0, 0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Glance:
    """A run at one moment.

    Attributes:
        data: as for a report, without heat maps, attention maps and counts of files.
        seen_at: the moment, seconds since the epoch.
        ended: every rank has said that its training is over.
    """

    data: ReportData
    seen_at: float
    ended: bool

    @property
    def age_s(self) -> float | None:
        """Seconds since the last row; None where no row has a time."""
        times = self.data.wall_times
        return None if times is None else max(0.0, self.seen_at - times[1])


class Eye:
    """Looks at a run again and again.

    Args:
        path: the run, ours or what another tool wrote.
        rules: judge it; as often as there is time for, see PAUSE_TO_WORK.
        clock: the time in seconds since the epoch.
        stopwatch: seconds from any beginning, for what a judgement costs.

    Example:
        >>> Eye(run, []).look().data.series["train_loss"].last
        2.5
    """

    def __init__(
        self,
        path: Path | str,
        rules: Sequence[Rule],
        *,
        clock: Callable[[], float] = time.time,
        stopwatch: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = Path(path)
        self._rules = rules
        self._clock, self._stopwatch = clock, stopwatch
        self._judged: Judgement | None = None
        self._judge_from = 0.0

    def look(self) -> Glance:
        """The run as it is now.

        Raises:
            UsageError: there is no run.
            StoreError: it cannot be read.
        """
        flush_own(self.path)
        run = open_run(self.path)
        judged = self._judgement(run)
        rank = run.ranks[0] if run.ranks else 0
        data = ReportData(
            run_id=run.id,
            path=str(run.path),
            rank=rank,
            ranks=tuple(run.ranks),
            attempts=tuple(run.attempts),
            tags=run.tags,
            files=UNCOUNTED,
            series=_scalars(run, rank, run.specs()),
            health=health.score_of(run, judged),
            alerts=history.alerts(run, self._rules, judged.events),
        )
        return Glance(data, self._clock(), _has_ended(run))

    def _judgement(self, run: Run) -> Judgement:
        began = self._stopwatch()
        if self._judged is None or began >= self._judge_from:
            self._judged = health.judge_run(run, self._rules)
            ended = self._stopwatch()
            self._judge_from = ended + PAUSE_TO_WORK * (ended - began)
        return self._judged


def run_of(recorder: Recorder) -> Path:
    """The folder of the run that a recorder writes."""
    return recorder.directory.parent.parent


def flush_own(path: Path) -> None:
    """Rows that this very process holds back are written first."""
    with suppress(OSError):
        for recorder in living():
            if os.path.samefile(run_of(recorder), path):
                recorder.flush(FLUSH_TIMEOUT_S)


def _scalars(run: Run, rank: int, specs: Mapping[str, SeriesSpec]) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    for tag in drawn_tags([tag for tag, spec in specs.items() if not spec.columns]):
        with suppress(UsageError):  # a tag that only other ranks have
            scalar = read_scalar(run, tag, rank, POINTS)
            if scalar is not None:
                found[tag] = scalar
        if len(found) == CURVES:
            break
    return found


def _has_ended(run: Run) -> bool:
    """By the notes of the last attempt, of every rank that took part in it."""
    notes = run.notes(run.attempts[-1]) if run.attempts else []
    ranks = {note.rank for note in notes}
    return bool(ranks) and ranks == {note.rank for note in notes if note.kind == END_NOTE}
