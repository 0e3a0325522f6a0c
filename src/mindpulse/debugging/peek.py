"""`mindpulse.peek`: what is in a tensor, at one glance and for one copy from the device."""

from __future__ import annotations

from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.debugging.copying import copied
from mindpulse.debugging.picture import SHADES, Picture, picture
from mindpulse.debugging.statistics import Statistics, statistics

UNITS = ("B", "KB", "MB", "GB", "TB")


class Peek:
    """A tensor as it was when it was looked at.

    Attributes:
        name: what the caller calls it.
        shape, dtype: of the tensor; the type as its framework calls it.
        device: where it lives: "host", "CPU", "Ascend:0", "cuda:0".
        array: a NumPy copy of it; bfloat16 as float32.

    Example:
        >>> found = Peek(np.array([[1.0, 2.0], [3.0, np.inf]]), name="scores")
        >>> found.shape, found.max, found.nonfinite
        ((2, 2), 3.0, 1)
    """

    def __init__(self, tensor: Any, name: str = "") -> None:
        found = copied(tensor)
        self.name = name or str(getattr(tensor, "name", "") or "")
        self.array: NDArray[Any] = found.array
        self.dtype, self.device = found.dtype, found.device
        self.shape: tuple[int, ...] = tuple(found.array.shape)

    @cached_property
    def statistics(self) -> Statistics:
        """All numbers, computed once."""
        return statistics(self.array)

    @cached_property
    def picture(self) -> Picture | None:
        """The map of the last two axes; None of an empty tensor."""
        return picture(self.array)

    @property
    def size(self) -> int:
        """How many numbers."""
        return int(self.array.size)

    @property
    def nbytes(self) -> int:
        """Memory that the tensor itself takes, in bytes."""
        return 2 * self.size if "bfloat16" in self.dtype.lower() else int(self.array.nbytes)

    @property
    def min(self) -> Any:
        """The least finite value; NaN where none is finite."""
        return self.statistics.min

    @property
    def max(self) -> Any:
        """The greatest finite value; NaN where none is finite."""
        return self.statistics.max

    @property
    def mean(self) -> float:
        """Of the finite values, float64."""
        return self.statistics.mean

    @property
    def std(self) -> float:
        """Of the finite values, of the population, float64."""
        return self.statistics.std

    @property
    def nonfinite(self) -> int:
        """How many are NaN or infinite."""
        return self.statistics.nonfinite

    @property
    def zeros(self) -> int:
        """How many are zero."""
        return self.statistics.zeros

    @property
    def quantiles(self) -> dict[float, float]:
        """Share -> value."""
        return self.statistics.quantiles

    def short(self) -> str:
        """One line: type, shape, the main numbers.

        Example:
            >>> Peek(np.ones((2, 3), np.float32)).short()
            'float32 (2, 3) mean=1 std=0 min=1 max=1'
        """
        if not self.size:
            return f"{self.dtype} {self.shape} empty"
        numbers = " ".join(f"{k}={getattr(self, k):.4g}" for k in ("mean", "std", "min", "max"))
        bad = f" nonfinite={self.nonfinite}" if self.nonfinite else ""
        return f"{self.dtype} {self.shape} {numbers}{bad}"

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        head = f"{self.name}: " if self.name else ""
        lines = [f"{head}{self.dtype} {self.shape} on {self.device}, {_bytes(self.nbytes)}"]
        if not self.size:
            return [*lines, "  empty"]
        lines += [f"  {label:<10} {value}" for label, value in self.rows()]
        shown = self.picture
        if shown is not None and self.size > 1:
            low, high = shown.scale
            ends = f"'{SHADES[0]}' {low:.4g} to '{SHADES[-1]}' {high:.4g}"
            lines.append(f"  {shown.where} {shown.shape[0]} x {shown.shape[1]}, {ends}")
            lines += [f"  |{line}|" for line in shown.text()]
        return lines

    def rows(self) -> list[tuple[str, str]]:
        """Label and value of what is told in words."""
        s = self.statistics
        values = f"min {s.min:.6g}  mean {s.mean:.6g}  max {s.max:.6g}  std {s.std:.6g}"
        bad = f" (NaN {s.nan}, +Inf {s.posinf}, -Inf {s.neginf})" if s.nonfinite else ""
        finite = f"   (over {s.size - s.nonfinite} finite values)" if s.nonfinite else ""
        shares = "  ".join(f"{q:.0%} {value:.4g}" for q, value in s.quantiles.items())
        return [
            ("values", values + finite),
            ("quantiles", shares + ("   (of a sample)" if s.sampled else "")),
            ("non-finite", f"{s.nonfinite}{bad}"),
            ("zeros", f"{s.zeros} ({s.zeros / s.size:.2%})"),
        ]

    def _repr_html_(self) -> str:
        """The picture that a notebook shows."""
        first = escape(self._lines()[0])
        if not self.size:
            return f"<div><b>{first}</b><br>empty</div>"
        cells = "".join(
            f'<tr><td>{escape(label)}</td><td style="text-align:left">{escape(value)}</td></tr>'
            for label, value in self.rows()
        )
        shown = self.picture
        svg = "" if shown is None else f"<div>{escape(shown.where)}</div>{shown.svg()}"
        return f"<div><b>{first}</b><table>{cells}</table>{svg}</div>"


def peek(tensor: Any, name: str = "") -> Peek:
    """Looks at a tensor: one copy from the device, then shape, statistics and a small map.

    The tensor, and the training that it belongs to, are not changed.

    Args:
        tensor: a MindSpore tensor or Parameter, a torch tensor, a NumPy array, numbers in lists.
        name: what to call it; the name of a Parameter is known.

    Returns:
        an object that prints as a few lines, shows a picture in a notebook, and holds the copy in
        `.array`.

    Raises:
        UsageError: it holds no numbers, or has no value yet.

    Example:
        >>> print(peek([[0.0, 1.0], [2.0, 3.0]], "x"))
        x: float64 (2, 2) on host, 32 B
          values     min 0  mean 1.5  max 3  std 1.11803
          quantiles  1% 0.03  5% 0.15  25% 0.75  50% 1.5  75% 2.25  95% 2.85  99% 2.97
          non-finite 0
          zeros      1 (25.00%)
          [:, :] 2 x 2, ' ' 0 to '█' 3
          | ▃|
          |▅█|
    """
    return Peek(tensor, name)


def _bytes(count: int) -> str:
    size, unit = float(count), 0
    while size >= 1024 and unit < len(UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.4g} {UNITS[unit]}"


def of_array(array: NDArray[Any], dtype: str, name: str) -> Peek:
    """A tensor that was kept before, with the type that it had then."""
    found = Peek(np.asarray(array), name)
    found.dtype = dtype
    return found
