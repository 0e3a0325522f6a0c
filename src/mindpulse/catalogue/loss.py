"""What the training loop itself knows: loss, learning rate, loss scale, and how fast it goes."""

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


def loss_scale(scales: ArrayLike) -> float:
    """What the loss of this step was multiplied with; with several losses the smallest.

    Example:
        >>> loss_scale([65536.0, 32768.0])
        32768.0
    """
    return float(np.min(np.asarray(scales, np.float64)))


def overflow(gradients: Sequence[ArrayLike]) -> float:
    """1 if any gradient holds a NaN or an infinity, so that the update is skipped, else 0.

    Args:
        gradients: P arrays of any shape.

    Example:
        >>> overflow([[1.0], [np.inf]]), overflow([[1.0]]), overflow([])
        (1.0, 0.0, 0.0)
    """
    return float(any(not np.isfinite(np.asarray(g, np.float64)).all() for g in gradients))


def step_times(ends: Sequence[float]) -> NDArray[np.float64]:
    """Seconds from the end of a step to the end of the next: N ends give N - 1 times.

    Example:
        >>> step_times([10.0, 10.5, 12.0]).tolist()
        [0.5, 1.5]
    """
    return np.diff(np.asarray(ends, np.float64))


def per_second(counts: ArrayLike, seconds: ArrayLike) -> NDArray[np.float64]:
    """Samples or tokens of each step divided by its step time.

    Args:
        counts: (T,) or a number, samples or tokens of this rank.
        seconds: (T,) step times.

    Returns:
        (T,), 1/s; NaN where no time went by.

    Example:
        >>> per_second(32, [0.5, 0.0]).tolist()
        [64.0, nan]
    """
    time = np.asarray(seconds, np.float64)
    positive = time > 0
    return np.asarray(np.where(positive, np.asarray(counts) / np.where(positive, time, 1), np.nan))


def data_wait(asked: ArrayLike, got: ArrayLike) -> float:
    """Seconds that a step waited for its batches, all of them together.

    Args:
        asked: (N,) when a batch was asked for, seconds.
        got: (N,) when it was there, seconds.

    Example:
        >>> data_wait([1.0, 5.0], [1.25, 5.5])
        0.75
    """
    return float(np.sum(np.asarray(got, np.float64) - np.asarray(asked, np.float64)))


MEASURES = (
    Measure(
        tag="train_loss",
        formula="mean of the loss that the training step returned",
        unit="",
        axes=(),
        reduction="mean",
        source="the training loop",
        reference=mean_loss,
        family="loss",
        place="loss",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="learning_rate",
        formula="learning rate that the optimizer used in this step, largest group",
        unit="",
        axes=(),
        reduction="max",
        source="the optimizer",
        reference=learning_rate,
        family="loss",
        place="optimizer",
        within="last",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="loss_scale",
        formula="factor that the loss of this step was multiplied with before the backward pass",
        unit="",
        axes=(),
        reduction="min",
        source="Micikevicius et al. 2018, Mixed Precision Training (arXiv 1710.03740)",
        reference=loss_scale,
        family="loss",
        place="host",
        within="last",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="overflow",
        formula="1 on a step whose update was skipped for NaN or infinity in a gradient, else 0",
        unit="",
        axes=(),
        reduction="max",
        source="Micikevicius et al. 2018, Mixed Precision Training (arXiv 1710.03740)",
        reference=overflow,
        family="loss",
        place="host",
        within="max",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="step_time_s",
        formula="time from the end of the step before to the end of this one",
        unit="s",
        axes=(),
        reduction="max",
        source="the training loop",
        reference=step_times,
        family="loss",
        place="host",
        within="sum",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="samples_per_s",
        formula="samples of this rank in the step / step_time_s",
        unit="1/s",
        axes=(),
        reduction="sum",
        source="the training loop",
        reference=per_second,
        family="loss",
        place="host",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="tokens_per_s",
        formula="tokens of this rank in the step / step_time_s",
        unit="1/s",
        axes=(),
        reduction="sum",
        source="the training loop",
        reference=per_second,
        family="loss",
        place="host",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="data_wait_s",
        formula="time from asking for the batches of this step until they were there",
        unit="s",
        axes=(),
        reduction="max",
        source="the training loop",
        reference=data_wait,
        family="loss",
        place="host",
        within="sum",
        cost="cheap",
        level="cheap",
    ),
)
