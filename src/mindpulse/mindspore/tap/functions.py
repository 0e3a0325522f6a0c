"""What stands for a softmax or a cross-entropy while it is watched, with the same parameters."""

from __future__ import annotations

from typing import Any

from mindspore import mint, ops
from mindspore.ops.function import nn_func

from mindpulse.mindspore.tap.swap import Watch


def watched_softmax(target: Any, cell: Any, watch: Watch) -> Any:
    """A softmax that shows its input and output where it runs over the last axis."""

    def over_axis(input: Any, axis: int = -1, *, dtype: Any = None) -> Any:  # noqa: A002
        out = target(input, axis, dtype=dtype)
        if axis == -1 or axis == input.ndim - 1:
            watch(cell.training, input, out)
        return out

    def over_dim(input: Any, dim: Any = None, dtype: Any = None) -> Any:  # noqa: A002
        out = nn_func.softmax_ext(input, dim, dtype)
        if dim == -1 or dim == input.ndim - 1:
            watch(cell.training, input, out)
        return out

    def primitive(axis: Any = -1) -> Any:
        operator = target(axis)

        def run(logits: Any) -> Any:
            out = operator(logits)
            if axis == -1 or axis == logits.ndim - 1 or axis == (-1,):
                watch(cell.training, logits, out)
            return out

        return run

    if target is ops.softmax:
        return over_axis
    if target is ops.Softmax:
        return primitive
    assert target is nn_func.softmax_ext or target is mint.softmax
    return over_dim


def watched_cross_entropy(target: Any, cell: Any, watch: Watch) -> Any:
    """A cross-entropy that shows the logits."""

    def over_input(input: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A002
        loss = target(input, *args, **kwargs)
        watch(cell.training, input, loss)
        return loss

    return over_input
