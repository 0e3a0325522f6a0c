"""Two lines in a terminal: dots of a Braille cell in colour, letters where there is no colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mindpulse.report.scales import Scale, fit_scale, format_number

if TYPE_CHECKING:
    from rich.console import Console

# Bits of the dots of a Braille cell, by row and column.
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_BRAILLE = 0x2800
COLOURS = {1: "blue", 2: "yellow", 3: "magenta"}  # A, B, both
LETTERS = {0: " ", 1: "A", 2: "B", 3: "*"}
LABEL = 10
ROWS, MOST_COLUMNS = 12, 100


def print_chart(a: NDArray[np.float64], b: NDArray[np.float64], out: Console) -> None:
    """Prints two curves of the same length on one scale; "*" or magenta is where both are."""
    from rich.text import Text

    columns = max(20, min(MOST_COLUMNS, out.width - LABEL - 2))
    y = fit_scale(np.concatenate([a, b]), air=0.0)
    colours = out.color_system is not None and out.encoding.lower().startswith("utf")
    lines = _dots(a, b, y, columns) if colours else _letters(a, b, y, columns)
    for row, line in enumerate(lines):
        value = {0: y.high, ROWS - 1: y.low}.get(row)
        label = "" if value is None else format_number(float(f"{value:.4g}"))
        text = Text(f"{label:>{LABEL}} |")
        for owner, mark in line:
            text.append(mark, COLOURS.get(owner, "") if colours else "")
        text.rstrip()
        out.print(text)


def _levels(curve: NDArray[np.float64], y: Scale, rows: int, columns: int) -> NDArray[np.intp]:
    """The row of each column, 0 at the top, (columns,)."""
    chosen = np.linspace(0, len(curve) - 1, columns).astype(int)
    up = np.clip(y.position(curve[chosen]), 0, 1)
    level: NDArray[np.intp] = np.rint((1 - up) * (rows - 1)).astype(np.intp)
    return level


def _letters(
    a: NDArray[np.float64], b: NDArray[np.float64], y: Scale, columns: int
) -> list[list[tuple[int, str]]]:
    owner = np.zeros((ROWS, columns), int)
    for bit, curve in ((1, a), (2, b)):
        owner[_levels(curve, y, ROWS, columns), np.arange(columns)] |= bit
    return [[(int(cell), LETTERS[int(cell)]) for cell in row] for row in owner]


def _dots(
    a: NDArray[np.float64], b: NDArray[np.float64], y: Scale, columns: int
) -> list[list[tuple[int, str]]]:
    owner = np.zeros((ROWS, columns), int)
    dots = np.zeros((ROWS, columns), int)
    across = np.arange(2 * columns)
    for bit, curve in ((1, a), (2, b)):
        down = _levels(curve, y, 4 * ROWS, 2 * columns)
        np.bitwise_or.at(owner, (down // 4, across // 2), bit)
        np.bitwise_or.at(dots, (down // 4, across // 2), _DOTS[down % 4, across % 2])
    return [
        [(int(o), chr(_BRAILLE + int(d))) for o, d in zip(*rows, strict=True)]
        for rows in zip(owner, dots, strict=True)
    ]
