"""The pictures of a comparison: both courses, their difference, and how one maps on the other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mindpulse.cli.comparison.lines import Floats, band, grid, line
from mindpulse.cli.comparison.words import Told, percent
from mindpulse.compare.grid import Axis
from mindpulse.compare.result import Comparison, Courses
from mindpulse.report import plot
from mindpulse.report.downsample import keep_extremes
from mindpulse.report.markup import Html, tag, void
from mindpulse.report.scales import Scale, fit_scale, format_number, step_scale

RAW_QUANTILES = (0.005, 0.995)  # of the rows; further ones do not squeeze the picture
DRAWN_POINTS = 250

STYLE = """
:root { --second: #b4470b; --second-raw: #dc9d76; --family: #8fb8de; }
@media screen and (prefers-color-scheme: dark) {
  :root { --second: #f2994a; --second-raw: #8a5a32; --family: #35587c; }
}
path.b { stroke: var(--second); stroke-width: 2; }
path.b-raw { stroke: var(--second-raw); stroke-width: 1; opacity: 0.7; }
path.a-raw { stroke: var(--raw); stroke-width: 1; opacity: 0.7; }
path.seed { stroke: var(--family); stroke-width: 1.2; }
path.diagonal { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 4 3; }
.plot path.chance { stroke: none; fill: var(--soft); opacity: 0.16; }
.key.b { background: var(--second); } .key.seed { background: var(--family); }
.key.diagonal { background: var(--soft); }
.key.chance { height: 11px; background: var(--soft); opacity: 0.3; }
.verdict .head p { max-width: 75ch; }
.verdict .whole { grid-template-columns: minmax(0, 1fr); }
.top { padding-bottom: 1rem; }
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """One picture: its axes, its layers in units of the view box, its words.

    Attributes:
        legend: (CSS class, text) of each line.
        points: for the read-out under the pointer, JSON.
    """

    id: str
    caption: plot.Caption
    x: Scale
    y: Scale
    x_name: str
    y_name: str
    layers: tuple[Html, ...]
    legend: tuple[tuple[str, str], ...] = ()
    points: str = "[]"


def figures_of(found: Comparison, told: Told) -> list[Figure]:
    """The pictures of a comparison; none where nothing could be compared."""
    courses = found.courses
    if courses is None:
        return []
    return [
        _curves(found, courses, told),
        _difference(courses, told),
        _warping(found, courses, told),
    ]


def draw(figure: Figure) -> Html:
    """A picture with its axes as HTML."""
    picture = plot.svg(figure.caption, *figure.layers, id_=figure.id)
    box = tag(
        "div",
        plot.y_axis(figure.y, figure.y_name),
        tag("div", picture, class_="plot", data_points=figure.points, tabindex=0),
        plot.x_axis(figure.x, figure.x_name),
        class_="frame",
    )
    return plot.figure(figure.caption, plot.legend(figure.legend), box, class_="curve")


def _curves(found: Comparison, courses: Courses, told: Told) -> Figure:
    x, axis = _x_scale(courses.axis), courses.axis
    rows = [_rows(found, index) for index in (0, 1)]
    raw = [np.quantile(values, RAW_QUANTILES) for _, values in rows]
    y = fit_scale(np.concatenate([courses.a, courses.b, *raw, courses.seeds.ravel()]))
    lines = [line(x, y, *rows[0], "a-raw"), line(x, y, *rows[1], "b-raw")]
    if len(courses.seeds) > 1:
        lines += [line(x, y, axis.centres, seed, "seed") for seed in courses.seeds]
    lines += [line(x, y, axis.centres, courses.a, "line"), line(x, y, axis.centres, courses.b, "b")]
    text = told.say("figure.curves.caption")
    description = told.say("describe.curves", tag=told.tag, **_ends(courses))
    return Figure(
        "compare-curves",
        plot.Caption(told.say("figure.curves"), text, description),
        x,
        y,
        _x_name(axis, told),
        told.tag,
        (*grid(y), *_target(found, x, y), *lines, *_parting(courses, x)),
        _legend(found, courses, told),
        _points(courses, x, y, courses.b),
    )


def _rows(found: Comparison, index: int) -> tuple[Floats, Floats]:
    """Positions and values of the rows of one curve inside the range, thinned for drawing."""
    courses, curve = found.courses, found.curves[index]
    assert courses is not None
    inside = courses.axis.inside(curve)
    kept = keep_extremes(curve.steps[inside], curve.values[inside], buckets=DRAWN_POINTS)
    return courses.axis.position(curve)[inside][kept], curve.values[inside][kept]


def _difference(courses: Courses, told: Told) -> Figure:
    x, axis = _x_scale(courses.axis), courses.axis
    limits = np.array([-1.5, 1.5]) * np.median(courses.bound)
    y = fit_scale(np.concatenate([courses.difference, limits]), log=False)
    points = axis.centres
    layers = [
        *grid(y),
        band(x, y, points, -courses.bound, courses.bound),
        line(x, y, np.array([axis.low, axis.high]), np.zeros(2), "diagonal"),
        line(x, y, points, courses.difference, "b"),
        *_parting(courses, x),
    ]
    caption = plot.Caption(told.say("figure.difference"), told.say("figure.difference.caption"))
    legend = (("b", told.say("figure.difference")), ("chance", told.say("legend.bound")))
    reading = _points(courses, x, y, courses.difference)
    name = _x_name(axis, told)
    return Figure(
        "compare-difference", caption, x, y, name, "B - A", tuple(layers), legend, reading
    )


def _warping(found: Comparison, courses: Courses, told: Told) -> Figure:
    x, axis = _x_scale(courses.axis), courses.axis
    ends = np.array([axis.low, axis.high])
    layers = (
        *grid(x),
        line(x, x, ends, ends, "diagonal"),
        line(x, x, axis.centres, courses.matches, "line"),
    )
    text = told.say("figure.warping.caption", band=percent(found.settings.band))
    caption = plot.Caption(told.say("figure.warping"), text)
    name = _x_name(axis, told)
    reading = _points(courses, x, x, courses.matches)
    return Figure(
        "compare-warping", caption, x, x, f"A, {name}", f"B, {name}", layers, points=reading
    )


def _parting(courses: Courses, x: Scale) -> list[Html]:
    """A mark where the curves part, if they stay apart."""
    since = courses.parting.since
    if since is None:
        return []
    across = x.place(float(courses.axis.centres[since])) * plot.VIEW
    return [void("path", d=f"M{across:.1f} 0V{plot.VIEW}", class_="action")]


def _target(found: Comparison, x: Scale, y: Scale) -> list[Html]:
    if found.settings.target is None:
        return []
    ends, level = np.array([x.low, x.high]), np.full(2, found.settings.target)
    return [line(x, y, ends, level, "diagonal")]


def _legend(found: Comparison, courses: Courses, told: Told) -> tuple[tuple[str, str], ...]:
    items = [
        ("line", told.say("legend.a", name=found.a.name)),
        ("b", told.say("legend.b", name=found.b.name)),
    ]
    if len(courses.seeds) > 1:
        mean = told.say("reference.seeds", count=len(courses.seeds))
        items[0] = ("line", told.say("legend.a", name=mean))
        items.append(("seed", told.say("legend.seeds")))
    if found.settings.target is not None:
        items.append(("diagonal", told.say("legend.target", target=f"{found.settings.target:.4g}")))
    if courses.parting.since is not None:
        items.append(("action", told.say("legend.parting")))
    return tuple(items)


def _x_scale(axis: Axis) -> Scale:
    if axis.align == "step":
        return step_scale(round(axis.low), round(axis.high))
    return Scale(axis.low, axis.high)


def _x_name(axis: Axis, told: Told) -> str:
    return told.say("axis.step" if axis.align == "step" else "axis.progress")


def _ends(courses: Courses) -> dict[str, str]:
    values = {
        "low": courses.axis.low,
        "high": courses.axis.high,
        "a_first": courses.a[0],
        "a_last": courses.a[-1],
        "b_first": courses.b[0],
        "b_last": courses.b[-1],
    }
    return {name: format_number(float(f"{value:.4g}")) for name, value in values.items()}


def _points(courses: Courses, x: Scale, y: Scale, shown: Floats) -> str:
    """For the read-out: [position across, position up, step, text] of a few hundred points."""
    rows: list[Sequence[object]] = []
    for index in range(0, len(shown), len(shown) // DRAWN_POINTS):
        where = float(courses.axis.centres[index])
        a, b = (format_number(float(curve[index])) for curve in (courses.a, courses.b))
        up = round(float(np.clip(y.place(float(shown[index])), 0, 1)), 4)
        step = round(where) if courses.axis.align == "step" else round(where, 3)
        rows.append([round(x.place(where), 5), up, step, f"A {a} · B {b}"])
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
