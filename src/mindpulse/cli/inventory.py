"""Which series a run holds: from which step to which, and what came last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mindpulse.cli.output import as_scalar
from mindpulse.report.collect import rank_of
from mindpulse.report.scales import format_number
from mindpulse.series import Series, SeriesSpec
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


def holdings(run: Run, reports: Iterable[FileReport]) -> list[Holding]:
    """All series by tag and rank; a tag that only some ranks have appears for those.

    Args:
        reports: what `run.files()` returned, so that the files are checked only once.
    """
    keys = {(report.tag, rank_of(report.path)) for report in reports if report.rows}
    return [_holding(run.series(tag, rank=rank), rank) for tag, rank in sorted(keys)]


def _holding(series: Series, rank: int) -> Holding:
    steps = series.steps
    last = tuple(as_scalar(value) for value in series.rows.values[-1]) if len(series) else ()
    first_step, last_step = (int(steps.min()), int(steps.max())) if len(series) else (0, 0)
    return Holding(series.spec, rank, len(series), first_step, last_step, last)
