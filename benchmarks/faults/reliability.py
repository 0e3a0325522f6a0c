"""How good forecasts of health are: Brier score, reliability, area under the curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.common import table
from benchmarks.faults.intervals import ROUNDS, Figure, bootstrap, share

BINS = 10
SIZE, EDGE = 360, 48  # pixels: the square of the diagram, and what is around it


@dataclass(frozen=True, slots=True)
class Forecast:
    """What was said of a run, and what it is.

    Attributes:
        said: the probability that it is healthy.
    """

    said: float
    healthy: bool


@dataclass(frozen=True, slots=True)
class Bin:
    """Forecasts between two limits.

    Attributes:
        told: at least one.
        observed: share of healthy runs, with the interval of Wilson.
    """

    low: float
    high: float
    told: tuple[Forecast, ...]
    observed: Figure

    @property
    def mean(self) -> float:
        """Of the forecasts."""
        return mean_of(self.told)


def mean_of(told: Sequence[Forecast]) -> float:
    """Mean forecast."""
    return float(np.mean([one.said for one in told]))


def moved(told: Sequence[Forecast], prior: float, wanted: float) -> list[Forecast]:
    """What would have been said with another prior, so another share of healthy runs.

    Example:
        >>> [round(one.said, 3) for one in moved([Forecast(0.8, True)], 0.5, 0.9)]
        [0.973]
    """
    good, bad = wanted / prior, (1.0 - wanted) / (1.0 - prior)
    odds = [(one.said * good, (1.0 - one.said) * bad) for one in told]
    return [
        Forecast(up / (up + down), one.healthy) for (up, down), one in zip(odds, told, strict=True)
    ]


def brier(told: Sequence[Forecast]) -> float:
    """Mean squared distance of the forecasts from what was: Brier (1950); 0 is best.

    Example:
        >>> brier([Forecast(0.9, True), Forecast(0.2, False), Forecast(0.5, True)])
        0.1
    """
    if not told:
        return math.nan
    return round(float(np.mean([(one.said - one.healthy) ** 2 for one in told])), 12)


def even_brier(told: Sequence[Forecast]) -> float:
    """The same where healthy and faulty runs weigh half each; a constant of 0.5 has 0.25."""
    kinds = [[one for one in told if one.healthy is kind] for kind in (True, False)]
    return (brier(kinds[0]) + brier(kinds[1])) / 2


def area(told: Sequence[Forecast]) -> float:
    """How often a healthy run has a higher forecast than a faulty one; equal ones count half.

    Example:
        >>> area([Forecast(0.9, True), Forecast(0.5, True), Forecast(0.5, False)])
        0.75
    """
    good = np.array([one.said for one in told if one.healthy])
    bad = np.array([one.said for one in told if not one.healthy])
    if not (len(good) and len(bad)):
        return math.nan
    wins = (good[:, None] > bad).mean() + (good[:, None] == bad).mean() / 2
    return float(wins)


def bins(told: Sequence[Forecast], count: int = BINS) -> list[Bin]:
    """The forecasts in bins of the same width, empty ones left out; 1 belongs to the last."""
    found: list[Bin] = []
    for place in range(count):
        inside = [one for one in told if min(int(one.said * count), count - 1) == place]
        if inside:
            observed = share(sum(one.healthy for one in inside), len(inside))
            found.append(Bin(place / count, (place + 1) / count, tuple(inside), observed))
    return found


def figures(told: Sequence[Forecast], rounds: int = ROUNDS) -> dict[str, Figure]:
    """All figures; intervals by the bootstrap over runs, healthy and faulty ones drawn apart."""
    kinds = [[one for one in told if one.healthy is kind] for kind in (True, False)]
    return {
        "brier": bootstrap(kinds, brier, rounds),
        "even_brier": bootstrap(kinds, even_brier, rounds),
        "area": bootstrap(kinds, area, rounds),
    }


def section(told: Sequence[Forecast], prior: float, rounds: int = ROUNDS) -> str:
    """Figures and reliability table as Markdown.

    Args:
        prior: share of healthy runs that the forecasts take for granted, and what a constant
            forecast would say.
    """
    found = figures(told, rounds)
    healthy = sum(one.healthy for one in told)
    actual = healthy / len(told)
    told_here = moved(told, prior, actual)
    constant = [Forecast(prior, one.healthy) for one in told]
    rows = [
        ("Brier score", _figure(found["brier"]), f"{brier(constant):.3f}"),
        ("both kinds weighing half", _figure(found["even_brier"]), f"{even_brier(constant):.3f}"),
        (f"at the prior {actual:.2f}", f"{brier(told_here):.3f}", f"{actual * (1 - actual):.3f}"),
        ("area under the ROC curve", _figure(found["area"]), "0.500"),
    ]
    head = ("forecast", "runs", "mean forecast", f"at the prior {actual:.2f}", "share healthy")
    body = [
        (
            f"{one.low:.1f} to {one.high:.1f}",
            one.observed.total,
            f"{one.mean:.3f}",
            f"{mean_of(moved(one.told, prior, actual)):.3f}",
            _figure(one.observed),
        )
        for one in bins(told)
    ]
    counts = f"{len(told)} runs: {healthy} healthy, {len(told) - healthy} faulty."
    return "\n\n".join(
        (counts, table(("figure", "the score", "a constant"), rows), table(head, body))
    )


def _figure(found: Figure) -> str:
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def diagram(told: Sequence[Forecast], title: str) -> str:
    """The reliability diagram as SVG: a dot for each bin, its area by the number of runs."""
    whole = SIZE + 2 * EDGE
    marks = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole} {whole}" role="img" '
        f'font-family="sans-serif" font-size="12" fill="#333"><title>{title}</title>',
        f'<rect width="{whole}" height="{whole}" fill="#fff"/>',
    ]
    for step in range(6):
        x, y, text = _x(step / 5), _y(step / 5), f"{step / 5:g}"
        marks.append(f'<path d="M{_x(0)} {y}H{_x(1)}M{x} {_y(0)}V{_y(1)}" stroke="#ddd"/>')
        marks.append(f'<text x="{x}" y="{_y(0) + 18}" text-anchor="middle">{text}</text>')
        marks.append(f'<text x="{_x(0) - 8}" y="{y + 4}" text-anchor="end">{text}</text>')
    marks.append(
        f'<path d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}" stroke="#888" stroke-dasharray="4 4"/>'
    )
    for one in bins(told):
        marks += _dot(one, len(told))
    middle = whole // 2
    marks += [
        f'<text x="{middle}" y="{whole - 8}" text-anchor="middle">forecast: score / 100</text>',
        f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">'
        "share of runs that are healthy</text>",
        f'<text x="{middle}" y="26" text-anchor="middle" font-size="14">{title}</text>',
        "</svg>",
    ]
    return "\n".join(marks) + "\n"


def _dot(one: Bin, total: int) -> list[str]:
    x, observed = _x(one.mean), one.observed
    radius = 3 + 12 * math.sqrt(observed.total / total)
    return [
        f'<path d="M{x} {_y(observed.low)}V{_y(observed.high)}" stroke="#2b6cb0" '
        'stroke-width="2"/>',
        f'<circle cx="{x}" cy="{_y(observed.value)}" r="{radius:.1f}" fill="#2b6cb0" '
        f'fill-opacity="0.6"><title>{observed.count} of {observed.total} runs healthy, '
        f"mean forecast {one.mean:.2f}</title></circle>",
    ]


def _x(value: float) -> float:
    return round(EDGE + SIZE * value, 1)


def _y(value: float) -> float:
    return round(EDGE + SIZE * (1 - value), 1)
