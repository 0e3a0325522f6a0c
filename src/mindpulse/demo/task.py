"""What a demo trains: a network, its batches, and what a good result looks like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.nn.learning_rate_schedule import LearningRateSchedule
from numpy.typing import NDArray

Batch = tuple[NDArray[Any], ...]
# With 0.999 three hundred steps are too few for the second moments to follow: 0.3 nats worse.
BETA2, WEIGHT_DECAY = 0.98, 0.01


class Batches(Protocol):
    """Batch k (0-based) depends on nothing but k, so every mode sees the same data."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the arrays of a batch."""
        ...

    def __getitem__(self, index: int) -> Batch:
        """A tuple of NumPy arrays, one for each of `columns`."""
        ...


@dataclass
class Task:
    """A training to be run.

    Attributes:
        title: what is trained on what, one line.
        network: a cell that takes a batch and returns its loss.
        layers: its encoder layers, first to last.
        batches: the training data.
        learning_rate: the peak of the schedule.
        reference: name of a loss to compare with, and its value in nats.
        evaluate: more figures about the trained network, by name.
    """

    title: str
    network: nn.Cell
    layers: nn.CellList
    batches: Batches
    learning_rate: float
    reference: tuple[str, float]
    evaluate: Callable[[], dict[str, float]] = field(default=dict)


class WarmUp(LearningRateSchedule):  # type: ignore[misc]
    """Rises over the first steps to `peak` and stays there.

    It does not fall at the end: that would hide from the reader what lowering it does to a fault.
    `factor` multiplies it and can be assigned from the host while a compiled step runs.
    """

    def __init__(self, peak: float, steps: int) -> None:
        super().__init__()
        self.peak = peak
        self.warm_up = float(max(1, min(20, steps // 10)))
        self.factor = Parameter(Tensor(1.0, ms.float32), name="demo_lr_factor", requires_grad=False)

    def construct(self, global_step: Tensor) -> Tensor:
        """global_step (scalar or one element), 0-based -> learning rate of that step."""
        done = ops.cast(global_step, ms.float32)
        return self.peak * ops.minimum((done + 1.0) / self.warm_up, 1.0) * self.factor


def build_optimizer(task: Task, steps: int) -> nn.Optimizer:
    """AdamWeightDecay over all weights, with a warm-up that fits `steps` steps."""
    schedule = WarmUp(task.learning_rate, steps)
    return nn.AdamWeightDecay(
        task.network.trainable_params(), schedule, beta2=BETA2, weight_decay=WEIGHT_DECAY
    )


def uniform_loss(classes: int) -> float:
    """Loss in nats of a model that finds all classes equally likely.

    Example:
        >>> round(uniform_loss(10), 3)
        2.303
    """
    return float(np.log(classes))
