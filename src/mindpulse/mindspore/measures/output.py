"""The logits over the classes: how large the log-partition is on average."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindspore import ops

from mindpulse.mindspore.measures.reduce import keep_nan, max_last, require, sum_last

TAG = "logits_log_partition"
_LOWEST = -3.4028235e38


def row(wanted: tuple[str, ...]) -> Callable[[Any], Any]:
    """The function f(logits (..., classes)) -> (1,), the mean of logsumexp over the classes.

    The largest probability of a token is exp(largest logit - logsumexp): with a fused softmax that
    is half the time of an exponential and a sum.

    Raises:
        UsageError: an unknown tag.
    """
    require(wanted, (TAG,))

    def measure(logits: Any) -> Any:
        x = logits.reshape(-1, logits.shape[-1])
        p = ops.softmax(x, -1)
        largest = max_last(x)
        finite = largest - ops.log(max_last(p))
        values = ops.where(ops.isfinite(largest), finite, largest)
        mean = keep_nan(values, sum_last(x)).mean()
        # After a row of -inf alone, the softmax of the CPU leaves rows unwritten.
        least = ops.amin(largest)
        return ops.where(least >= _LOWEST, mean, least).reshape(1)

    return measure
