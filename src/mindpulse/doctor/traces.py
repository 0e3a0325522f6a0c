"""What each start of a training has left on each rank, read once for all checks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mindpulse.errors import MindPulseError
from mindpulse.store.check import FileReport, check_files
from mindpulse.store.folder import attempts_of, ranks_of
from mindpulse.store.folder_run import open_folder
from mindpulse.store.holding import held_elsewhere
from mindpulse.store.notes import END_NOTE, NOTES_NAME, START_NOTE, Note
from mindpulse.store.reader import NotesTail

# Series that the host writes without any probe.
HOST = ("step_time_s", "data_wait_s", "samples_per_s", "tokens_per_s", "train_loss", "overflow")
HOST_FAMILIES = ("memory_", "host_")


@dataclass(frozen=True, slots=True)
class Trace:
    """One attempt of one rank.

    Attributes:
        folder: its files.
        reports: of its `.ms` files.
        first_step, last_step: of its rows; None without any.
        first_time, last_time: when it wrote, seconds since the epoch, by its notes and rows; NaN
            where nothing tells.
        held: another process writes it now; None where this file system cannot tell.
    """

    attempt: int
    rank: int
    folder: Path
    notes: Sequence[Note] = ()
    reports: Sequence[FileReport] = ()
    first_step: int | None = None
    last_step: int | None = None
    first_time: float = math.nan
    last_time: float = math.nan
    held: bool | None = None
    tags: Mapping[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows in all its series."""
        return sum(report.rows for report in self.reports)

    @property
    def name(self) -> str:
        """As people say it: "attempt 1, rank 0"."""
        return f"attempt {self.attempt}, rank {self.rank}"

    @property
    def ended(self) -> bool:
        """The recorder was closed."""
        return any(note.kind == END_NOTE for note in self.notes)

    @property
    def begun(self) -> bool:
        """The monitor was ready for the first step."""
        return any(note.kind == START_NOTE for note in self.notes)

    @property
    def first_wanted(self) -> int:
        """The step at which this attempt began, as its training says; 1 where it does not."""
        return next((n.step for n in self.notes if n.kind == START_NOTE and n.step), 1)

    def told(self, kind: str) -> list[Note]:
        """Its notes of a kind."""
        return [note for note in self.notes if note.kind == kind]

    def said(self, kind: str) -> Mapping[str, Any]:
        """What the last note of a kind says; nothing without one."""
        found = self.told(kind)
        return found[-1].data if found else {}


def traces(run_dir: Path, reports: Sequence[FileReport] | None = None) -> list[Trace]:
    """All attempts of all ranks, in their order.

    Args:
        reports: of the run's files; None to check them quickly here.

    Raises:
        StoreError: the folder cannot be read.
    """
    known = check_files(run_dir, quick=True) if reports is None else reports
    return [
        _trace(run_dir, attempt, rank, folder, known)
        for attempt, attempt_dir in attempts_of(run_dir).items()
        for rank, folder in ranks_of(attempt_dir).items()
    ]


def last_attempt(found: Sequence[Trace]) -> list[Trace]:
    """The traces of the latest attempt."""
    latest = max((trace.attempt for trace in found), default=0)
    return [trace for trace in found if trace.attempt == latest]


def _trace(
    run_dir: Path, attempt: int, rank: int, folder: Path, reports: Iterable[FileReport]
) -> Trace:
    notes = NotesTail(folder / NOTES_NAME, rank, attempt).poll()
    own = [report for report in reports if report.path.parent == folder and not report.foreign]
    ends = _ends(run_dir, {report.tag for report in own if report.rows}, rank, attempt)
    steps = [step for first, last, *_ in ends.values() for step in (first, last)]
    times = [time for *_, first, last in ends.values() for time in (first, last)]
    times += [note.wall_time for note in notes]
    times = [time for time in times if math.isfinite(time)]
    return Trace(
        attempt, rank, folder, notes, own,
        min(steps, default=None), max(steps, default=None),
        min(times, default=math.nan), max(times, default=math.nan),
        held_elsewhere(folder), {tag: last for tag, (_, last, *_) in ends.items()},
    )  # fmt: skip


def _ends(
    run_dir: Path, tags: Iterable[str], rank: int, attempt: int
) -> dict[str, tuple[int, int, float, float]]:
    """First and last step, first and last wall time of each series."""
    run = open_folder(run_dir)
    found = {}
    for tag in tags:
        try:
            first = next(iter(run.blocks(tag, rank, attempt)))
            last = run.last(tag, 1, rank, attempt)
        except (MindPulseError, StopIteration):
            continue  # told by the check of the files
        if len(first) and len(last):
            found[tag] = (
                int(first.steps[0]), int(last.steps[-1]),
                float(first.wall_times[0]), float(last.wall_times[-1]),
            )  # fmt: skip
    return found


def by_the_host(tag: str) -> bool:
    """Whether a series comes without a probe."""
    return tag in HOST or tag.startswith(HOST_FAMILIES)
