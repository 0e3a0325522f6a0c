"""Sums and ranks of lanes: what a reducer needs along the last axis.

A lane lies in one piece of memory. NumPy adds such a lane up in the same order whatever stands
beside it, so one step and many at once give the same bits.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def over_kept(
    call: Callable[..., Values], kept: NDArray[np.bool_], fewest: int, *arrays: NDArray[Any]
) -> Values:
    """`call` on each lane of `arrays` without what is not `kept` (..., N); NaN if too little is.

    Lanes that keep the same number of values go together.
    """
    result = np.full(kept.shape[:-1], np.nan)
    counts = np.asarray(np.count_nonzero(kept, axis=-1))
    for count in np.unique(counts[counts >= fewest]):
        lanes = counts == count
        full = (np.broadcast_to(array, kept.shape) for array in arrays)
        result[lanes] = call(*(a[lanes][kept[lanes]].reshape(-1, count) for a in full))
    return result


def total(v: Values) -> Values:
    """Sum of each lane (..., N) -> (...)."""
    return np.asarray(np.add.reduce(v, axis=-1))


def mean(v: Values) -> Values:
    """Arithmetic mean of each lane (..., N) -> (...)."""
    return total(v) / v.shape[-1]


@cache
def _sorts_fast() -> bool:
    """Whether NumPy sorts lanes faster than it partitions them: with vector instructions it does.

    Six times as fast then, four times as slow without (AVX-512 and none, NumPy 1.26).
    """
    sample = np.random.default_rng(0).random((256, 200))  # too much for a branch predictor to learn
    times = []
    for call in (lambda: np.sort(sample, axis=-1), lambda: np.partition(sample, 100, axis=-1)):
        times.append(min(timeit.repeat(call, number=1, repeat=3)))
    return times[0] < times[1]


def ranked(v: Values, *places: int) -> list[Values]:
    """What stands at these places where each lane is sorted; a zero may have either sign."""
    ordered = np.sort(v, axis=-1) if _sorts_fast() else np.partition(v, places, axis=-1)
    return [ordered[..., place] for place in places]


def unsigned(v: Values) -> Values:
    """The same with 0.0 for -0.0: sorting leaves open which of them comes first."""
    return v + 0.0


def median(v: Values) -> Values:
    """Median of each lane (..., N) -> (...)."""
    middle = v.shape[-1] // 2
    if v.shape[-1] % 2:
        return unsigned(ranked(v, middle)[0])
    low, high = ranked(v, middle - 1, middle)
    return unsigned((low + high) / 2)
