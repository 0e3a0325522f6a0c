"""A picture in a terminal: two pixels per character cell, or shades where there is no colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.report import colour
from mindpulse.report.maps import share, shrink

if TYPE_CHECKING:
    from rich.text import Text

UPPER_HALF = "▀"
SHADES = " ░▒▓█"
ASCII_SHADES = " .:+#@"
MAX_CELLS = 64


def picture(values: NDArray[Any], top: float, limit: int = MAX_CELLS) -> Text:
    """A map as coloured half blocks.

    Args:
        values: (height, width), from 0 to `top`; NaN and infinities get their own colour.
        top: the value of the brightest colour; the scale is a square root, as in the report.
        limit: at most so many cells a side; larger maps keep the largest value of each block.
    """
    from rich.style import Style
    from rich.text import Text

    pixels = _pixels(values, top, limit)
    if len(pixels) % 2:
        pixels = np.concatenate([pixels, np.zeros_like(pixels[:1])])
    text = Text()
    for upper, lower in zip(pixels[0::2], pixels[1::2], strict=True):
        for above, below in zip(upper, lower, strict=True):
            background = colour.css(below) if below[3] else None
            text.append(UPPER_HALF, Style(color=colour.css(above), bgcolor=background))
        text.append("\n")
    return text


def _pixels(values: NDArray[Any], top: float, limit: int) -> NDArray[np.uint8]:
    small = shrink(values, limit)
    return colour.paint(share(small, top), ~np.isfinite(small))


def shades(values: NDArray[Any], top: float, limit: int = MAX_CELLS, unicode: bool = True) -> str:
    """A map in characters of growing density, two wide so that cells look square.

    Args:
        values: (height, width), from 0 to `top`; "?" marks what is not finite.
        unicode: False uses ASCII only.

    Example:
        >>> shades(np.eye(2), top=1.0, unicode=False)
        '@@  \\n  @@'
    """
    small = shrink(values, limit)
    ramp = SHADES if unicode else ASCII_SHADES
    level = np.rint(share(small, top) * (len(ramp) - 1)).astype(int)
    marks = np.where(np.isfinite(small), np.array(list(ramp))[level], "?")
    return "\n".join("".join(mark * 2 for mark in line) for line in marks)
