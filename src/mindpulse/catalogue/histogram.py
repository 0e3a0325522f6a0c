"""A histogram of magnitudes whose bins never change: zeros, then one bin for each power of two."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

LOWEST, HIGHEST = -20, 12

HISTOGRAM_EDGES: tuple[float, ...] = tuple(2.0**power for power in range(LOWEST, HIGHEST + 1))
"""Where a bin ends and the next begins; a magnitude that is an edge belongs to the bin above."""

HISTOGRAM_LABELS: tuple[str, ...] = (
    "0",
    f"<2^{LOWEST}",
    *(f"2^{power}" for power in range(LOWEST, HIGHEST)),
    f">=2^{HIGHEST}",
)
"""One label for each bin; "2^-3" holds magnitudes from 2^-3 up to, not including, 2^-2."""

BINS = len(HISTOGRAM_LABELS)


def histogram(x: ArrayLike) -> NDArray[np.float64]:
    """Share of all elements in each bin of magnitude.

    Args:
        x: any shape.

    Returns:
        (bins,), named by `HISTOGRAM_LABELS`. Infinity is in the last bin; NaN is in none, so that
        the sum falls below 1 by its share. Without any element all are NaN.

    Example:
        >>> found = histogram([0.0, -0.125, 0.2, np.inf])
        >>> {label: share for label, share in zip(HISTOGRAM_LABELS, found.tolist()) if share}
        {'0': 0.25, '2^-3': 0.5, '>=2^12': 0.25}
    """
    size = np.abs(np.asarray(x, np.float64)).ravel()
    if not size.size:
        return np.full(BINS, np.nan)
    known = size[~np.isnan(size)]
    bins = np.where(known == 0, 0, 1 + np.searchsorted(HISTOGRAM_EDGES, known, side="right"))
    return np.bincount(bins, minlength=BINS) / size.size
