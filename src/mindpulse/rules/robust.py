"""Level and spread of a series that outliers do not teach.

A running mean learns a spike: after it, the next one looks normal. Here a row that is far from the
median of its window weighs nothing at all, and up to half of the window may be such rows. All is a
function of the window alone, so that a watcher that is started again comes to the same numbers.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mindpulse.rules.lanes import Values, median, total

MAD_TO_SIGMA = 1.4826
WARM_UP = 10  # rows; the spread of fewer says little
FLOOR = 0.01  # of the median: a series that stands still would find everything far away
FAR = 3.0  # spreads
_TINY = 1e-12


def mad(v: Values) -> Values:
    """Median distance from the median of each lane (..., N) -> (...)."""
    return median(np.abs(v - median(v)[..., None]))


def spread(v: Values) -> Values:
    """Robust standard deviation of each lane, at least `FLOOR` of its median."""
    return np.asarray(np.maximum(MAD_TO_SIGMA * mad(v), FLOOR * np.abs(median(v)) + _TINY))


def baseline(v: Values) -> Values:
    """Exponentially weighted mean of what is near the median of each lane.

    Example:
        >>> calm = np.full(30, 2.0)
        >>> spiky = np.concatenate([calm, np.full(10, 90.0)])
        >>> float(baseline(calm)), float(baseline(spiky))
        (2.0, 2.0)
    """
    near = np.abs(v - median(v)[..., None]) <= FAR * spread(v)[..., None]
    weights = np.where(near, _weights(v.shape[-1]), 0.0)
    return np.asarray(total(weights * v) / total(weights))


@lru_cache(maxsize=256)
def _weights(rows: int) -> Values:
    """(N,) rising to 1; the newest row weighs twice as much as the middle one."""
    weights: Values = np.exp2((np.arange(rows) - (rows - 1)) / (rows / 2))
    weights.setflags(write=False)
    return weights
