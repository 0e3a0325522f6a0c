"""The rules that come with training loops: Lightning, LLM-Foundry, Megatron-LM, MindFormers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from benchmarks.faults.baselines.curves import Bell, Curves, Flags, Values, gradient_norm

LIGHTNING_WINDOW, LIGHTNING_WARMUP, LIGHTNING_RTOL = 10, 1, 2.0
KILL_WINDOW, KILL_SHARE, KILL_PATIENCE, KILL_TIMES, KILL_CAP = 100, 0.05, 4, 2.0, 10.0
MEGATRON_SAMPLES, MEGATRON_TIMES = 100, 10.0
MINDFORMERS_NORM, MINDFORMERS_COUNT = 3.0, 10


def lightning(curves: Curves) -> Iterator[Bell]:
    """`SpikeDetection` of Lightning Fabric."""
    if loss := curves.get("train_loss"):
        yield Bell("SpikeDetection", "loss", loss, loss_spike(loss.scalar))


def loss_spike(loss: Values) -> Flags:
    """Where the loss got worse and is 2.0 x the mean of the last 10 away from it, or not finite.

    The tool stops there. Here it goes on as after a restart: what rang is not learnt.

    Args:
        loss: (T,), one for each batch.
    """
    recent: deque[float] = deque(maxlen=LIGHTNING_WINDOW)
    before, rings = 0.0, np.zeros(len(loss), np.bool_)
    for place, value in enumerate(loss.tolist()):
        if place >= LIGHTNING_WARMUP:
            mean = sum(recent) / len(recent) if recent else np.nan
            far = abs(value - mean) >= abs(LIGHTNING_RTOL * mean)
            rings[place] = not np.isfinite(value) or (value > before and far)
        if not rings[place]:
            recent.append(value)
            before = value
    return rings


def llm_foundry(curves: Curves) -> Iterator[Bell]:
    """`KillLossSpike` of LLM-Foundry."""
    if loss := curves.get("train_loss"):
        spikes, high = kill_loss_spike(loss.scalar)
        yield Bell("loss spike", "loss", loss, spikes)
        yield Bell("high loss", "loss", loss, high)


def kill_loss_spike(loss: Values) -> tuple[Flags, Flags]:
    """(spikes, persistently high losses).

    A window of a twentieth of the run, of 100 steps at least. A spike is more than 4 losses in a
    row of twice the window's mean or more. Losses are high when half the window is above the
    largest loss of the first window, 10 at most; from two windows on.

    Args:
        loss: (T,), one for each batch.
    """
    size = max(KILL_WINDOW, round(KILL_SHARE * len(loss)))
    spikes, high = np.zeros((2, len(loss)), np.bool_)
    cap = min(float(np.max(loss[:size], initial=-np.inf)), KILL_CAP)
    outliers = 0
    for place in range(size, len(loss)):
        window = loss[place - size : place]
        outliers = outliers + 1 if loss[place] >= KILL_TIMES * window.mean() else 0
        spikes[place] = outliers > KILL_PATIENCE
        late = place + 1 >= 2 * size
        high[place] = late and np.count_nonzero(window > cap) >= size / 2
    return spikes, high & ~spikes


def megatron(curves: Curves) -> Iterator[Bell]:
    """The result validation of Megatron-LM: spiky loss, and what is not finite."""
    if loss := curves.get("train_loss"):
        yield Bell("not finite", "numerics", loss, ~np.isfinite(loss.scalar))
        yield Bell("spiky loss", "loss", loss, unexpectedly_large(loss.scalar))
    if norm := gradient_norm(curves):
        yield Bell("not finite", "numerics", norm, ~np.isfinite(norm.scalar))


def unexpectedly_large(values: Values) -> Flags:
    """Where the magnitude is 10 x the largest of the first 100 finite ones, or more.

    Args:
        values: (T,).
    """
    sizes, finite = np.abs(values), np.isfinite(values)
    samples = np.flatnonzero(finite)[:MEGATRON_SAMPLES]
    if len(samples) < MEGATRON_SAMPLES:
        return np.zeros(len(values), np.bool_)
    after = np.arange(len(values)) > samples[-1]
    return finite & after & (sizes >= MEGATRON_TIMES * sizes[samples].max())


def mindformers_skip(curves: Curves) -> Iterator[Bell]:
    """MindFormers skips the data of a step whose global norm is above 3.0."""
    if norm := gradient_norm(curves):
        yield Bell("norm spike", "gradient", norm, above_norm(norm.scalar, 1))


def mindformers_stop(curves: Curves) -> Iterator[Bell]:
    """MindFormers stops when that happened 10 times in a row."""
    if norm := gradient_norm(curves):
        yield Bell("norm spikes", "gradient", norm, above_norm(norm.scalar, MINDFORMERS_COUNT))


def above_norm(norm: Values, count: int) -> Flags:
    """Where the norm is above 3.0 for the `count`-th time in a row or later.

    Args:
        norm: (T,) global gradient norm before clipping.
    """
    rings, row = np.zeros(len(norm), np.bool_), 0
    for place, value in enumerate(norm.tolist()):
        row = row + 1 if value > MINDFORMERS_NORM else 0
        rings[place] = row >= count
    return rings
