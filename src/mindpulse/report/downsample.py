"""Fewer points, the same picture: thinning that never hides a spike or a NaN.

`Overview.curve` thins too, and there are two for a reason. That one counts rows, because an index
beside a file can tell of so many rows without reading them; this one goes by steps, as a picture
does, so that a stretch recorded at every hundredth step keeps its form beside one recorded at
every step. A long curve passes through both: some thousand points of an overview, thinned here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def keep_extremes(
    steps: NDArray[Any], values: NDArray[Any], buckets: int = 500
) -> NDArray[np.intp]:
    """Positions of the rows to draw: per bucket of steps the first, least, largest and last.

    Of the rows that are NaN, +inf or -inf each bucket keeps the first of each kind. This is the
    M4 aggregation (Jugel et al., VLDB 2014): at `buckets` pixels the line looks like the full one.

    Args:
        steps: (T,) in ascending order.
        values: (T,) real numbers.
        buckets: number of equal spans of steps.

    Returns:
        ascending positions, at most 7 per bucket; all of them where T is small.

    Example:
        >>> spike = np.zeros(10_000); spike[777] = 9.0
        >>> 777 in keep_extremes(np.arange(10_000), spike, buckets=100)
        True
    """
    if len(steps) <= 4 * buckets:
        return np.arange(len(steps))
    span = float(steps[-1]) - float(steps[0]) + 1
    offset = steps.astype(np.float64) - float(steps[0])
    bucket = np.minimum((offset * (buckets / span)).astype(np.int64), buckets - 1)
    finite = np.isfinite(values)
    kept = [_kinds(bucket, values, ~finite)]
    if finite.any():
        where = np.flatnonzero(finite)
        kept += [where[i] for i in _m4(bucket[where], values[where])]
    positions: NDArray[np.intp] = np.unique(np.concatenate(kept))
    return positions


def _m4(bucket: NDArray[np.int64], values: NDArray[Any]) -> list[NDArray[np.intp]]:
    starts = np.flatnonzero(np.r_[True, bucket[1:] != bucket[:-1]])
    ends = np.r_[starts[1:], len(bucket)] - 1
    group = np.cumsum(np.r_[False, bucket[1:] != bucket[:-1]])
    extremes = (np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts))
    return [starts, ends, *(_first_equal(group, values, extreme) for extreme in extremes)]


def _first_equal(
    group: NDArray[np.int64], values: NDArray[Any], wanted: NDArray[Any]
) -> NDArray[np.intp]:
    hits = np.flatnonzero(values == wanted[group])
    first: NDArray[np.intp] = hits[np.r_[True, group[hits][1:] != group[hits][:-1]]]
    return first


def _kinds(
    bucket: NDArray[np.int64], values: NDArray[Any], bad: NDArray[np.bool_]
) -> NDArray[np.intp]:
    where = np.flatnonzero(bad)
    kind = np.where(np.isnan(values[where]), 0, np.where(values[where] > 0, 1, 2))
    _, first = np.unique(bucket[where] * 3 + kind, return_index=True)
    return where[first]


def smooth(
    values: NDArray[Any], window: int, weights: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Centred moving average over `window` values that leaves non-finite ones out.

    Args:
        values: (T,) of rows, or means of stretches of rows.
        window: odd or even number of values; 1 changes nothing.
        weights: (T,) finite rows that each value stands for; None for one each.

    Returns:
        (T,) NaN where the value itself is not finite, so that gaps stay gaps.

    Example:
        >>> smooth(np.array([0.0, 3.0, 6.0]), 3).tolist()
        [1.5, 3.0, 4.5]
    """
    x = np.asarray(values, np.float64)
    good = np.isfinite(x)
    half = window // 2
    low = np.maximum(np.arange(len(x)) - half, 0)
    high = np.minimum(np.arange(len(x)) + half + 1, len(x))
    weight = np.where(good, 1 if weights is None else weights, 0)
    total = np.r_[0.0, np.cumsum(np.where(good, x, 0.0) * weight)]
    count = np.r_[0, np.cumsum(weight)]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: NDArray[np.float64] = (total[high] - total[low]) / (count[high] - count[low])
    mean[~good] = np.nan
    return mean
