"""The rule lists of SageMaker Debugger and of AutoTrainer, as far as our series allow."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from benchmarks.faults.baselines.curves import Bell, Curve, Curves, Flags, Values

VANISHING, DEAD_LAYER, UPDATE_HIGH, UPDATE_LOW = 1e-7, 0.5, 10.0, 1e-8
UNCHANGED_STEPS, UNCHANGED_RTOL = 3, 1e-5
LOSS_STEPS, OVERFIT_RATIO = 10, 0.1

RATIO_LOW, FIRST_LOW, RATIO_HIGH, ZERO_SHARE = 1e-3, 1e-4, 70.0, 0.7
LOSS_HIGH, JUDGED_FROM = 1e3, 0.3
_NO_KERNEL = re.compile(r"bias|beta|gamma|norm", re.IGNORECASE)


def smdebug(curves: Curves) -> Iterator[Bell]:
    """The rules of SageMaker Debugger with their defaults, every recorded step being "saved"."""
    yield from _not_finite(curves, ("train_loss", "grad_norm_param", "weight_norm"))
    if norms := curves.get("grad_norm_param"):
        yield Bell("AllZero", "gradient", norms, norms.values == 0)
        small = (norms.values < VANISHING) & (norms.values > 0)
        yield Bell("VanishingGradient", "gradient", norms, small)
    if dead := curves.get("ffn_dead_share"):
        yield Bell("DeadRelu", "gradient", dead, dead.values > DEAD_LAYER)
    if ratios := curves.get("weight_update_ratio"):
        wrong = (ratios.values > UPDATE_HIGH) | (ratios.values < UPDATE_LOW)
        yield Bell("WeightUpdateRatio", "gradient", ratios, wrong)
        yield Bell("UnchangedTensor", "gradient", ratios, unchanged(ratios.values))
    if loss := curves.get("train_loss"):
        yield Bell("LossNotDecreasing", "loss", loss, not_decreasing(loss))
        if "eval_loss" in curves:
            test = curves["eval_loss"]
            yield Bell("Overfit", "loss", test, overfit(loss, test))


def unchanged(ratios: Values) -> Flags:
    """Where a weight was the same at 3 steps in a row: two changes of at most 1e-5 of its norm.

    Args:
        ratios: (T, W), norm of the change / norm of the weight.
    """
    same = ratios <= UNCHANGED_RTOL
    rings = same.copy()
    for back in range(1, UNCHANGED_STEPS - 1):
        rings[back:] &= same[:-back]
        rings[:back] = False
    return rings


def not_decreasing(loss: Curve) -> Flags:
    """Every 10 steps: is the loss what it was 10 steps ago, or more?"""
    rings = np.zeros(len(loss.steps), np.bool_)
    checked = 0
    for place, step in enumerate(loss.steps.tolist()):
        if step - loss.steps[checked] >= LOSS_STEPS:
            rings[place] = loss.scalar[place] >= loss.scalar[checked]
            checked = place
    return rings


def overfit(train: Curve, test: Curve) -> Flags:
    """Where (test loss - train loss) / train loss is above 0.1, the train loss being the latest."""
    places = train.steps.searchsorted(test.steps, "right") - 1
    latest = train.scalar[np.maximum(places, 0)]
    return (places >= 0) & ((test.scalar - latest) / latest > OVERFIT_RATIO)


def autotrainer(curves: Curves) -> Iterator[Bell]:
    """The problems of AutoTrainer that need no accuracy.

    All but what is not finite are judged from 30 % of the steps on, as the original does by epochs.
    Its further condition, an accuracy below 0.6, is taken as met: token accuracy seldom gets there.
    """
    yield from _not_finite(curves, ("train_loss", "grad_norm_param"))
    if loss := curves.get("train_loss"):
        wrong = (loss.scalar >= LOSS_HIGH) | (loss.scalar < 0)
        yield Bell("abnormal loss", "loss", loss, wrong & _late(loss))
    if norms := curves.get("grad_norm_param"):
        vanishing, exploding = vanishing_exploding(norms)
        yield Bell("gradient vanish", "gradient", norms, vanishing & _late(norms))
        yield Bell("gradient explode", "gradient", norms, exploding & _late(norms))
    if zeros := curves.get("grad_zero_share"):
        dying = zeros.values.mean(axis=1) >= ZERO_SHARE
        yield Bell("dying ReLU", "gradient", zeros, dying & _late(zeros))


def vanishing_exploding(norms: Curve) -> tuple[Flags, Flags]:
    """By the gradient norms of the first and the last kernel: their ratio, and the first."""
    kernels = [i for i, name in enumerate(norms.names) if not _NO_KERNEL.search(name)]
    ends = kernels or [0]
    first, last = norms.values[:, ends[0]], norms.values[:, ends[-1]]
    ratio = first / last
    return (ratio < RATIO_LOW) & (first < FIRST_LOW), ratio > RATIO_HIGH


def _late(curve: Curve) -> Flags:
    return curve.steps >= curve.steps[0] + JUDGED_FROM * (curve.steps[-1] - curve.steps[0])


def _not_finite(curves: Curves, tags: tuple[str, ...]) -> Iterator[Bell]:
    for tag in tags:
        if curve := curves.get(tag):
            yield Bell("not finite", "numerics", curve, ~np.isfinite(curve.values))
