"""A mixture's router: which share of the tokens' choices each expert gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
from mindspore import ops

_LOWEST = -3.4028235e38


def row(experts: int, top_k: int) -> Callable[[Any], Any]:
    """The function f(p (..., experts)) -> (experts,), shares that add up to 1.

    Of equal experts the one is counted that the device's own top-k picks; NaN is chosen last.
    """

    def measure(p: Any) -> Any:
        p = p.reshape(-1, experts)
        chosen = ops.topk(ops.where(p == p, p, _LOWEST), top_k)[1].astype(ms.int32).reshape(-1)
        counts = ops.unsorted_segment_sum(ops.ones_like(chosen), chosen, experts)
        return counts.astype(ms.float32) / chosen.shape[0]

    return measure
