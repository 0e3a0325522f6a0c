"""Lines, areas and the grid of a picture, in units of the view box."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mindpulse.report import plot
from mindpulse.report.markup import Html, void
from mindpulse.report.scales import Scale

Floats = NDArray[np.float64]
MOST_POINTS = 1000


def line(x: Scale, y: Scale, across: Floats, values: Floats, class_: str) -> Html:
    """A line through points; the curves of a comparison have no gaps."""
    return void("path", d="M" + "L".join(_places(x, y, across, values)), class_=class_)


def band(x: Scale, y: Scale, across: Floats, low: Floats, high: Floats) -> Html:
    """The area between two lines."""
    there, back = _places(x, y, across, high), _places(x, y, across, low)[::-1]
    return void("path", d="M" + "L".join([*there, *back]) + "Z", class_="chance")


def _places(x: Scale, y: Scale, across: Floats, values: Floats) -> list[str]:
    count = min(len(across), MOST_POINTS)
    kept = np.unique(np.linspace(0, len(across) - 1, count).astype(int))
    left = x.position(across[kept]) * plot.VIEW
    down = (1 - np.clip(y.position(values[kept]), -0.05, 1.05)) * plot.VIEW
    return [f"{a:.1f} {b:.1f}" for a, b in zip(left, down, strict=True)]


def grid(y: Scale) -> list[Html]:
    """Horizontal lines at the ticks."""
    places = [(1 - y.place(tick)) * plot.VIEW for tick in y.ticks(plot.Y_TICKS)]
    return [
        void("path", d=f"M0 {place:.1f}H{plot.VIEW}", class_="grid")
        for place in places
        if 0 <= place <= plot.VIEW
    ]
