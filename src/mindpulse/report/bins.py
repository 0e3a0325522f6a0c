"""Rows of many columns on a grid of steps, a piece of the run at a time: what a heat map shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.report.data import Heat

MAX_COLUMNS = 400


@dataclass(frozen=True, slots=True)
class StepAxis:
    """Equal spans of steps, the columns of a heat map.

    Example:
        >>> StepAxis.of(np.array([1, 2, 100]))
        StepAxis(first=1, last=100, columns=3)
    """

    first: int
    last: int
    columns: int

    @classmethod
    def of(cls, steps: NDArray[np.int64]) -> StepAxis:
        """The axis of these steps, or of the ends of stretches: no more columns than steps."""
        known = np.unique(steps)
        return cls(int(known[0]), int(known[-1]), min(MAX_COLUMNS, len(known)))

    @property
    def steps_per_column(self) -> float:
        """How many steps a column stands for."""
        return (self.last - self.first + 1) / self.columns

    def places(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """(T,) the column of each step; what lies outside is put at the end."""
        offset = steps.astype(np.float64) - self.first  # as integers the difference may overflow
        column = (offset / self.steps_per_column).astype(np.int64)
        return np.clip(column, 0, self.columns - 1)


def bin_steps(
    tag: str,
    names: Sequence[str],
    axis: StepAxis,
    pieces: Iterable[tuple[NDArray[np.int64], NDArray[Any]]],
    keep: str = "max",
    bounds: tuple[float, float] | None = None,
) -> Heat:
    """Joins neighbouring steps into the columns of an axis, keeping the extreme of each.

    Args:
        tag: the series that is shown.
        names: of the W rows of the map.
        pieces: steps (T,) and values (T, W), in any order.
        keep: "max" or "min": which extreme of the joined steps a cell shows.
        bounds: ends of the colour scale, None to fit it to the values.

    Example:
        >>> steps, values = np.array([1, 2]), np.array([[1.0], [np.nan]])
        >>> bin_steps("g", ["a"], StepAxis.of(steps), [(steps, values)]).not_finite.tolist()
        [[False, True]]
    """
    merge, neutral = (np.fmin, np.inf) if keep == "min" else (np.fmax, -np.inf)
    grid = np.full((axis.columns, len(names)), np.nan)
    bad = np.zeros(grid.shape, np.bool_)
    for steps, values in pieces:
        place = axis.places(steps)
        if np.any(place[1:] < place[:-1]):
            order = np.argsort(place, kind="stable")
            place, values = place[order], values[order]
        starts = np.flatnonzero(np.r_[True, place[1:] != place[:-1]])
        finite = np.isfinite(values)
        known = np.where(finite, values, neutral).astype(np.float64)
        joined = merge.reduceat(known, starts, axis=0)
        target = place[starts]
        grid[target] = merge(grid[target], np.where(np.isfinite(joined), joined, np.nan))
        bad[target] |= np.logical_or.reduceat(~finite, starts, axis=0)
    first, last = axis.first, axis.last
    per_column = axis.steps_per_column
    return Heat(tag, tuple(names), first, last, grid.T, bad.T, per_column, keep, bounds)
