"""Faults put into recorded series: what the rows would look like if the training had gone wrong.

Each fault changes copies of a few series from one step on, in three severities. It shows whether
rules see such rows, not how a training comes to write them: `benchmarks/faults` breaks trainings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindpulse.series import Rows

SEVERITIES = ("low", "medium", "high")
Values = NDArray[np.float64]
Change = Callable[[Values, int, float], Values]
"""(values (T, W) from the step on, rows before it, how much) -> values."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong.

    Attributes:
        name: of the fault.
        changes: what becomes of each series, by tag; at least one of them has to be recorded.
        strengths: how much, for low, medium and high.
        unit: what the strength means.
    """

    name: str
    changes: Mapping[str, Change]
    strengths: tuple[float, float, float]
    unit: str

    def put_in(self, tag: str, rows: Rows, step: int, strength: float) -> Rows:
        """The rows of a series with the fault from `step` on.

        Args:
            rows: (T, W), steps increasing.

        Example:
            >>> rows = Rows(np.arange(4), np.arange(4.0), np.ones((4, 1)))
            >>> FAULTS[0].put_in("train_loss", rows, 2, 1).values[:, 0].tolist()
            [1.0, 1.0, nan, 1.0]
        """
        change = self.changes.get(tag)
        first = int(rows.steps.searchsorted(step))
        if change is None or first == len(rows):
            return rows
        values = rows.values.astype(np.float64, copy=True)
        with np.errstate(all="ignore"):
            values[first:] = change(values[first:], first, strength)
        return Rows(rows.steps, rows.wall_times, values.astype(rows.values.dtype))


def _nan(values: Values, _: int, count: float) -> Values:
    values[: int(count)] = np.nan
    return values


def _times(values: Values, _: int, factor: float) -> Values:
    return values * factor


def _spike(values: Values, _: int, factor: float) -> Values:
    values[:5] *= factor
    return values


def _ramp(over: int) -> Change:
    """Grows to so many times the value within so many rows."""

    def change(values: Values, _: int, factor: float) -> Values:
        grown = np.minimum(1.0, np.arange(1, len(values) + 1) / over)[:, None]
        return values * (1.0 + (factor - 1.0) * grown)

    return change


def _leak(values: Values, before: int, factor: float) -> Values:
    """Grows steadily; by the factor within as many rows as there were before."""
    return values * (1.0 + (factor - 1.0) * np.arange(1, len(values) + 1)[:, None] / max(1, before))


def _focus(values: Values, _: int, factor: float) -> Values:
    """Towards 1, by as much as the entropy loses."""
    return 1.0 - (1.0 - values) * factor


def _freeze(values: Values, _: int, share: float) -> Values:
    values[:, : max(1, round(share * values.shape[1]))] = 0.0
    return values


def _still(values: Values, _: int, factor: float) -> Values:
    """Does not move any more; a rest of its changes stays."""
    return values[:1] + factor * (values - values[:1])


def _slow(values: Values, _: int, factor: float) -> Values:
    values[:50] *= factor
    return values


FAULTS = (
    Fault("nan", {"train_loss": _nan, "grad_norm": _nan}, (1, 5, 1e9), "rows without a number"),
    Fault("loss-spike", {"train_loss": _spike}, (1.5, 3, 10), "times, for 5 rows"),
    Fault("loss-divergence", {"train_loss": _ramp(50), "grad_norm": _ramp(50)}, (1.3, 2, 5),
          "times, within 50 rows"),
    Fault("loss-plateau", {"train_loss": _still, "eval_loss": _still}, (0.3, 0.1, 0.0),
          "of its changes are left"),
    Fault("gradient-explosion", {"grad_norm": _times, "grad_norm_param": _times,
          "grad_max_abs": _times}, (10, 100, 1000), "times"),
    Fault("gradient-vanishing", {"grad_norm": _times, "grad_norm_param": _times,
          "weight_update_ratio": _times}, (1e-2, 1e-4, 1e-8), "times"),
    Fault("learning-rate-jump", {"learning_rate": _times}, (5, 20, 100), "times"),
    Fault("attention-collapse", {"attn_entropy": _times, "attn_focus": _focus}, (0.5, 0.2, 0.01),
          "times the entropy"),
    Fault("attention-frozen", {"attn_focus": _still, "attn_entropy": _still}, (0.1, 0.01, 0.0),
          "of its changes are left"),
    Fault("frozen-weights", {"grad_norm_param": _freeze, "weight_update_ratio": _freeze},
          (0.05, 0.3, 1.0), "of the parameters"),
    Fault("memory-leak", {"host_memory_rss": _leak, "memory_allocated": _leak,
          "memory_reserved": _leak}, (1.5, 3, 10), "times, within as many rows as before"),
    Fault("slow-steps", {"step_time_s": _slow, "data_wait_s": _slow}, (2, 5, 20),
          "times, for 50 rows"),
)  # fmt: skip
