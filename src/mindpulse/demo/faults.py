"""Faults to be put into a training at a chosen step, from the host, without a new compilation.

lr-explosion        the learning rate times 1,000 from that step on
                    first effect: the rate at once, the loss one step later
attention-collapse  query and key weights times 32, once
                    first effect: attention and gradient norms at once
nan-batch           one sample of that one batch is NaN
                    first effect: the loss and all gradients at once
frozen-layer        one layer gets no gradient from that step on
                    first effect: its gradient norms at once; the loss hardly shows it
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from numpy.typing import NDArray

from mindpulse.demo.encoder import EncoderLayer
from mindpulse.demo.task import Batch, Batches, Task

# With Adam the weights grow until such a rate is small beside them: after a factor of 30 to 300 the
# loss comes down by itself within 200 steps (docs/demo.md).
LR_FACTOR = 1000.0
COLLAPSE_FACTOR = 32.0


@dataclass(frozen=True)
class Fault:
    """A fault that is ready: `strike()` is called just before its step."""

    name: str
    step: int
    strike: Callable[[], None]


@dataclass(frozen=True)
class PoisonedBatches:
    """The batches of `clean`, but in batch `index` the first sample's real numbers are NaN."""

    clean: Batches
    index: int

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the arrays of a batch."""
        return self.clean.columns

    def __getitem__(self, index: int) -> Batch:
        batch = self.clean[index]
        return tuple(poison(array) for array in batch) if index == self.index else batch


def poison(array: NDArray[Any]) -> NDArray[Any]:
    """A copy whose first sample is NaN, where the type can hold it."""
    if not np.issubdtype(array.dtype, np.floating):
        return array
    array = array.copy()
    array[0] = np.nan
    return array


class FreezableLayer(EncoderLayer):
    """An encoder layer that learns while `gate` is 1, and lets gradients pass it by at 0."""

    def construct(self, x: Tensor, mask: Tensor) -> Tensor:
        """Forward values are those of the plain layer, whatever `gate` is."""
        y = super().construct(x, mask)
        frozen = ops.stop_gradient(y) + (x - ops.stop_gradient(x))
        return self.gate * y + (1.0 - self.gate) * frozen


def lr_explosion(task: Task, optimizer: nn.Optimizer, step: int) -> Fault:
    """Multiplies the schedule by 1,000: its factor of 1.0 is taken for the rate itself."""
    factor = optimizer.learning_rate.factor
    return Fault("lr-explosion", step, lambda: assign(factor, LR_FACTOR))


def attention_collapse(task: Task, optimizer: nn.Optimizer, step: int) -> Fault:
    """Multiplies all query and key weights: each query then sees a single key."""

    def strike() -> None:
        for layer in task.layers:
            for dense in (layer.attention.query, layer.attention.key):
                assign(dense.weight, dense.weight.asnumpy() * COLLAPSE_FACTOR)

    return Fault("attention-collapse", step, strike)


def nan_batch(task: Task, optimizer: nn.Optimizer, step: int) -> Fault:
    """One damaged record in the data: NaN enters the loss and, one step later, all weights."""
    task.batches = PoisonedBatches(task.batches, step - 1)
    return Fault("nan-batch", step, lambda: None)


def frozen_layer(task: Task, optimizer: nn.Optimizer, step: int) -> Fault:
    """Cuts the gradient of the last layer but one, as a stray `stop_gradient` would."""
    layer = task.layers[-2]
    layer.gate = Parameter(Tensor(1.0, ms.float32), name="demo_gate", requires_grad=False)
    layer.__class__ = FreezableLayer
    return Fault("frozen-layer", step, lambda: assign(layer.gate, 0.0))


def assign(parameter: Parameter, value: float | NDArray[Any]) -> None:
    """Writes through `ops.assign`: `set_data` is ignored by a compiled optimizer."""
    ops.assign(parameter, Tensor(value, parameter.dtype))


FAULTS: dict[str, Callable[[Task, nn.Optimizer, int], Fault]] = {
    "lr-explosion": lr_explosion,
    "attention-collapse": attention_collapse,
    "nan-batch": nan_batch,
    "frozen-layer": frozen_layer,
}
