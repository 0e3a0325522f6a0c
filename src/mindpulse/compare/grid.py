"""Curves of any length and sampling on one axis: the same number of points for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mindpulse.compare.curve import Curve

Align = Literal["step", "progress"]
ALIGNMENTS: tuple[Align, ...] = ("step", "progress")
POINTS = 1000
WINDOW_SHARE = 0.02  # of the axis; the moving average that stands for the course of a curve
LEAST_ROWS = 5  # of a curve inside the common range, to say anything
LARGEST = 1e100  # values beyond count as this much, so that sums and squares stay finite


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """The range over which curves are compared, in steps, or as a share of each run's own steps.

    Attributes:
        low, high: ends of the common range.
        share: of the range that any curve covers, how much all of them cover; 0 to 1.
    """

    align: Align
    low: float
    high: float
    share: float

    @property
    def centres(self) -> NDArray[np.float64]:
        """(POINTS,) the middle of each of the equal spans."""
        spans: NDArray[np.float64] = (np.arange(POINTS) + 0.5) / POINTS
        return self.low + spans * (self.high - self.low)

    def position(self, curve: Curve) -> NDArray[np.float64]:
        """Where the rows of a curve lie on this axis, (T,)."""
        return positions(curve, self.align)

    def inside(self, curve: Curve) -> slice:
        """The rows of a curve that lie in the common range."""
        where = self.position(curve)
        first, end = where.searchsorted(self.low), where.searchsorted(self.high, "right")
        return slice(int(first), int(end))


def positions(curve: Curve, align: Align) -> NDArray[np.float64]:
    """The rows of a curve on an axis: steps, or shares from 0 to 1 of its own span of steps."""
    where: NDArray[np.float64] = curve.steps.astype(np.float64)
    if align == "progress" and len(where):
        where = (where - where[0]) / max(1.0, where[-1] - where[0])
    return where


def common_axis(curves: list[Curve], align: Align) -> Axis | None:
    """The range that all curves cover; None where there is none, or too few rows in it."""
    ends = [positions(curve, align)[[0, -1]] for curve in curves if len(curve)]
    if len(ends) < len(curves):
        return None
    lows, highs = zip(*ends, strict=True)
    low, high = float(max(lows)), float(min(highs))
    widest = float(max(highs)) - float(min(lows))
    if high <= low:
        return None
    axis = Axis(align, low, high, (high - low) / widest)
    rows = [axis.inside(curve) for curve in curves]
    return axis if min(r.stop - r.start for r in rows) >= LEAST_ROWS else None


def course(
    axis: Axis, curve: Curve, caps: tuple[float, float] = (-LARGEST, LARGEST)
) -> NDArray[np.float64]:
    """The curve on the points of the axis, as a moving average over 2 % of the axis.

    A span with rows gives their mean, at their mean position; between such means, and between the
    rows of a curve with fewer rows than spans, the course is a straight line.

    Args:
        caps: values beyond are counted as this much.

    Returns:
        (POINTS,) in the unit of the curve.
    """
    rows = axis.inside(curve)
    where = axis.position(curve)
    x, y = _span_means(axis, where[rows], np.clip(curve.values[rows], *caps))
    # The neighbours just outside tell where the line to the first and from the last row lies.
    before, after = slice(max(0, rows.start - 1), rows.start), slice(rows.stop, rows.stop + 1)
    x = np.concatenate([where[before], x, where[after]])
    y = np.concatenate([curve.values[before], y, curve.values[after]])
    line = np.interp(axis.centres, x, np.clip(y, *caps))
    return moving_average(line, round(WINDOW_SHARE * POINTS))


def _span_means(
    axis: Axis, x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean position and mean value of the rows of each span that has any."""
    span = ((x - axis.low) * (POINTS / (axis.high - axis.low))).astype(np.int64)
    starts = np.flatnonzero(np.diff(np.minimum(span, POINTS - 1), prepend=-1))
    counts = np.diff(starts, append=len(x))
    return np.add.reduceat(x, starts) / counts, np.add.reduceat(y, starts) / counts


def moving_average(values: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Centred mean over `width` points, over fewer at both ends.

    Example:
        >>> moving_average(np.array([0.0, 3.0, 6.0]), 3).tolist()
        [1.5, 3.0, 4.5]
    """
    kernel = np.ones(max(1, width // 2 * 2 + 1))
    total = np.convolve(values, kernel, "same")
    return total / np.convolve(np.ones(len(values)), kernel, "same")
