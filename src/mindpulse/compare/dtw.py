"""Dynamic time warping of two curves inside a band: exact, in NumPy, memory linear in the band.

The recurrence D(i, j) = |a_i - b_j| + min(D(i-1, j), D(i, j-1), D(i-1, j-1)) needs only the two
anti-diagonals before, so each anti-diagonal is computed as one vector (Sakoe and Chiba, IEEE
Transactions on Acoustics, Speech and Signal Processing 26, 1978).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mindpulse.errors import UsageError


def warped_cost(a: ArrayLike, b: ArrayLike, radius: int | None = None) -> float:
    """The least sum of |a_i - b_j| over all warping paths inside the band.

    Args:
        a: (n,) finite numbers.
        b: (m,) finite numbers.
        radius: how far a path may leave the diagonals; None allows all. With n = m the path stays
            at |i - j| <= radius, so 0 gives the plain sum of |a_i - b_i|; with n != m the band
            lies around both diagonals, the one from the first cell and the one to the last.

    Raises:
        UsageError: an input is empty or not finite, or the radius is negative.

    Example:
        >>> warped_cost([0, 0, 1, 2], [0, 1, 2, 2]), warped_cost([0, 0, 1, 2], [0, 1, 2, 2], 0)
        (0.0, 2.0)
    """
    last = deque(_diagonals(*_checked(a, b, radius)), maxlen=1)
    return float(last[0][1][-1])


def warping_path(a: ArrayLike, b: ArrayLike, radius: int | None = None) -> NDArray[np.intp]:
    """The pairs (i, j) of a cheapest path, in order, shape (path length, 2).

    Of equally cheap steps the diagonal one is taken. Keeps the costs of the whole band: meant for
    curves of a few thousand points.

    Example:
        >>> warping_path([0, 0, 1], [0, 1, 1], 1).tolist()
        [[0, 0], [1, 0], [2, 1], [2, 2]]
    """
    x, y, reach = _checked(a, b, radius)
    costs = [(low, cells.copy()) for low, cells in _diagonals(x, y, reach)]
    i, j = len(x) - 1, len(y) - 1
    pairs = [(i, j)]
    while i or j:
        before = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
        i, j = min(before, key=lambda cell: _cost_at(costs, *cell))
        pairs.append((i, j))
    return np.array(pairs[::-1], np.intp)


def _cost_at(costs: list[tuple[int, NDArray[np.float64]]], i: int, j: int) -> float:
    if i < 0 or j < 0:
        return np.inf
    low, cells = costs[i + j]
    return float(cells[i - low]) if 0 <= i - low < len(cells) else np.inf


def _checked(
    a: ArrayLike, b: ArrayLike, radius: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    x, y = (np.ascontiguousarray(values, np.float64).reshape(-1) for values in (a, b))
    for name, values in (("first", x), ("second", y)):
        if not len(values):
            raise UsageError(f"the {name} curve is empty; warping needs at least one point of each")
        if not np.isfinite(values).all():
            bad = int(np.flatnonzero(~np.isfinite(values))[0])
            raise UsageError(
                f"the {name} curve is {values[bad]} at position {bad}; leave such rows out"
            )
    if radius is not None and radius < 0:
        raise UsageError(f"radius {radius}: use 0 or more, or None for no band")
    return x, y, len(x) + len(y) if radius is None else radius


def _diagonals(
    a: NDArray[np.float64], b: NDArray[np.float64], radius: int
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Per anti-diagonal i + j = k: the least i of the band, and the costs for i upwards.

    The costs are a view of a buffer that is used again: copy them to keep them.
    """
    n, m = len(a), len(b)
    below, above = max(0, n - m) + radius, max(0, m - n) + radius  # i - j, j - i at most
    backwards = b[::-1].copy()
    # Cell i of a diagonal lies at i + 1, so that i - 1 always exists; other places are infinite.
    newest, before, oldest = (np.full(n + 2, np.inf) for _ in range(3))
    step, best = (np.empty(n + 1) for _ in range(2))
    for k in range(n + m - 1):
        low = max(0, k - m + 1, (k - above + 1) // 2)
        end = min(n - 1, k, (k + below) // 2) + 1
        size, shift = end - low, m - 1 - k
        cost, least = step[:size], best[:size]
        np.subtract(a[low:end], backwards[shift + low : shift + end], out=cost)
        np.abs(cost, out=cost)
        cells = newest[low + 1 : end + 1]
        if k:
            np.minimum(before[low:end], before[low + 1 : end + 1], out=least)
            np.minimum(least, oldest[low:end], out=least)
            np.add(least, cost, out=cells)
        else:
            cells[:] = cost
        newest[low] = newest[end + 1] = np.inf
        yield low, cells
        newest, before, oldest = oldest, newest, before
