"""What makes a distance mean the same for any pair: the unit is what the better run achieved.

The *fall* of a curve is how far it came: from its beginning (median of the rows in the first 2 %
of the compared range) to its best level (the level that 5 % of its course lie beyond). The unit is
the largest fall of all curves, so that a distance is a share of it. Two floors keep curves that do
not move from being blown up: 10 times the noise of the calmer moving average, and 5 % of the level
at the beginning. A value more than one unit above the beginning (and above what all curves rise
by), or below the best level, counts as one unit (as 4 standard deviations of a row, where the
noise is larger): a single exploding row does not decide, and a distance is bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mindpulse.compare.curve import Curve
from mindpulse.compare.grid import LARGEST, WINDOW_SHARE, Axis, course

Goal = Literal["min", "max", "none"]
Source = Literal["fall", "noise", "level"]
BEST_SHARE = 0.05
NOISE_FLOOR = 10.0
ROOM_FOR_NOISE = 4.0
LEVEL_FLOOR = 0.05
_RISING = ("acc", "f1", "bleu", "rouge", "reward", "auc", "precision", "recall", "score", "mfu")
_FALLING = ("loss", "perplexity", "ppl", "nll", "error", "wer", "cer")


@dataclass(frozen=True, slots=True)
class Scale:
    """The unit of a distance, in the unit of the values.

    Attributes:
        unit: positive.
        source: what set it: the largest fall, or one of the floors.
        caps: values beyond count as this much.
    """

    unit: float
    source: Source
    caps: tuple[float, float]


def goal_of(tag: str) -> Goal:
    """Which way is better, by the words of a tag; "none" where neither is known to be.

    Example:
        >>> goal_of("train_loss"), goal_of("eval/accuracy"), goal_of("learning_rate")
        ('min', 'max', 'none')
    """
    name = tag.lower()
    if any(word in name for word in _FALLING):
        return "min"
    return "max" if any(word in name for word in _RISING) else "none"


def fit_scale(
    axis: Axis, curves: Sequence[Curve], goal: Goal, noises: Sequence[NDArray[np.float64]]
) -> Scale:
    """The unit for all pairs out of these curves; it does not depend on their order."""
    sign = -1.0 if goal == "max" else 1.0
    starts = [_beginning(axis, curve) for curve in curves]
    courses = [sign * course(axis, curve) for curve in curves]
    best = [float(np.quantile(c, BEST_SHARE)) for c in courses]
    if goal == "none":
        starts = [float(np.quantile(c, 1 - BEST_SHARE)) for c in courses]
    falls = [sign * start - low for start, low in zip(starts, best, strict=True)]
    sizes: dict[Source, float] = {
        "fall": max(falls),
        "noise": NOISE_FLOOR * min(float(np.median(noise)) for noise in noises),
        "level": LEVEL_FLOOR * max(map(abs, starts)),
    }
    source = max(sizes, key=lambda name: sizes[name])
    unit = sizes[source] or 1.0  # all curves are zero throughout: any unit will do
    # What all curves rise by is common, and no reason to cut it off.
    high = [float(np.quantile(c, 1 - BEST_SHARE)) for c in courses]
    rise = max(0.0, min(top - sign * start for top, start in zip(high, starts, strict=True)))
    room = max(unit, ROOM_FOR_NOISE * _row_noise(axis, curves, noises))
    ends = sign * (min(best) - room), sign * (max(sign * s for s in starts) + rise + room)
    return Scale(unit, source, (min(ends), max(ends)))


def _row_noise(axis: Axis, curves: Sequence[Curve], noises: Sequence[NDArray[np.float64]]) -> float:
    """Standard deviation of single rows in the calmest tenth of the noisiest run.

    Caps within the noise would cut it off on one side only, and so shift the course.
    """
    rows = [axis.inside(curve) for curve in curves]
    windows = [max(1.0, (r.stop - r.start) * WINDOW_SHARE) for r in rows]
    calm = [float(np.quantile(noise, 0.1)) for noise in noises]
    return max(noise * float(np.sqrt(n)) for noise, n in zip(calm, windows, strict=True))


def _beginning(axis: Axis, curve: Curve) -> float:
    rows = axis.inside(curve)
    where = axis.position(curve)[rows]
    last = where.searchsorted(axis.low + WINDOW_SHARE * (axis.high - axis.low), "right")
    first = np.clip(curve.values[rows][: max(1, int(last))], -LARGEST, LARGEST)
    return float(np.median(first))
