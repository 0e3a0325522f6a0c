"""The inner activation of a feed-forward block: what is zero, what is dead, how large it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import ops

from mindpulse.catalogue.histogram import BINS, HIGHEST, LOWEST
from mindpulse.mindspore.measures.reduce import indicator, require, sum_first

_NUDGE = 1e-5  # more than the error of a float32 logarithm, so that an edge is in the bin above


def row(wanted: tuple[str, ...]) -> Callable[[Any], Any]:
    """The function f(x (..., unit)) -> (n,), in the order of `wanted`; a histogram has BINS values.

    Raises:
        UsageError: an unknown tag.
    """
    require(wanted, _PARTS)
    parts = tuple(_PARTS[tag] for tag in wanted)

    def measure(x: Any) -> Any:
        x = x.reshape(-1, x.shape[-1])
        zeros = sum_first(indicator(x == 0.0))
        values: tuple[Any, ...] = ()
        for part in parts:
            values = (*values, part(x, zeros))
        return ops.concat(values)

    return measure


def _zero_share(x: Any, zeros: Any) -> Any:
    return zeros.mean().reshape(1) / x.shape[0]


def _dead_share(x: Any, zeros: Any) -> Any:
    return indicator(zeros >= x.shape[0]).mean().reshape(1)


def _histogram(x: Any, zeros: Any) -> Any:
    """Bins by the logarithm: a magnitude less than 1e-5 of itself below an edge may count above."""
    size = ops.clamp(ops.abs(x), 2.0 ** (LOWEST - 1), 2.0**HIGHEST)
    size = ops.where(x == x, size, 2.0 ** (HIGHEST + 1))  # one bin more, for NaN
    power = ops.log(size) * (1 / math.log(2)) + (2 - LOWEST + _NUDGE)
    bins = ops.floor(power).astype(ms.int32).reshape(-1)
    counts = ops.unsorted_segment_sum(ops.ones_like(bins), bins, BINS + 1)[:BINS]
    share_of_zeros = _zero_share(x, zeros)
    return counts.astype(ms.float32) / x.size + share_of_zeros * ms.Tensor(_MOVE_ZEROS)


_MOVE_ZEROS = np.array([1.0, -1.0] + [0.0] * (BINS - 2), np.float32)
_PARTS: dict[str, Callable[[Any, Any], Any]] = {
    "ffn_zero_share": _zero_share,
    "ffn_dead_share": _dead_share,
    "ffn_histogram": _histogram,
}
