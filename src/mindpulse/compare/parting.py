"""Where two curves part: the spans in which their difference lies beyond the noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SHORTEST_SHARE = 0.05  # of the axis; a shorter excursion is not told
BRIDGED_SHARE = 0.02  # of the axis; a return that is shorter does not end an excursion


@dataclass(frozen=True, slots=True)
class Parting:
    """Where and for how long two curves are apart.

    Attributes:
        spans: (first point, last point) of each excursion, in order.
        since: first point of the excursion that lasts to the end; None where there is none.
        share: of the axis that the excursions cover.
    """

    spans: tuple[tuple[int, int], ...]
    since: int | None
    share: float


def find_parting(difference: NDArray[np.float64], bound: NDArray[np.float64]) -> Parting:
    """The excursions of a difference beyond a bound.

    Args:
        difference, bound: (N,), one number for each point of the axis.

    Example:
        >>> find_parting(np.r_[np.zeros(60), np.ones(40)], np.full(100, 0.5)).since
        60
    """
    size = len(difference)
    beyond = _bridged(np.abs(difference) > bound, max(1, round(BRIDGED_SHARE * size)))
    shortest = max(1, round(SHORTEST_SHARE * size))
    spans = tuple((a, b - 1) for a, b in _stretches(beyond) if b - a >= shortest)
    since = spans[-1][0] if spans and spans[-1][1] == size - 1 else None
    return Parting(spans, since, sum(b - a + 1 for a, b in spans) / size)


def _stretches(marks: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(first, one after the last) of each stretch of True."""
    edges = np.flatnonzero(np.diff(np.r_[False, marks, False].astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[0::2], edges[1::2], strict=True)]


def _bridged(marks: NDArray[np.bool_], longest: int) -> NDArray[np.bool_]:
    """Fills short stretches of False that follow a stretch of True."""
    filled = marks.copy()
    for first, end in _stretches(~marks):
        if first > 0 and end - first < longest:
            filled[first:end] = True
    return filled
