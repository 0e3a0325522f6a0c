"""One curve as it is compared: steps in order, each once, and what was not finite kept apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The finite rows of one series of one run, steps strictly ascending.

    Attributes:
        name: how the run is called in sentences and pictures.
        steps: (T,) int64.
        wall_times: (T,) seconds since the epoch; NaN where nothing is known.
        values: (T,) float64, all finite.
        bad_steps: (R,) steps of the rows that are NaN or infinite, ascending.
    """

    name: str
    steps: NDArray[np.int64]
    wall_times: NDArray[np.float64]
    values: NDArray[np.float64]
    bad_steps: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def broken_since(self) -> int | None:
        """First step of the NaNs and infinities in which the curve ends; None if it ends well."""
        last = int(self.steps[-1]) if len(self.steps) else np.iinfo(np.int64).min
        after = self.bad_steps[self.bad_steps > last]
        return int(after[0]) if len(after) else None


def curve_of(
    name: str, steps: NDArray[np.int64], wall_times: NDArray[Any], values: NDArray[Any]
) -> Curve:
    """Puts rows in order; of several rows of one step the last one counts.

    Args:
        steps: (T,), wall_times: (T,), values: (T,), in the order in which they were written.

    Example:
        >>> rows = np.array([2, 1, 2]), np.zeros(3), np.array([0.5, np.nan, 0.25])
        >>> curve = curve_of("a", *rows)
        >>> curve.steps.tolist(), curve.values.tolist(), curve.bad_steps.tolist()
        ([2], [0.25], [1])
    """
    if len(steps) > 1 and np.any(steps[1:] <= steps[:-1]):
        order = np.argsort(steps, kind="stable")
        ordered = steps[order]
        kept = order[np.append(ordered[1:] != ordered[:-1], True)]
        steps, wall_times, values = steps[kept], wall_times[kept], values[kept]
    numbers = np.asarray(values, np.float64)
    good = np.isfinite(numbers)
    return Curve(
        name, steps[good], np.asarray(wall_times, np.float64)[good], numbers[good], steps[~good]
    )
