"""The last two axes of an array as a small map: as text, and as SVG for notebooks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.debugging.statistics import magnitudes

ROWS, COLUMNS = 12, 48
SHADES = " ▁▂▃▄▅▆▇█"
NOT_FINITE = "!"
CELL = 8  # pixels


@dataclass(frozen=True, slots=True)
class Picture:
    """A map.

    Attributes:
        cells: (row, column) float64, the means of their blocks; NaN where a block has a value that
            is not finite.
        where: which part of the array it shows, as "[0, 0, :, :]".
        shape: (rows, columns) of that part.
    """

    cells: NDArray[np.float64]
    where: str
    shape: tuple[int, int]

    @property
    def scale(self) -> tuple[float, float]:
        """The least and the greatest of the cells; (0, 0) where none is finite."""
        finite = self.cells[np.isfinite(self.cells)]
        return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)

    @property
    def levels(self) -> NDArray[np.float64]:
        """(row, column) from 0 to 1; NaN where a cell is not finite."""
        low, high = self.scale
        return (self.cells - low) / (high - low or 1.0)

    def text(self) -> list[str]:
        """A line for each row."""
        last = len(SHADES) - 1
        return [
            "".join(NOT_FINITE if np.isnan(x) else SHADES[round(x * last)] for x in row)
            for row in self.levels
        ]

    def svg(self) -> str:
        """An inline picture; cells that are not finite are red."""
        rows, columns = self.cells.shape
        rects = "".join(
            f'<rect x="{c * CELL}" y="{r * CELL}" width="{CELL}" height="{CELL}" '
            f'fill="{_colour(float(level))}"/>'
            for (r, c), level in np.ndenumerate(self.levels)
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{columns * CELL}" '
            f'height="{rows * CELL}" shape-rendering="crispEdges">{rects}</svg>'
        )


def picture(array: NDArray[Any]) -> Picture | None:
    """The map of the last two axes at the first index of the others; None of an empty array."""
    if not array.size:
        return None
    lead = max(0, array.ndim - 2)
    part = magnitudes(array[(0,) * lead])
    part = part.reshape(1, -1) if part.ndim < 2 else part
    where = ", ".join([*["0"] * lead, *[":"] * min(2, array.ndim)])
    cells = _blocks(_blocks(part, ROWS).T, COLUMNS).T
    return Picture(cells, f"[{where}]", (part.shape[0], part.shape[1]))


def _blocks(part: NDArray[Any], most: int) -> NDArray[np.float64]:
    """Means over at most so many blocks of rows; a block with a bad value is NaN."""
    count = min(most, len(part))
    edges = np.linspace(0, len(part), count + 1).astype(int)
    means = np.empty((count, part.shape[1]))
    for index, (first, beyond) in enumerate(pairwise(edges)):
        block = part[first:beyond].astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            means[index] = block.mean(0)
    means[~np.isfinite(means)] = np.nan
    return means


def _colour(level: float) -> str:
    """From white to a dark blue."""
    if np.isnan(level):
        return "#d62728"
    red, green, blue = (round(255 + level * (dark - 255)) for dark in (8, 48, 107))
    return f"#{red:02x}{green:02x}{blue:02x}"
