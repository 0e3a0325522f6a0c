"""How far two curves may lie apart by chance: out of the curves themselves, or out of seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mindpulse.compare.curve import Curve
from mindpulse.compare.grid import LARGEST, POINTS, WINDOW_SHARE, Axis, moving_average

CELLS = 100  # two for each window of the moving average
ROWS_OF_A_PIECE = 18  # cells that one local estimate is made of
MAD_TO_SIGMA = 1.4826  # of a normal distribution
SIGMAS = 4.0
# Two-sided 95 % points of Student's t for 1, 2, ... degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def own_noise(
    axis: Axis, curve: Curve, caps: tuple[float, float] = (-LARGEST, LARGEST)
) -> NDArray[np.float64]:
    """Standard deviation of the moving average of a curve by the noise of its rows, (POINTS,).

    The rows are averaged to at most 100 cells of equal count; second differences of the cells
    leave out level and slope, and their median absolute deviation leaves out single spikes. Noise
    that is slower than a cell (a hundredth of the range) looks like the course and is not seen:
    only seeds show it.

    Args:
        caps: as for the course, so that a run that explodes does not excuse itself by its noise.
    """
    rows = axis.inside(curve)
    values = np.clip(curve.values[rows], *caps)
    where = axis.position(curve)[rows]
    cells = min(CELLS, len(values))
    starts = np.linspace(0, len(values), cells + 1).astype(np.intp)[:-1]
    counts = np.diff(starts, append=len(values))
    means = np.add.reduceat(values, starts) / counts
    bends = (means[:-2] - 2 * means[1:-1] + means[2:]) / np.sqrt(6.0)
    pieces = np.array_split(np.arange(len(bends)), max(1, len(bends) // ROWS_OF_A_PIECE))
    sigmas = [MAD_TO_SIGMA * _mad(bends[piece]) for piece in pieces]
    centres = [float(where[starts[piece + 1]].mean()) for piece in pieces]
    per_window = max(1.0, cells * WINDOW_SHARE)
    sigma: NDArray[np.float64] = np.interp(axis.centres, centres, sigmas) / np.sqrt(per_window)
    return sigma


def _mad(values: NDArray[np.float64]) -> float:
    return float(np.median(np.abs(values - np.median(values))))


def bound_by_curves(noises: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """How far two courses may differ: 4 standard deviations of their difference, (POINTS,)."""
    bound: NDArray[np.float64] = SIGMAS * np.sqrt(np.sum(np.square(noises), axis=0))
    return bound


def bound_by_seeds(courses: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far a further run of the same training may lie from the mean of the seeds, (POINTS,).

    The 95 % prediction interval: Student's t for K - 1 degrees of freedom, times the standard
    deviation of the seeds (its square averaged over 10 % of the axis), times sqrt(1 + 1/K).

    Args:
        courses: (K, POINTS), K of at least 2.
    """
    variance = moving_average(np.var(courses, axis=0, ddof=1), POINTS // 10)
    return prediction_factor(len(courses)) * np.sqrt(variance)


def prediction_factor(seeds: int) -> float:
    """By what the standard deviation of `seeds` values is multiplied to bound one more, at 95 %.

    Example:
        >>> [round(prediction_factor(k), 1) for k in (2, 3, 5)]
        [15.6, 5.0, 3.0]
    """
    student = _STUDENT[seeds - 2] if seeds - 2 < len(_STUDENT) else 1.96 + 2.5 / (seeds - 1)
    return float(student * np.sqrt(1 + 1 / seeds))
