"""Copies of a training that take turns, and what their step times say; needs no MindSpore.

Whatever else the machine does meets all copies alike, so that a ratio within a few steps means
something even where the times themselves wander.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, TypeVar

Batch = TypeVar("Batch")
PLAIN, AGAIN = "plain", "plain again"  # the second tells how far the machine alone moves a ratio


def take_turns(
    copies: Mapping[str, Callable[[Batch], object]],
    batches: Callable[[int], Batch],
    steps: int,
) -> dict[str, list[float]]:
    """Seconds of `steps` steps of each copy, all on the same batches, in changing order."""
    rng = random.Random(0)
    names = list(copies)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for index in range(steps):
        batch = batches(index)
        for name in rng.sample(names, len(names)):
            began = time.perf_counter()
            copies[name](batch)
            seconds[name].append(time.perf_counter() - began)
    return seconds


def ratios(seconds: Sequence[float], plain: Sequence[float], group: int) -> list[float]:
    """Time over the time of the plain copy, by group of `group` steps, lowest first.

    Example:
        >>> ratios([2.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0], group=2)
        [1.0, 1.5]
    """
    starts = range(0, len(plain), group)
    return sorted(sum(seconds[i : i + group]) / sum(plain[i : i + group]) for i in starts)


def extra_ms(seconds: Sequence[float], plain: Sequence[float]) -> float:
    """Milliseconds more than the plain copy, the median over the steps.

    Example:
        >>> round(extra_ms([0.012, 0.015, 0.011], [0.010, 0.010, 0.010]), 3)
        2.0
    """
    return 1000 * median(one - base for one, base in zip(seconds, plain, strict=True))


def all_extra_ms(seconds: Mapping[str, Sequence[float]], warm_up: int) -> dict[str, Any]:
    """Extra milliseconds of each copy and the time of a plain step, the first steps left out."""
    kept = {name: list(values[warm_up:]) for name, values in seconds.items()}
    plain = kept.pop(PLAIN)
    extra = {name: extra_ms(values, plain) for name, values in kept.items()}
    return {"plain_ms": 1000 * median(plain), "steps": len(plain), "extra_ms": extra}
