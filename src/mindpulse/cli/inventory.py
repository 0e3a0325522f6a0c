"""Which series a run holds: from which step to which, and what came last.

Counts and steps come out of the index, so they cost the same however long the run is. Only where
the check of the files found damaged rows, of which an index may not know, are they counted again.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mindpulse.cli.output import as_scalar, busy, progress
from mindpulse.errors import UsageError
from mindpulse.report.scales import format_number
from mindpulse.series import MAX_STEP, MIN_STEP, SeriesSpec
from mindpulse.store.check import bytes_to_check, check_files
from mindpulse.store.folder_run import FolderRun
from mindpulse.store.overview import MIN_POINTS
from mindpulse.store.run import FileReport, Run

FEW_ROWS = 256


@dataclass(frozen=True, slots=True, eq=False)
class Holding:
    """One series of one rank, with at least one row; `last` holds the W values of its last."""

    spec: SeriesSpec
    rank: int
    rows: int
    first_step: int
    last_step: int
    last: tuple[float, ...]

    @property
    def tag(self) -> str:
        """Name of the series."""
        return self.spec.tag

    @property
    def shape(self) -> str:
        """How many columns, and what they are: "16 layer x head"."""
        return f"{self.spec.width} {' x '.join(self.spec.axes)}" if self.spec.columns else "1"

    @property
    def last_text(self) -> str:
        """The last value with its unit; of many columns the least and the largest."""
        numbers = [format_number(value) for value in self._extremes()]
        text = " … ".join(dict.fromkeys(numbers))
        bad = sum(not np.isfinite(value) for value in self.last)
        note = f" ({bad} not finite)" if bad and self.spec.columns else ""
        return f"{text} {self.spec.unit}".strip() + note

    def _extremes(self) -> list[float]:
        finite = [value for value in self.last if np.isfinite(value)]
        return [min(finite), max(finite)] if finite and self.spec.columns else list(self.last[:1])

    def as_object(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "tag": self.tag,
            "rank": self.rank,
            "unit": self.spec.unit,
            "columns": self.spec.width if self.spec.columns else 0,
            "axes": list(self.spec.axes),
            "rows": self.rows,
            "first_step": self.first_step,
            "last_step": self.last_step,
            "last": self.last[0] if not self.spec.columns else list(self.last),
        }


def file_reports(run: Run, quick: bool = False) -> list[FileReport]:
    """What each file holds and what is wrong with it, with a progress bar where that takes long.

    Args:
        quick: read the headers and ends of our files only, see `check_files`.
    """
    if not isinstance(run, FolderRun):
        with busy("reading"):
            return run.files()
    with progress("checking", lambda: bytes_to_check(run.path), "bytes") as tell:
        return check_files(run.path, quick, tell)


def holdings(run: Run, damaged: Set[str] = frozenset()) -> list[Holding]:
    """All series with rows by tag and rank; a tag that only some ranks have appears for those.

    Args:
        damaged: tags of files with damaged rows.
    """
    found: list[Holding] = []
    for tag in run.specs():
        for rank in run.ranks:
            with suppress(UsageError):  # not of this rank
                found += _holding(run, tag, rank, tag in damaged)
    return sorted(found, key=lambda holding: (holding.tag, holding.rank))


def _holding(run: Run, tag: str, rank: int, damaged: bool) -> list[Holding]:
    last = run.last(tag, FEW_ROWS, rank)
    if not len(last):
        return []
    if len(last) < FEW_ROWS:  # these are all
        rows, low, high = len(last), int(last.steps.min()), int(last.steps.max())
    else:
        rows, low, high = (_counted if damaged else _foreseen)(run, tag, rank)
    values = tuple(as_scalar(value) for value in last.rows.values[-1])
    return [Holding(last.spec, rank, rows, low, high, values)]


def _foreseen(run: Run, tag: str, rank: int) -> tuple[int, int, int]:
    """Rows, first and last step out of the index."""
    seen = run.overview(tag, MIN_POINTS, rank, columns=[0])
    return int(seen.counts.sum()), int(seen.low_steps.min()), int(seen.high_steps.max())


def _counted(run: Run, tag: str, rank: int) -> tuple[int, int, int]:
    """The same out of the rows."""
    rows, low, high = 0, MAX_STEP, MIN_STEP
    for piece in run.blocks(tag, rank):
        rows += len(piece)
        low, high = min(low, int(piece.steps.min())), max(high, int(piece.steps.max()))
    return rows, low, high


def without_rows(run_path: Path, reports: Iterable[FileReport]) -> list[str]:
    """Our files in which there is not one whole row: empty, cut within the header, or begun."""
    return [
        str(report.path.relative_to(run_path))
        for report in reports
        if not report.foreign and not report.rows and report.path != run_path
    ]


def repair_advice(run: Run, reports: Iterable[FileReport]) -> str:
    """What to do about damage in a run folder of ours, "" where there is nothing to do."""
    if not isinstance(run, FolderRun):
        return ""
    wrong = [report for report in reports if not (report.valid or report.foreign)]
    mendable = any(report.rows or report.damaged_rows for report in wrong)
    if not mendable and run.id:
        return ""
    place = shlex.quote(str(run.path))
    return f"mindpulse repair {place} rebuilds what can be rebuilt and keeps the old files"
