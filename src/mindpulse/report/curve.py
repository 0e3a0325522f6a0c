"""A curve over steps: raw and smoothed, with alerts as bands and actions as marks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.report import plot
from mindpulse.report.data import SEVERITIES, Action, Alert
from mindpulse.report.downsample import keep_extremes, smooth
from mindpulse.report.markup import Html, table, tag, void
from mindpulse.report.scalar import Scalar
from mindpulse.report.scales import Scale, fit_scale, format_number, step_scale
from mindpulse.report.words import Words
from mindpulse.series import Series

SMOOTH_SHARE = 40  # the smoothed line averages a fortieth of the run
SMOOTH_FROM_ROWS = 120  # a shorter curve is shown as it is
TABLE_ROWS = 12


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """What one curve shows."""

    id: str
    caption: plot.Caption
    name: str
    unit: str
    scalar: Scalar
    alerts: Sequence[Alert] = ()
    actions: Sequence[Action] = ()
    smoothed: bool = True


def draw(curve: Curve, words: Words) -> Html:
    """The figure: axes, legend, curve, marks for NaN and infinity, the data as a table."""
    scalar, shown = curve.scalar, curve.scalar.shown
    x = step_scale(scalar.first_step, scalar.last_step)
    y = fit_scale(shown.values)
    kept = keep_extremes(shown.steps, shown.values)
    steps, values = shown.steps[kept], shown.values[kept]
    lines = [_path(x, y, steps, values, "raw" if _is_smoothed(curve) else "line")]
    if _is_smoothed(curve):
        lines.append(_smooth_line(scalar, x, y))
    layers = [*_bands(curve, x), *_grid(y), *lines, *_bad_marks(x, steps, values)]
    picture = plot.svg(curve.caption, *layers, *_actions(curve, x), id_=curve.id)
    unit = (
        words.say("axis.log", unit=curve.unit or curve.name) if y.log else curve.unit or curve.name
    )
    box = tag(
        "div",
        plot.y_axis(y, unit),
        tag("div", picture, class_="plot", data_points=_points(x, y, steps, values), tabindex=0),
        plot.x_axis(x, words.say("axis.step")),
        class_="frame",
    )
    return plot.figure(
        curve.caption, plot.legend(_legend(curve, words)), box, _table(curve, words), class_="curve"
    )


def _is_smoothed(curve: Curve) -> bool:
    return curve.smoothed and curve.scalar.rows >= SMOOTH_FROM_ROWS


def _view(x: Scale, y: Scale, steps: NDArray[Any], values: NDArray[Any]) -> NDArray[np.float64]:
    """(T, 2) in units of the view box; the vertical axis of SVG points down."""
    across = x.position(steps) * plot.VIEW
    up = np.clip(y.position(values), -0.05, 1.05)
    return np.stack([across, (1 - up) * plot.VIEW], axis=1)


def _path(x: Scale, y: Scale, steps: NDArray[Any], values: NDArray[Any], class_: str) -> Html:
    """Breaks at rows that are not finite; a single finite row becomes a dot."""
    points = _view(x, y, steps, values)
    good = np.isfinite(values)
    begins = good & ~np.r_[False, good[:-1]]
    text = [
        f"{'M' if begin else 'L'}{px:.1f} {py:.1f}{'h0' if begin else ''}"
        for (px, py), begin in zip(points[good], begins[good], strict=True)
    ]
    return void("path", d="".join(text), class_=class_)


def smoothed(scalar: Scalar) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The moving average over a fortieth of the rows: (N,) steps and means of stretches of rows."""
    blocks = scalar.blocks
    middle = blocks.first_steps / 2 + blocks.last_steps / 2  # the sum may overflow
    return middle, smooth(blocks.mean[:, 0], len(blocks) // SMOOTH_SHARE, scalar.finite_rows)


def _smooth_line(scalar: Scalar, x: Scale, y: Scale) -> Html:
    middle, mean = smoothed(scalar)
    kept = keep_extremes(middle, mean, buckets=150)
    return _path(x, y, middle[kept], mean[kept], "line")


def _grid(y: Scale) -> list[Html]:
    places = [(1 - y.place(tick)) * plot.VIEW for tick in y.ticks(plot.Y_TICKS)]
    return [
        void("path", d=f"M0 {place:.1f}H{plot.VIEW}", class_="grid")
        for place in places
        if 0 <= place <= plot.VIEW
    ]


def _bad_marks(x: Scale, steps: NDArray[Any], values: NDArray[Any]) -> list[Html]:
    """A dot for each row that is NaN or infinite; a hair line where a stretch of them begins."""
    marks: list[Html] = []
    bad = ~np.isfinite(values)
    for index in np.flatnonzero(bad):
        across, edge = x.place(steps[index]) * plot.VIEW, 20
        if values[index] == -np.inf:
            edge = plot.VIEW - edge
        if not (index and bad[index - 1]):
            marks.append(void("path", d=f"M{across:.1f} 0V{plot.VIEW}", class_="bad-hair"))
        marks.append(void("path", d=f"M{across:.1f} {edge}h0", class_="bad-dot"))
    return marks


def _bands(curve: Curve, x: Scale) -> list[Html]:
    """Shades the steps on which an alert fired, by the gravest of them."""
    bands = []
    for first, last, severity in gravest_spans(curve.alerts, curve.scalar.last_step):
        left, right = (
            plot.VIEW * min(1.0, max(0.0, x.place(s))) for s in (first - 0.5, last + 0.5)
        )
        shape = f"M{left:.1f} 0V{plot.VIEW}H{right:.1f}V0Z"
        bands.append(void("path", d=shape, class_=f"band {severity}"))
    return bands


def gravest_spans(alerts: Sequence[Alert], end: int) -> list[tuple[int, int, str]]:
    """Disjoint spans (first step, last step, severity), each by the gravest alert in it.

    Args:
        end: last step of an alert that is still open.
    """
    changes: dict[int, Counter[int]] = {}
    for alert in alerts:
        last = end if alert.end_step is None else alert.end_step
        if last >= alert.since_step:
            changes.setdefault(alert.since_step, Counter())[alert.level] += 1
            changes.setdefault(last + 1, Counter())[alert.level] -= 1
    firing: Counter[int] = Counter()
    found: list[tuple[int, int, str]] = []
    for first, after in pairwise(sorted(changes)):
        firing.update(changes[first])
        levels = [level for level, count in firing.items() if count]
        if levels:
            found.append((first, after - 1, SEVERITIES[max(levels)]))
    return found


def _actions(curve: Curve, x: Scale) -> list[Html]:
    marks = []
    for action in curve.actions:
        if action.done_step is not None and action.status == "done":
            across = x.place(action.done_step) * plot.VIEW
            title = tag("title", f"{action.verb} {dict(action.args)}")
            marks.append(tag("path", title, d=f"M{across:.1f} 0V{plot.VIEW}", class_="action"))
    return marks


def _legend(curve: Curve, words: Words) -> list[tuple[str, str]]:
    smoothed = _is_smoothed(curve)
    items = [("raw", words.say("legend.raw")), ("line", words.say("legend.smooth"))]
    entries = items if smoothed else []
    bad = curve.scalar.first_bad_step
    if bad is not None:
        text = words.say("legend.bad", count=curve.scalar.not_finite, step=format_number(bad))
        entries.append(("bad", text))
    severities = sorted({alert.level: alert.severity for alert in curve.alerts}.items())
    entries += [
        (f"band {name}", words.say("legend.alert", name=words.severity(name)))
        for _, name in severities
    ]
    if any(action.status == "done" for action in curve.actions):
        entries.append(("action", words.say("legend.action")))
    return entries


def _points(x: Scale, y: Scale, steps: NDArray[Any], values: NDArray[Any]) -> str:
    """For the read-out under the pointer: [position across, position up, step, value]."""
    across, up = x.position(steps), y.position(values)
    rows = [
        [
            round(float(a), 5),
            round(float(b), 4) if np.isfinite(b) else None,
            int(s),
            format_number(float(v)),
        ]
        for a, b, s, v in zip(across, up, steps, values, strict=True)
    ]
    return json.dumps(rows, separators=(",", ":"))


def _table(curve: Curve, words: Words) -> Html:
    """The data in words for those who do not see the picture."""
    scalar = curve.scalar
    rows = _rows(scalar.shown) if scalar.complete else _means(scalar)
    key = "table.caption" if scalar.complete else "table.means"
    head = [words.say("axis.step"), f"{curve.name} [{curve.unit}]" if curve.unit else curve.name]
    body = table(head, rows, words.say(key, name=curve.name), class_="numbers")
    return tag("details", tag("summary", words.say("table.open")), body)


def _rows(shown: Series) -> list[list[str]]:
    chosen = np.unique(np.linspace(0, len(shown) - 1, TABLE_ROWS).astype(int))
    return [
        [format_number(int(shown.steps[i])), format_number(float(shown.values[i]))] for i in chosen
    ]


def _means(scalar: Scalar) -> list[list[str]]:
    parts = scalar.parts(TABLE_ROWS)
    spans = zip(parts.first_steps, parts.last_steps, parts.mean[:, 0], strict=True)
    return [
        [f"{format_number(int(first))}–{format_number(int(last))}", format_number(float(mean))]
        for first, last, mean in spans
    ]
