"""Runs an operator in each mode, and holds its gradient against the slope of a NumPy reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

Array = np.ndarray[Any, Any]


def run(mode: str, function: Callable[..., Any], *arrays: Array) -> Array:
    """What `function` gives for these arrays; mode is one of nets.MODES."""
    tensors = [Tensor(array) for array in arrays]
    if mode == "jit":
        return np.asarray(ms.jit(function)(*tensors).asnumpy())
    if mode == "pynative":
        return np.asarray(function(*tensors).asnumpy())

    class Net(nn.Cell):
        def construct(self, *args: Any) -> Any:
            return function(*args)

    ms.set_context(mode=ms.GRAPH_MODE)
    return np.asarray(Net()(*tensors).asnumpy())


def check_slope(
    function: Callable[..., Any], reference: Callable[[Array], Any], x: Array, rtol: float = 2e-3
) -> None:
    """The gradient of sum(function(x)) is finite, and along a direction what the reference says."""

    def total(tensor: Any) -> Any:
        return function(tensor).sum()

    gradient = ms.grad(total)(Tensor(x)).asnumpy().astype(np.float64)
    assert np.isfinite(gradient).all()
    direction = np.random.default_rng(5).normal(size=x.shape)
    high, low = (np.sum(reference(x + sign * 1e-6 * direction)) for sign in (1, -1))
    slope = (high - low) / 2e-6
    assert abs(slope) > 1e-6
    np.testing.assert_allclose((gradient * direction).sum(), slope, rtol=rtol)
