"""Which series a run holds: from which step to which, and what came last."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mindpulse.cli.output import as_scalar
from mindpulse.report.collect import series_of
from mindpulse.report.scales import format_number
from mindpulse.series import Series, SeriesSpec
from mindpulse.store.folder_run import FolderRun
from mindpulse.store.run import FileReport, Run


@dataclass(frozen=True, slots=True, eq=False)
class Holding:
    """One series of one rank. `last` holds the W values of its last row."""

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
        if not self.rows:
            return "–"
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
            "first_step": self.first_step if self.rows else None,
            "last_step": self.last_step if self.rows else None,
            "last": self.last[0] if self.rows and not self.spec.columns else list(self.last),
        }


def holdings(run: Run) -> list[Holding]:
    """All series by tag and rank; a tag that only some ranks have appears for those."""
    tags = run.specs()
    found = [_holding(series, rank) for rank in run.ranks for series in series_of(run, rank, tags)]
    return sorted(found, key=lambda holding: (holding.tag, holding.rank))


def _holding(series: Series, rank: int) -> Holding:
    steps = series.steps
    last = tuple(as_scalar(value) for value in series.rows.values[-1]) if len(series) else ()
    first_step, last_step = (int(steps.min()), int(steps.max())) if len(series) else (0, 0)
    return Holding(series.spec, rank, len(series), first_step, last_step, last)


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
    damaged = any(not (report.valid or report.foreign) for report in reports)
    if not damaged and run.id:
        return ""
    place = shlex.quote(str(run.path))
    return f"mindpulse repair {place} rebuilds what can be rebuilt and keeps the old files"
