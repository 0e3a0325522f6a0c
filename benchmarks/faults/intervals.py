"""Shares, rates and other figures, each with its 95 % interval."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

Z = 1.959963984540054  # the normal quantile of 0.975
LOW, HIGH = 0.025, 0.975
ROUNDS, SEED = 1000, 0

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its interval; NaN where there is nothing to tell.

    Attributes:
        count, total: what it was made of; 0, 0 where it is no share and no rate.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    count: int = 0
    total: int = 0


NOTHING = Figure(math.nan)


def share(count: int, total: int) -> Figure:
    """`count` of `total`, with the interval of Wilson (1927).

    Example:
        >>> found = share(9, 10)
        >>> found.value, round(found.low, 3), round(found.high, 3)
        (0.9, 0.596, 0.982)
    """
    if not total:
        return NOTHING
    value, square = count / total, Z * Z / total
    middle = (value + square / 2) / (1 + square)
    half = Z / (1 + square) * math.sqrt(value * (1 - value) / total + square / total / 4)
    return Figure(value, max(0.0, middle - half), min(1.0, middle + half), count, total)


def rate(count: int, total: int, per: int) -> Figure:
    """Events in every `per` of `total`, with the exact Poisson interval of Garwood (1936).

    Example:
        >>> round(rate(0, 20_000, per=10_000).high, 3)
        1.844
    """
    if not total:
        return NOTHING
    low = float(gammaincinv(count, LOW)) if count else 0.0
    high = float(gammaincinv(count + 1, HIGH))
    scale = per / total
    return Figure(count * scale, low * scale, high * scale, count, total)


def bootstrap(
    groups: Sequence[Sequence[Item]],
    statistic: Callable[[list[Item]], float],
    rounds: int = ROUNDS,
) -> Figure:
    """A statistic of runs with the percentile interval of the bootstrap.

    Runs are drawn as a whole, for what happens within one hangs together; from each group as many
    as it has. Rounds that tell nothing (NaN) are left out; infinite ones are not.

    Args:
        groups: for example the faulty and the healthy runs.
    """
    value = statistic([item for group in groups for item in group])
    if math.isnan(value):
        return NOTHING
    random = np.random.default_rng(SEED)
    drawn = np.array([statistic(_draw(groups, random)) for _ in range(rounds)])
    known = drawn[~np.isnan(drawn)]
    # A value that was met, not one between two: half of infinity is none.
    low, high = np.quantile(known, [LOW, HIGH], method="inverted_cdf")
    return Figure(value, float(low), float(high))


def _draw(groups: Sequence[Sequence[Item]], random: np.random.Generator) -> list[Item]:
    full = [group for group in groups if len(group)]
    return [group[i] for group in full for i in random.integers(0, len(group), len(group))]


def median(values: Sequence[float]) -> float:
    """The median; infinite where half of the values or more are, NaN of nothing."""
    return float(np.median(values)) if len(values) else math.nan


def average_precision(truth: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """Sum over falling thresholds of precision x what recall gains there; ties go together.

    Args:
        truth: (N,).
        scores: (N,), greater where truth is more likely.

    Example:
        >>> average_precision(np.array([True, False, True]), np.array([3.0, 2.0, 1.0]))
        0.8333333333333333
    """
    if not truth.any():
        return math.nan
    order = np.argsort(-scores, kind="stable")
    found = np.cumsum(truth[order])
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    gained = np.diff(found[ends], prepend=0) / found[-1]
    return float(np.sum(gained * found[ends] / (ends + 1)))


def f1_by_class(
    truth: Sequence[str], said: Sequence[str], classes: Sequence[str]
) -> dict[str, float]:
    """2 TP / (2 TP + FP + FN) of each class.

    Example:
        >>> f1_by_class(["loss", "loss", "none"], ["loss", "none", "loss"], ["loss"])
        {'loss': 0.5}
    """
    right = Counter(t for t, s in zip(truth, said, strict=True) if t == s)
    either = Counter(truth) + Counter(said)
    return {name: 2 * right[name] / either[name] if either[name] else 0.0 for name in classes}
