"""Two runs compared, and several seeds of the first as the noise that the second is judged by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mindpulse.compare.curve import Curve
from mindpulse.compare.dtw import warped_cost, warping_path
from mindpulse.compare.facts import RunFacts, common_level, facts_of, reach
from mindpulse.compare.grid import LEAST_ROWS, POINTS, WINDOW_SHARE, Axis, common_axis, course
from mindpulse.compare.noise import (
    bound_by_curves,
    bound_by_seeds,
    own_noise,
    prediction_factor,
)
from mindpulse.compare.parting import find_parting
from mindpulse.compare.result import Comparison, Courses, SeedNoise, Settings, Side
from mindpulse.compare.scale import Scale, fit_scale
from mindpulse.compare.verdict import Evidence, Verdict, judge

END_SHARE = 0.1  # of the common range; the level at the end is the mean over it


def compare(a: Side, b: Side, settings: Settings, seeds: Sequence[Curve] = ()) -> Comparison:
    """Compares two runs.

    Args:
        a: the reference; `seeds` are further runs of the same training.

    Example:
        >>> from mindpulse.compare.curve import curve_of
        >>> steps = np.arange(1000)
        >>> fast, slow = (2 + 8 * np.exp(-steps / width) for width in (50, 300))
        >>> a, b = (Side(curve_of(n, steps, steps * 0.5, v)) for n, v in (("a", fast), ("b", slow)))
        >>> found = compare(a, b, Settings())
        >>> found.verdict.state, round(found.courses.distance, 2)
        ('worse', 0.18)
    """
    curves = (a.curve, b.curve, *seeds)
    axis = common_axis(list(curves), settings.align)
    noise, courses = None, None
    if axis is None:
        verdict = _unknown(curves)
    else:
        courses = _courses(axis, curves, settings)
        noise = _seed_noise(courses, settings) if seeds else None
        verdict = judge(_evidence(a.curve, b.curve, settings, courses, noise))
    target = settings.target
    if target is None:
        target = common_level((a.curve, b.curve), settings.goal)
    ends = (None, None) if courses is None else courses.levels
    return Comparison(
        settings,
        _facts(a, ends[0], target, settings),
        _facts(b, ends[1], target, settings),
        verdict,
        target,
        courses,
        noise,
        curves,
    )


def _facts(side: Side, level: float | None, target: float | None, settings: Settings) -> RunFacts:
    there = None if target is None else reach(side.curve, target, settings.goal, side.tokens)
    return facts_of(side.curve, settings.goal, level, there, side.step_time_s)


def _unknown(curves: Sequence[Curve]) -> Verdict:
    rows = min(len(curve) for curve in curves)
    spans = ", ".join(
        f"{c.name}: {c.steps[0]}-{c.steps[-1]} ({len(c)})" if len(c) else f"{c.name}: -"
        for c in curves
    )
    return Verdict(
        "unknown", "unknown.rows" if rows < LEAST_ROWS else "unknown.range", {"spans": spans}
    )


def _courses(axis: Axis, curves: Sequence[Curve], settings: Settings) -> Courses:
    scale = fit_scale(axis, curves, settings.goal, [own_noise(axis, c) for c in curves])
    noises = [own_noise(axis, curve, scale.caps) for curve in curves]
    lines = np.stack([course(axis, curve, scale.caps) for curve in curves])
    levels = [_end(course(axis, curve)) for curve in curves]
    family, b = np.delete(lines, 1, axis=0), lines[1]
    a = family.mean(axis=0)
    by_chance = bound_by_seeds(family) if len(family) > 1 else bound_by_curves(noises[:2])
    radius = _radius(settings)
    path = warping_path(a / scale.unit, b / scale.unit, radius)
    difference = b - a
    bound = np.maximum(by_chance, settings.tolerance * scale.unit)
    return Courses(
        axis=axis,
        scale=scale,
        a=a,
        b=b,
        seeds=family,
        difference=difference,
        bound=bound,
        distance=_distance(a, b, scale, radius),
        unwarped=float(np.abs(difference).mean()) / scale.unit,
        levels=(float(np.mean(np.delete(levels, 1))), levels[1]),
        capped=any(_beyond(axis, curve, scale.caps) for curve in curves),
        end_difference=_end(difference),
        end_bound=max(_end_bound(family, by_chance), settings.tolerance * scale.unit),
        parting=find_parting(difference, bound),
        apart=bool(find_parting(difference, by_chance).spans),
        lag=_lag(axis, a, b, path),
        matches=_matches(axis, path),
        rows=tuple(_count(axis, curve) for curve in curves),
    )


def _radius(settings: Settings) -> int:
    return round(settings.band * POINTS)


def _distance(a: NDArray[np.float64], b: NDArray[np.float64], scale: Scale, radius: int) -> float:
    return warped_cost(a / scale.unit, b / scale.unit, radius) / POINTS


def _count(axis: Axis, curve: Curve) -> int:
    rows = axis.inside(curve)
    return int(rows.stop - rows.start)


def _beyond(axis: Axis, curve: Curve, caps: tuple[float, float]) -> bool:
    values = curve.values[axis.inside(curve)]
    return bool((values < caps[0]).any() or (values > caps[1]).any())


def _end(values: NDArray[np.float64]) -> float:
    return float(values[-round(END_SHARE * POINTS) :].mean())


def _end_bound(family: NDArray[np.float64], by_chance: NDArray[np.float64]) -> float:
    """What the difference of the levels at the end may be by chance."""
    if len(family) > 1:
        levels = [_end(line) for line in family]
        return prediction_factor(len(family)) * float(np.std(levels, ddof=1))
    return _end(by_chance) / float(np.sqrt(END_SHARE / WINDOW_SHARE))


def _lag(
    axis: Axis, a: NDArray[np.float64], b: NDArray[np.float64], path: NDArray[np.intp]
) -> float:
    """Median shift along the path, weighted by how much the curves move there."""
    i, j = path.T
    weight = np.abs(np.gradient(a))[i] + np.abs(np.gradient(b))[j]
    shift = j - i
    order = np.argsort(shift, kind="stable")
    total = np.cumsum(weight[order])
    if not total[-1] > 0:
        return 0.0
    middle = shift[order][total.searchsorted(total[-1] / 2)]
    return float(middle) * (axis.high - axis.low) / POINTS


def _matches(axis: Axis, path: NDArray[np.intp]) -> NDArray[np.float64]:
    total = np.bincount(path[:, 0], weights=path[:, 1], minlength=POINTS)
    mean = total / np.bincount(path[:, 0], minlength=POINTS)
    return axis.low + (mean + 0.5) * (axis.high - axis.low) / POINTS


def _seed_noise(courses: Courses, settings: Settings) -> SeedNoise:
    """B and the seeds are treated alike in the rank: each against the mean of all others."""
    distances = _to_the_others(courses.seeds, courses.scale, settings)
    *seeds, b = _to_the_others(np.vstack([courses.seeds, courses.b]), courses.scale, settings)
    further = sum(distance >= b for distance in seeds)
    return SeedNoise(distances, (1 + further) / (1 + len(seeds)), 1 / (1 + len(seeds)))


def _to_the_others(
    lines: NDArray[np.float64], scale: Scale, settings: Settings
) -> tuple[float, ...]:
    """The distance of each course to the mean of the others."""
    radius = _radius(settings)
    others = (np.delete(lines, k, axis=0).mean(axis=0) for k in range(len(lines)))
    return tuple(_distance(o, line, scale, radius) for o, line in zip(others, lines, strict=True))


def _evidence(
    a: Curve, b: Curve, settings: Settings, courses: Courses, noise: SeedNoise | None
) -> Evidence:
    return Evidence(
        goal=settings.goal,
        a_broken=a.broken_since,
        b_broken=b.broken_since,
        distance=courses.distance,
        limit=settings.limit,
        widest_seed=max(noise.distances) if noise else None,
        difference=courses.end_difference,
        told_difference=courses.levels[1] - courses.levels[0],
        bound=courses.end_bound,
        apart=courses.apart,
    )
