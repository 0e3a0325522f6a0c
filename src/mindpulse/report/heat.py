"""A heat map of rows over steps: one picture, whatever the length of the run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mindpulse.report import colour, plot
from mindpulse.report.data import Heat
from mindpulse.report.markup import Html, join, table, tag, void
from mindpulse.report.png import data_uri
from mindpulse.report.scales import Scale, fit_scale, format_number, step_scale
from mindpulse.report.words import Words

MAX_TABLE_ROWS = 128


def draw(heat: Heat, caption: plot.Caption, unit: str, words: Words, id_: str) -> Html:
    """The figure: row names, pixels, axis of steps, colour bar with its scale."""
    scale = fit_scale(heat.values, air=0.0) if heat.bounds is None else Scale(*heat.bounds)
    pixels = colour.paint(scale.position(heat.values), heat.not_finite)
    picture = void(
        "img",
        src=data_uri(pixels),
        alt=caption.description or caption.text,
        class_="pixels",
        id=id_,
    )
    x = step_scale(heat.first_step, heat.last_step)
    box = tag(
        "div",
        _row_names(heat.rows),
        tag("div", picture, class_="plot", style=f"height:{_height(len(heat.rows))}px"),
        plot.x_axis(x, words.say("axis.step")),
        class_="frame heat",
    )
    extra = [("bad", words.say("legend.not_finite"))] if heat.not_finite.any() else []
    if (np.isnan(heat.values) & ~heat.not_finite).any():
        extra.append(("no-row", words.say("legend.no_row")))
    legends = join(_bar_of(scale, unit, words), plot.legend(extra))
    return plot.figure(caption, legends, box, _table(heat, caption.title, words))


def _table(heat: Heat, name: str, words: Words) -> Html:
    """The picture in numbers, for those who do not see it."""
    head = [words.say(f"column.{key}") for key in ("row", "least", "largest", "last", "bad")]
    rows = [
        _numbers(label, heat.values[index], heat.not_finite[index])
        for index, label in enumerate(heat.rows[:MAX_TABLE_ROWS])
    ]
    body = table(head, rows, words.say("heat.table", name=name), class_="numbers")
    return tag("details", tag("summary", words.say("table.open")), body)


def _numbers(label: str, values: NDArray[np.float64], bad: NDArray[np.bool_]) -> list[str]:
    known = values[np.isfinite(values)]
    figures = [known.min(), known.max(), known[-1]] if len(known) else [np.nan] * 3
    return [label, *(format_number(float(x)) for x in figures), format_number(int(bad.sum()))]


def _height(rows: int) -> int:
    return max(96, min(520, rows * 26))


def _row_names(rows: Sequence[str]) -> Html:
    """All names while they fit, else every n-th."""
    stride = max(1, -(-len(rows) // 24))
    labels = [
        tag("span", name, style=f"top:{plot.percent((index + 0.5) / len(rows))}")
        for index, name in enumerate(rows)
        if index % stride == 0
    ]
    return tag("div", *labels, class_="row-names", aria_hidden="true")


def colour_bar(name: str, values: tuple[float, float, float]) -> Html:
    """The colours under their name, with the values of the darkest, the middle, the brightest."""
    ramp = data_uri(colour.paint(np.linspace(0, 1, 128)[None, :]))
    texts = [tag("span", format_number(_round(value))) for value in values]
    bar = tag("div", void("img", src=ramp, alt=""), tag("div", *texts), class_="ramp")
    return tag("div", tag("i", name), bar, class_="colour-bar")


def _bar_of(scale: Scale, unit: str, words: Words) -> Html:
    if scale.log:
        middle = 10 ** ((np.log10(scale.low) + np.log10(scale.high)) / 2)
        unit = words.say("axis.log", unit=unit)
    else:
        middle = scale.low / 2 + scale.high / 2
    return colour_bar(unit, (scale.low, float(middle), scale.high))


def _round(value: float) -> float:
    return float(f"{value:.2g}")
