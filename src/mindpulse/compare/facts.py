"""What each run came to by itself: its ends, its best, its speed, when it reached a level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindpulse.compare.curve import Curve
from mindpulse.compare.grid import LEAST_ROWS, Axis, course
from mindpulse.compare.scale import BEST_SHARE, Goal

PAUSE = 100.0  # a gap of more than so many usual ones is a pause, not training


@dataclass(frozen=True, slots=True)
class Point:
    """A value and the step at which it was recorded."""

    step: int
    value: float


@dataclass(frozen=True, slots=True)
class Reached:
    """When a run reached a level.

    Attributes:
        step: of the first row at which the moving average was there.
        seconds: training time since the run's first row, pauses left out; None if not known.
        tokens: consumed by then; None if not recorded.
    """

    step: int
    seconds: float | None
    tokens: float | None = None


@dataclass(frozen=True, slots=True)
class RunFacts:
    """One run in numbers; None stands for what is not known.

    Attributes:
        bad_rows: rows that are NaN or infinite; they are left out of everything else.
        broken_since: first step of the NaNs in which the run ends.
        final, best: the last finite row, and the one with the best value.
        level: mean over the last tenth of the compared range.
        step_time_s: median time of a step.
    """

    name: str
    rows: int
    first_step: int | None
    last_step: int | None
    bad_rows: int
    first_bad_step: int | None
    broken_since: int | None
    final: Point | None
    best: Point | None
    level: float | None
    reached: Reached | None
    step_time_s: float | None


def facts_of(
    curve: Curve, goal: Goal, level: float | None, reached: Reached | None, step_time: float | None
) -> RunFacts:
    """The numbers of one run; `step_time` is measured by the run itself, else out of its clock."""
    known = len(curve) > 0
    bad = curve.bad_steps
    return RunFacts(
        name=curve.name,
        rows=len(curve) + len(bad),
        first_step=int(curve.steps[0]) if known else None,
        last_step=int(curve.steps[-1]) if known else None,
        bad_rows=len(bad),
        first_bad_step=int(bad[0]) if len(bad) else None,
        broken_since=curve.broken_since,
        final=_point(curve, -1) if known else None,
        best=_best(curve, goal) if known and goal != "none" else None,
        level=level,
        reached=reached,
        step_time_s=step_time if step_time is not None else clock_step_time(curve),
    )


def _point(curve: Curve, index: int) -> Point:
    return Point(int(curve.steps[index]), float(curve.values[index]))


def _best(curve: Curve, goal: Goal) -> Point:
    best = np.argmax(curve.values) if goal == "max" else np.argmin(curve.values)
    return _point(curve, int(best))


def clock_step_time(curve: Curve) -> float | None:
    """Median seconds a step, out of the times and steps of neighbouring rows; None if not known.

    Example:
        >>> from mindpulse.compare.curve import curve_of
        >>> steps, times = np.array([0, 10, 20]), np.array([0.0, 5.0, 10.0])
        >>> clock_step_time(curve_of("a", steps, times, np.zeros(3)))
        0.5
    """
    if len(curve) < 2:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):  # steps near 2**63 are equal as floats
        each = np.diff(curve.wall_times) / np.diff(curve.steps.astype(np.float64))
    known = each[np.isfinite(each)]
    middle = float(np.median(known)) if len(known) else 0.0
    return middle if middle > 0 else None


def training_seconds(curve: Curve) -> NDArray[np.float64] | None:
    """Seconds since the first row, (T,), without pauses and jumps of the clock; None if unknown."""
    gaps = np.diff(curve.wall_times)
    usual = gaps[gaps > 0]
    if not len(usual) or not np.isfinite(gaps).all():
        return None
    middle = float(np.median(usual))
    counted = np.where((gaps < 0) | (gaps > PAUSE * middle), middle, gaps)
    seconds: NDArray[np.float64] = np.concatenate([[0.0], np.cumsum(counted)])
    return seconds


def own_course(curve: Curve) -> tuple[Axis, NDArray[np.float64]]:
    """The moving average over all of a run, and its axis; needs two different steps."""
    axis = Axis("step", float(curve.steps[0]), float(curve.steps[-1]), 1.0)
    return axis, course(axis, curve)


def _has_course(curve: Curve) -> bool:
    """Whether there are rows enough, and steps apart: near 2**63 many are equal as floats."""
    return len(curve) >= LEAST_ROWS and float(curve.steps[0]) < float(curve.steps[-1])


def common_level(curves: Sequence[Curve], goal: Goal) -> float | None:
    """The best level that all runs reached; None where that means nothing."""
    if goal == "none" or not all(_has_course(curve) for curve in curves):
        return None
    if goal == "max":
        return min(float(np.quantile(own_course(c)[1], 1 - BEST_SHARE)) for c in curves)
    return max(float(np.quantile(own_course(c)[1], BEST_SHARE)) for c in curves)


def reach(curve: Curve, level: float, goal: Goal, tokens: Curve | None) -> Reached | None:
    """When the moving average of a run first was at `level` or better; None if never."""
    if goal == "none" or not _has_course(curve):
        return None
    axis, line = own_course(curve)
    there = np.flatnonzero(line >= level if goal == "max" else line <= level)
    if not len(there):
        return None
    row = int(curve.steps.astype(np.float64).searchsorted(axis.centres[there[0]]))
    row = min(row, len(curve) - 1)
    clock = training_seconds(curve)
    seconds = None if clock is None else float(clock[row])
    step = int(curve.steps[row])
    return Reached(step, seconds, _tokens_at(tokens, step))


def _tokens_at(tokens: Curve | None, step: int) -> float | None:
    """The last count at or before a step."""
    if tokens is None:
        return None
    index = int(tokens.steps.searchsorted(step, "right")) - 1
    return float(tokens.values[index]) if index >= 0 else None
