"""A small curve as SVG that needs no style sheet: a notebook may throw one away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.report.curve import gravest_spans
from mindpulse.report.data import Alert
from mindpulse.report.downsample import keep_extremes
from mindpulse.report.markup import Html, tag, void
from mindpulse.report.scalar import Scalar
from mindpulse.report.scales import Scale, fit_scale, step_scale

WIDTH, HEIGHT = 360, 96  # pixels
BUCKETS = WIDTH // 2
LINE, BAD = "#2f6fb0", "#d6145f"
SEVERITY_COLOURS = {
    "info": "#2b6cb0",
    "warning": "#b7791f",
    "error": "#c2410c",
    "critical": "#b3124f",
}


def spark(scalar: Scalar, alerts: Sequence[Alert], description: str) -> Html:
    """A curve over steps: no extreme is lost, NaN and infinity are marked, alerts are bands.

    Args:
        description: what a listener hears.
    """
    shown = scalar.shown
    x, y = step_scale(scalar.first_step, scalar.last_step), fit_scale(shown.values)
    kept = keep_extremes(shown.steps, shown.values, BUCKETS)
    steps, values = shown.steps[kept], shown.values[kept]
    return tag(
        "svg",
        tag("title", description),
        *_bands(alerts, scalar.last_step, x),
        _line(x, y, steps, values),
        *_bad(x, steps, values),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        width=WIDTH,
        height=HEIGHT,
        role="img",
        style="display:block;max-width:100%",
    )


def _line(x: Scale, y: Scale, steps: NDArray[Any], values: NDArray[Any]) -> Html:
    """Breaks where a row is not finite; a single finite row is a dot."""
    across, up = x.position(steps) * WIDTH, (1 - np.clip(y.position(values), 0, 1)) * HEIGHT
    good = np.isfinite(values)
    begins = good & ~np.r_[False, good[:-1]]
    path = "".join(
        f"{'M' if begin else 'L'}{px:.1f} {py:.1f}{'h0' if begin else ''}"
        for px, py, begin in zip(across[good], up[good], begins[good], strict=True)
    )
    return void("path", d=path, fill="none", stroke=LINE, stroke_width=1.5, stroke_linecap="round")


def _bad(x: Scale, steps: NDArray[Any], values: NDArray[Any]) -> list[Html]:
    places = x.position(steps[~np.isfinite(values)]) * WIDTH
    return [void("circle", cx=f"{place:.1f}", cy=5, r=3, fill=BAD) for place in places]


def _bands(alerts: Sequence[Alert], last_step: int, x: Scale) -> list[Html]:
    bands = []
    for first, last, severity in gravest_spans(alerts, last_step):
        left, right = (min(1.0, max(0.0, x.place(s))) * WIDTH for s in (first - 0.5, last + 0.5))
        bands.append(
            void(
                "rect",
                x=f"{left:.1f}",
                y=0,
                width=f"{right - left:.1f}",
                height=HEIGHT,
                fill=SEVERITY_COLOURS[severity],
                fill_opacity=0.15,
            )
        )
    return bands
