"""What the training loop itself knows: loss, learning rate, step time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mindpulse.catalogue.measure import Measure


def mean_loss(losses: ArrayLike) -> float:
    """Mean of what the step returned as its loss; a scalar stays what it is.

    Example:
        >>> mean_loss([2.0, 4.0])
        3.0
    """
    return float(np.mean(np.asarray(losses, np.float64)))


def learning_rate(rates: ArrayLike) -> float:
    """The learning rate of this step; with several parameter groups the largest.

    Example:
        >>> learning_rate([1e-3, 1e-4])
        0.001
    """
    return float(np.max(np.asarray(rates, np.float64)))


def step_times(ends: Sequence[float]) -> NDArray[np.float64]:
    """Seconds from the end of a step to the end of the next: N ends give N - 1 times.

    Example:
        >>> step_times([10.0, 10.5, 12.0]).tolist()
        [0.5, 1.5]
    """
    return np.diff(np.asarray(ends, np.float64))


MEASURES = (
    Measure(
        tag="train_loss",
        formula="mean of the loss that the training step returned",
        unit="",
        axes=(),
        reduction="mean",
        source="the training loop",
        reference=mean_loss,
    ),
    Measure(
        tag="learning_rate",
        formula="learning rate that the optimizer used in this step, largest group",
        unit="",
        axes=(),
        reduction="max",
        source="the optimizer",
        reference=learning_rate,
    ),
    Measure(
        tag="step_time_s",
        formula="time from the end of the step before to the end of this one",
        unit="s",
        axes=(),
        reduction="max",
        source="the training loop",
        reference=step_times,
    ),
)
