"""Axes: where a value lies between 0 and 1, which ticks to show, and how a number reads."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A positive series that spans more than this is drawn on a logarithmic axis.
LOG_FROM_RATIO = 20.0
SMALLEST, LARGEST = 1e-307, sys.float_info.max


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values from [low, high] to [0, 1], linearly or by logarithm.

    Example:
        >>> Scale(1.0, 100.0, log=True).position(np.array([1.0, 10.0, 100.0])).tolist()
        [0.0, 0.5, 1.0]
    """

    low: float
    high: float
    log: bool = False

    def position(self, values: NDArray[Any] | np.float64) -> NDArray[np.float64]:
        """Same shape as `values`; not clipped, and NaN stays NaN."""
        x = np.asarray(values, np.float64)
        if self.log:
            low, high = math.log10(self.low), math.log10(self.high)
            x = np.log10(np.maximum(x, SMALLEST))
        else:
            low, high = self.low, self.high
        # Halves keep the difference of two huge numbers finite.
        share: NDArray[np.float64] = (x / 2 - low / 2) / (high / 2 - low / 2)
        return share

    def place(self, value: float) -> float:
        """The position of a single value."""
        return float(self.position(np.float64(value)))

    def ticks(self, count: int) -> list[float]:
        """Round numbers inside the range, about `count` of them."""
        return _log_ticks(self.low, self.high, count) if self.log else self._linear_ticks(count)

    def _linear_ticks(self, count: int) -> list[float]:
        step = _nice_step(self.high / count - self.low / count)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [index * step for index in range(first, last + 1)]


def step_scale(first: int, last: int) -> Scale:
    """The scale on which step `first` to step `last` lie, half a step of room at both ends.

    Example:
        >>> step_scale(1, 4)
        Scale(low=0.5, high=4.5, log=False)
    """
    room = max(0.5, 1e-12 * max(abs(first), abs(last)))  # half a step is nothing beyond 2**52
    return Scale(first - room, last + room)


def fit_scale(values: NDArray[Any], log: bool | None = None, air: float = 0.05) -> Scale:
    """The scale that shows all finite values.

    Args:
        values: any shape; non-finite values are ignored.
        log: None decides by the range: positive values over more than a factor of 20.
        air: what is left free at both ends, as a share of the range.

    Example:
        >>> fit_scale(np.array([0.0, 10.0, np.nan]))
        Scale(low=-0.5, high=10.5, log=False)
    """
    finite = np.asarray(values, np.float64)
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return Scale(0.0, 1.0)
    low, high = float(finite.min()), float(finite.max())
    if log is None:
        log = low > 0 and high / low > LOG_FROM_RATIO
    if log and high > 0:
        return _fit_log(finite, air)
    half = high / 2 - low / 2  # halves: the difference itself may overflow
    free = 2 * air * half if half > 1e-300 else abs(low) * 0.1 or 1.0
    return Scale(max(low - free, -LARGEST), min(high + free, LARGEST))


def _fit_log(finite: NDArray[np.float64], air: float) -> Scale:
    positive = finite[finite > 0]
    low, high = float(positive.min()), float(positive.max())
    free = (high / low) ** air if high > low else 2.0
    return Scale(max(low / free, SMALLEST), min(high * free, LARGEST), log=True)


def _nice_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)


def _log_ticks(low: float, high: float, count: int) -> list[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 1:  # within one decade powers of ten say too little
        mantissas = [m * 10.0 ** (first - 1) for m in (1, 2, 5, 10, 20, 50)]
        return [tick for tick in mantissas if low <= tick <= high] or [high]
    stride = max(1, math.ceil((last - first + 1) / count))
    return [10.0**power for power in range(first, last + 1, stride)]


def format_number(value: float) -> str:
    """A number as people read it: at most four digits that matter.

    Example:
        >>> [format_number(x) for x in (1234567, 0.25, 0.00012, 3e9, float("nan"), 0)]
        ['1,234,567', '0.25', '1.2e-4', '3e9', 'NaN', '0']
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0:
        return "0"
    if value == int(value) and abs(value) < 1e8:
        return f"{int(value):,}"
    if 1e-3 <= abs(value) < 1e6:
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    mantissa, exponent = f"{value:.3g}".split("e") if "e" in f"{value:.3g}" else (None, None)
    if mantissa is None:
        mantissa, exponent = f"{value:.2e}".split("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent or 0)}"


def format_duration(seconds: float) -> str:
    """A time span in its two largest units.

    Example:
        >>> [format_duration(s) for s in (0.0042, 12.3, 95, 7260, 200000)]
        ['4.2 ms', '12.3 s', '1 min 35 s', '2 h 1 min', '2 d 7 h']
    """
    if not math.isfinite(seconds) or seconds < 0:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = int(seconds)
    for big, size, small, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60)):
        if whole >= size:
            return f"{whole // size} {big} {whole % size // part} {small}"
    return f"{whole // 60} min {whole % 60} s"
