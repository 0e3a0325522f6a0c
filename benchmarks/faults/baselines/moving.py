"""Statistical detectors: ZClip's z-score, a plain moving z-score, CUSUM, msprobe's turbulence."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from benchmarks.faults.baselines.curves import Bell, Curve, Curves, Flags, Values, gradient_norm

ALPHA, Z, WARMUP, EPSILON = 0.97, 2.5, 25, 1e-6
CUSUM_SLACK, CUSUM_LIMIT = 0.5, 5.0
TURBULENCE = 0.5


def zclip(curves: Curves) -> Iterator[Bell]:
    """A gradient spike as ZClip sees it."""
    if norm := gradient_norm(curves):
        yield Bell("z-score", "gradient", norm, zclip_spikes(norm.scalar))


def zclip_spikes(norm: Values) -> Flags:
    """Where the norm is 2.5 deviations above its moving mean.

    The first 25 norms give mean and variance; then both move by 3 % a step towards the norm, or,
    where it rings, towards the value to which ZClip clips: mean + 2.5 deviations / (z / 2.5).

    Args:
        norm: (T,) global gradient norm.
    """
    rings = np.zeros(len(norm), np.bool_)
    mean, variance = _begin(norm[:WARMUP])
    for place in range(WARMUP, len(norm)):
        value, deviation = float(norm[place]), math.sqrt(variance)
        z = (value - mean) / (deviation + EPSILON)
        if z > Z:
            rings[place] = True
            value = mean + Z * deviation / (z / Z)
        mean = ALPHA * mean + (1 - ALPHA) * value
        variance = ALPHA * variance + (1 - ALPHA) * (value - mean) ** 2
    return rings


def _loss_and_norm(curves: Curves) -> tuple[tuple[str, str, Curve | None], ...]:
    return (
        ("train_loss", "loss", curves.get("train_loss")),
        ("grad_norm", "gradient", gradient_norm(curves)),
    )


def plain_z(curves: Curves) -> Iterator[Bell]:
    """Loss and gradient norm, each 2.5 deviations above its moving mean, all learnt."""
    for tag, category, curve in _loss_and_norm(curves):
        if curve is not None:
            yield Bell(f"z of {tag}", category, curve, moving_z(curve.scalar) > Z)


def moving_z(values: Values) -> Values:
    """(T,) how many deviations each value is away from the moving mean before it.

    The first 25 finite values give mean and variance, then both move by 3 % a step. NaN during that
    time and where a value is not finite: such a value is not learnt.

    Args:
        values: (T,).
    """
    scores = np.full(len(values), np.nan)
    finite = np.flatnonzero(np.isfinite(values))
    mean, variance = _begin(values[finite[:WARMUP]])
    for place in finite[WARMUP:]:
        value = float(values[place])
        scores[place] = (value - mean) / (math.sqrt(variance) + EPSILON)
        mean = ALPHA * mean + (1 - ALPHA) * value
        variance = ALPHA * variance + (1 - ALPHA) * (value - mean) ** 2
    return scores


def cusum(curves: Curves) -> Iterator[Bell]:
    """An upward shift of loss or gradient norm, Page's scheme over the moving z-score."""
    for tag, category, curve in _loss_and_norm(curves):
        if curve is not None:
            yield Bell(f"CUSUM of {tag}", category, curve, shifted(moving_z(curve.scalar)))


def shifted(scores: Values) -> Flags:
    """Where the sum of (score - 0.5), never below 0, passes 5; it begins anew after that.

    Args:
        scores: (T,) z-scores; NaN changes nothing.
    """
    rings, total = np.zeros(len(scores), np.bool_), 0.0
    for place, score in enumerate(scores.tolist()):
        if not math.isnan(score):
            total = max(0.0, total + score - CUSUM_SLACK)
        if total > CUSUM_LIMIT:
            rings[place], total = True, 0.0
    return rings


def msprobe(curves: Curves) -> Iterator[Bell]:
    """The two rules of msprobe's monitor over the gradient norm of each parameter."""
    if norms := curves.get("grad_norm_param"):
        yield Bell("AnomalyNan", "numerics", norms, np.isnan(norms.values))
        yield Bell("AnomalyTurbulence", "gradient", norms, turbulent(norms.values))


def turbulent(values: Values) -> Flags:
    """Where a value is above 1.5 x the mean of all values before it.

    Args:
        values: (T, W), each column by itself.
    """
    counts = np.arange(1, len(values) + 1)[:, None]
    means = np.cumsum(values, axis=0) / counts
    history = np.concatenate([values[:1], means[:-1]])
    return np.abs(values) > history * (1 + TURBULENCE)


def _begin(values: Values) -> tuple[float, float]:
    """Mean and variance; NaN if there is nothing."""
    if not len(values):
        return math.nan, math.nan
    return float(values.mean()), float(values.var())
