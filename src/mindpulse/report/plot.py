"""The frame that all pictures share: a plot that stretches, and texts that do not.

The SVG fills its box at any width (preserveAspectRatio="none"), so lines are drawn with
non-scaling strokes and all labels are HTML placed in percent: they keep their size at 400 px.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mindpulse.report.markup import Html, join, tag
from mindpulse.report.scales import Scale, format_number

Y_TICKS, X_TICKS = 6, 6
VIEW = 1000  # units of both sides of an SVG's view box


@dataclass(frozen=True, slots=True)
class Caption:
    """The texts of a figure: what it shows, how to read it, and what a listener hears."""

    title: str
    text: str = ""
    description: str = ""


def percent(position: float) -> str:
    """A position between 0 and 1 as CSS wants it.

    Example:
        >>> percent(0.25)
        '25%'
    """
    return f"{100 * position:.6g}%"


def y_axis(scale: Scale, unit: str) -> Html:
    """Tick labels at the left of the plot, the unit above them."""
    labels = [
        tag("span", text, style=f"bottom:{percent(place)}")
        for place, text in _ticks(scale, Y_TICKS)
    ]
    return tag("div", tag("i", unit), *labels, class_="y-axis", aria_hidden="true")


def x_axis(scale: Scale, name: str) -> Html:
    """Tick labels under the plot and the name of the axis."""
    labels = [
        tag("span", text, style=f"left:{percent(place)}", class_="last" if place > 0.96 else None)
        for place, text in _ticks(scale, X_TICKS)
    ]
    return tag("div", *labels, tag("i", name), class_="x-axis", aria_hidden="true")


def _ticks(scale: Scale, count: int) -> list[tuple[float, str]]:
    places = [(scale.place(v), format_number(v)) for v in scale.ticks(count)]
    return [(place, text) for place, text in places if -0.001 <= place <= 1.001]


def figure(caption: Caption, *parts: str, class_: str = "", id_: str | None = None) -> Html:
    """A figure with its title above and its caption below."""
    text = tag("p", caption.text, class_="caption") if caption.text else Html("")
    head = tag("figcaption", tag("h3", caption.title), text)
    return tag("figure", head, *parts, class_=class_ or None, id=id_)


def svg(caption: Caption, *parts: str, id_: str) -> Html:
    """The stretching picture, with a title and a description for screen readers."""
    names = join(
        tag("title", caption.title, id=f"{id_}-t"),
        tag("desc", caption.description or caption.text, id=f"{id_}-d"),
    )
    return tag(
        "svg",
        names,
        *parts,
        viewBox=f"0 0 {VIEW} {VIEW}",
        preserveAspectRatio="none",
        role="img",
        aria_labelledby=f"{id_}-t {id_}-d",
    )


def legend(items: Sequence[tuple[str, str]]) -> Html:
    """Swatches with their names: (CSS class, text)."""
    entries = [tag("li", tag("b", class_=f"key {name}"), text) for name, text in items]
    return tag("ul", *entries, class_="legend")
