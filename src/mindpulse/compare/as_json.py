"""A comparison as plain values for JSON: `mindpulse-compare/1`."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.compare.differences import Differences
from mindpulse.compare.grid import POINTS
from mindpulse.compare.result import Comparison, Courses

FORMAT = "mindpulse-compare/1"
POINTS_KEPT = 200


def comparison_object(found: Comparison, differences: Differences | None) -> dict[str, Any]:
    """Everything but the pictures; the courses thinned to 200 points."""
    courses, settings = found.courses, found.settings
    value: dict[str, Any] = {
        "format": FORMAT,
        "verdict": {
            "state": found.verdict.state,
            "reason": found.verdict.reason,
            "sentence": {lang: found.verdict.sentence(lang) for lang in ("en", "zh")},
        },
        "settings": dataclasses.asdict(settings),
        "target": found.target,
        "a": dataclasses.asdict(found.a),
        "b": dataclasses.asdict(found.b),
        "ratios": ratios(found),
        "compared": None if courses is None else _compared(courses),
        "seeds": None if found.seeds is None else dataclasses.asdict(found.seeds),
    }
    if differences is not None:
        value["differences"] = dataclasses.asdict(differences)
    return value


def ratios(found: Comparison) -> dict[str, float | None]:
    """How B stands to A: time of a step, and how many times as fast it reached the target."""
    a, b = found.a, found.b
    steps = seconds = None
    if a.reached and b.reached:
        steps = _ratio(a.reached.step - (a.first_step or 0), b.reached.step - (b.first_step or 0))
        seconds = _ratio(a.reached.seconds, b.reached.seconds)
    return {
        "step_time": _ratio(b.step_time_s, a.step_time_s),
        "speedup_steps": steps,
        "speedup_time": seconds,
    }


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _compared(courses: Courses) -> dict[str, Any]:
    axis, scale, parting = courses.axis, courses.scale, courses.parting
    return {
        "low": axis.low,
        "high": axis.high,
        "share": axis.share,
        "rows": list(courses.rows),
        "points": POINTS,
        "unit": scale.unit,
        "unit_source": scale.source,
        "caps": list(scale.caps),
        "distance": courses.distance,
        "unwarped": courses.unwarped,
        "end_difference": courses.end_difference,
        "capped": courses.capped,
        "end_bound": courses.end_bound,
        "parts_at": None if parting.since is None else place(courses, parting.since),
        "apart": [[place(courses, first), place(courses, last)] for first, last in parting.spans],
        "apart_share": parting.share,
        "lag": courses.lag,
        "curve": {
            "position": _thinned(axis.centres),
            "a": _thinned(courses.a),
            "b": _thinned(courses.b),
            "bound": _thinned(courses.bound),
        },
    }


def place(courses: Courses, point: int) -> float:
    """The position of a point on the axis: a whole step, or a share of the run."""
    where = float(courses.axis.centres[point])
    return float(round(where)) if courses.axis.align == "step" else where


def _thinned(values: NDArray[np.float64]) -> list[float]:
    return [float(v) for v in values[:: POINTS // POINTS_KEPT]]
