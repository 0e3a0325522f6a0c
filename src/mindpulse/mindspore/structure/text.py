"""The places as a table that fits a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from mindpulse.mindspore.structure.place import SKIPPED, Place

_WIDTHS = (36, 13, 9, 8, 9)  # path, kind, how, size, state
_LINE = 120


def table(places: Iterable[Place]) -> str:
    """One line for each place: path, kind, how, size, state, reason; at most 120 columns."""
    lines = [_line(("path", "kind", "how", "size", "state", "reason"))]
    lines += [_line(_cells(place)) for place in places]
    return "\n".join(lines)


def _cells(place: Place) -> tuple[str, ...]:
    how = "-" if place.state == SKIPPED else place.how
    return (place.path or "-", place.kind, how, _size(place), place.state, place.reason)


def _size(place: Place) -> str:
    if place.heads:
        return f"{place.heads} heads"
    if place.size and place.kind == "router":
        return f"{place.top_k} of {place.size}"
    return str(place.size) if place.size else "-"


def _line(cells: tuple[str, ...]) -> str:
    columns = zip(cells, _WIDTHS, strict=False)
    start = " ".join(shorten(text, width).ljust(width) for text, width in columns)
    indent = "\n" + " " * (len(start) + 1)
    lines = textwrap.wrap(cells[-1], _LINE - len(start) - 1) or [""]
    return f"{start} {indent.join(lines)}".rstrip()


def shorten(text: str, width: int) -> str:
    """At most `width` characters, the middle left out."""
    if len(text) <= width:
        return text
    front = (width - 1) // 2
    return f"{text[:front]}…{text[len(text) - (width - 1 - front) :]}"
