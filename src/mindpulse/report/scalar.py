"""A scalar series as a report shows it: a few thousand points to draw, and figures of all its rows.

However long the run, it is read out of the index beside its files: the least, the largest and the
mean of stretches of rows, and where they are NaN or infinite. Only the first and the last value
come from the rows themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mindpulse.series import Rows, Series, SeriesSpec
from mindpulse.store.blocks import Blocks, merged
from mindpulse.store.run import Run

# Many more than the pixels of a picture, which is thinned once more by steps (`keep_extremes`): so
# the few rows of a stretch recorded at every hundredth step are still many enough.
DRAWN_POINTS = 20_000
FIGURE_POINTS = 2000
_LAST_ROWS = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A scalar series, in ascending order of steps.

    Attributes:
        spec: the series.
        blocks: N stretches of rows; each row is one where there are no more than a few thousand.
        shown: rows of the series that hold each stretch's extremes and its first NaN or infinity.
        start, end: the first and the last finite value as recorded, NaN where there is none.
        last: the value of the last row.
    """

    spec: SeriesSpec
    blocks: Blocks
    shown: Series
    start: float
    end: float
    last: float

    @property
    def rows(self) -> int:
        """How many rows the series has."""
        return int(self.blocks.counts.sum())

    @property
    def complete(self) -> bool:
        """Whether `shown` is every row."""
        return len(self.shown) == self.rows

    @property
    def not_finite(self) -> int:
        """How many rows are NaN or infinite."""
        return int(self.blocks.nonfinite.sum())

    @property
    def first_bad_step(self) -> int | None:
        """The first step that is NaN or infinite."""
        bad = self.blocks.nonfinite[:, 0] > 0
        return int(self.blocks.nonfinite_steps[bad, 0].min()) if bad.any() else None

    @property
    def first_step(self) -> int:
        """The least step."""
        return int(self.blocks.low_steps.min())

    @property
    def last_step(self) -> int:
        """The largest step."""
        return int(self.blocks.high_steps.max())

    @property
    def times(self) -> NDArray[np.float64]:
        """The finite wall times at both ends of the stretches."""
        ends = np.r_[self.blocks.first_times, self.blocks.last_times]
        known: NDArray[np.float64] = ends[np.isfinite(ends)]
        return known

    @property
    def low(self) -> tuple[int, float] | None:
        """Step and value of the least row; None where nothing is finite."""
        return self._extreme(self.blocks.minimum[:, 0], self.blocks.min_steps[:, 0], 1)

    @property
    def high(self) -> tuple[int, float] | None:
        """Step and value of the largest row; None where nothing is finite."""
        return self._extreme(self.blocks.maximum[:, 0], self.blocks.max_steps[:, 0], -1)

    @property
    def mean(self) -> float:
        """Of the finite values; NaN where there is none."""
        return float(self.parts(1).mean[0, 0])

    @property
    def finite_rows(self) -> NDArray[np.int64]:
        """(N,) finite values of each stretch."""
        found: NDArray[np.int64] = self.blocks.counts - self.blocks.nonfinite[:, 0]
        return found

    def figures(self) -> Scalar:
        """The same without the points of a curve."""
        shown = Series(self.spec, self.shown.rows[:0])
        return replace(self, blocks=self.parts(1), shown=shown)

    def parts(self, count: int) -> Blocks:
        """The series in at most `count` parts of about the same number of rows."""
        number = len(self.blocks)
        starts = np.unique(np.arange(count) * number // count)
        return merged(self.blocks, starts)

    def _extreme(
        self, values: NDArray[np.float64], steps: NDArray[np.int64], sign: int
    ) -> tuple[int, float] | None:
        if np.isnan(values).all():
            return None
        index = int(np.nanargmin(sign * values))
        return int(steps[index]), float(values[index])


def read_scalar(run: Run, tag: str, rank: int, points: int = DRAWN_POINTS) -> Scalar | None:
    """A scalar series of a rank; None if it has no row there, or is no scalar.

    Raises:
        UsageError: the rank has no such series.
    """
    seen = run.overview(tag, points, rank)
    rows = int(seen.counts.sum())
    if not rows or seen.spec.columns:
        return None
    curve = seen.curve().rows
    if len(curve) == rows:
        ends = _first_finite(curve), _last_finite(curve), float(curve.values[-1, 0])
    else:
        ends = _ends(run, tag, rank, known=rows > int(seen.nonfinite.sum()))
    shown = Series(seen.spec, curve[np.argsort(curve.steps, kind="stable")])
    blocks = seen[np.argsort(seen.first_steps, kind="stable")]
    return Scalar(seen.spec, blocks, shown, *ends)


def _ends(run: Run, tag: str, rank: int, known: bool) -> tuple[float, float, float]:
    """First and last finite value, and the last of all.

    Args:
        known: some value is finite.
    """
    last = float(run.last(tag, 1, rank).values[-1])
    if not known:
        return np.nan, np.nan, last
    pieces = (_first_finite(piece.rows) for piece in run.blocks(tag, rank))
    start = next((value for value in pieces if np.isfinite(value)), np.nan)
    if np.isfinite(last):
        return start, last, last
    end = _last_finite(run.last(tag, _LAST_ROWS, rank).rows)
    if np.isnan(end):  # it is far from the end: every row is looked at, some at a time
        pieces = (_last_finite(piece.rows) for piece in run.blocks(tag, rank))
        end = [np.nan, *(value for value in pieces if np.isfinite(value))][-1]
    return start, end, last


def _first_finite(rows: Rows) -> float:
    """NaN where there is none."""
    values = rows.values[np.isfinite(rows.values)]
    return float(values[0]) if len(values) else np.nan


def _last_finite(rows: Rows) -> float:
    return _first_finite(rows[::-1])
