"""Statistics of an array of any size, in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PIECE = 1 << 20
SAMPLE = 1_000_000  # numbers from which quantiles are taken
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Over the finite values of an array; of complex numbers their magnitudes.

    Attributes:
        size: how many numbers.
        min, max: of the values' own type; NaN where none is finite.
        mean, std: float64, the population's.
        nan, posinf, neginf, zeros: counts.
        quantiles: share -> value, in float64.
        sampled: the quantiles are those of evenly spread values, about SAMPLE of them.
    """

    size: int
    min: Any
    max: Any
    mean: float
    std: float
    nan: int
    posinf: int
    neginf: int
    zeros: int
    quantiles: dict[float, float]
    sampled: bool

    @property
    def nonfinite(self) -> int:
        """NaN and infinities."""
        return self.nan + self.posinf + self.neginf


def statistics(array: NDArray[Any]) -> Statistics:
    """Statistics of an array, in one pass and with little memory beside it.

    Args:
        array: any shape; booleans, whole numbers, floats or complex numbers.

    Example:
        >>> found = statistics(np.array([1.0, 3.0, np.nan]))
        >>> found.mean, found.std, found.nan, found.quantiles[0.5]
        (2.0, 1.0, 1, 2.0)
    """
    flat = array.reshape(-1)
    count, mean, spread = 0, 0.0, 0.0  # of what was seen, by Chan's update
    low: Any = np.inf
    high: Any = -np.inf
    counts = np.zeros(4, np.int64)  # NaN, +Inf, -Inf, zero
    for piece, finite in _pieces(flat):
        counts += _counted(piece)
        if not len(finite):
            continue
        low, high = min(low, finite.min().item()), max(high, finite.max().item())
        wide = finite.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            delta, total = float(wide.mean()) - mean, count + len(wide)
            spread += float(((wide - wide.mean()) ** 2).sum())
            spread += delta * delta * count * len(wide) / total
            mean += delta * (len(wide) / total)
        count = total
    none = not count
    return Statistics(
        size=flat.size,
        min=np.nan if none else low,
        max=np.nan if none else high,
        mean=np.nan if none else mean,
        std=np.nan if none else float(np.sqrt(spread / count)),
        nan=int(counts[0]),
        posinf=int(counts[1]),
        neginf=int(counts[2]),
        zeros=int(counts[3]),
        quantiles=_quantiles(flat),
        sampled=flat.size > SAMPLE,
    )


def magnitudes(array: NDArray[Any]) -> NDArray[Any]:
    """Real numbers: complex ones by their magnitude, booleans as 0 and 1."""
    if array.dtype.kind == "c":
        return np.asarray(np.abs(array))
    return array.astype(np.uint8) if array.dtype.kind == "b" else array


def _pieces(flat: NDArray[Any]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    for start in range(0, len(flat), PIECE):
        piece = magnitudes(flat[start : start + PIECE])
        yield piece, piece[np.isfinite(piece)] if piece.dtype.kind == "f" else piece


def _counted(piece: NDArray[Any]) -> NDArray[np.int64]:
    zeros = piece.size - np.count_nonzero(piece)
    if piece.dtype.kind != "f":
        return np.array([0, 0, 0, zeros])
    found = (np.isnan(piece), np.isposinf(piece), np.isneginf(piece))
    return np.array([*(np.count_nonzero(each) for each in found), zeros])


def _quantiles(flat: NDArray[Any]) -> dict[float, float]:
    step = -(-flat.size // SAMPLE) or 1
    if step > 1 and step % 2 == 0:
        step += 1  # an even step would see every other column of most shapes only
    sample = magnitudes(flat[::step])
    if sample.dtype.kind == "f":
        sample = sample[np.isfinite(sample)]
    if not len(sample):
        return dict.fromkeys(QUANTILES, np.nan)
    values = np.quantile(sample.astype(np.float64), QUANTILES)
    return dict(zip(QUANTILES, values.tolist(), strict=True))
