"""What a baseline gets, what it gives, and how its bells become alarms.

A rule of another tool rings at every step at which its condition holds. So that this is not
counted as hundreds of alarms, every bell gets the life of our alerts with the values that a rule of
ours has by default: it goes on until 20 quiet steps, and is silent for 50 steps after that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.faults.alarms import Alarm, layer_of, rows_since
from mindpulse.rules.rule import Rule
from mindpulse.series import Rows, SeriesSpec

HOLD_STEPS = Rule.__dataclass_fields__["hold_steps"].default
COOLDOWN_STEPS = Rule.__dataclass_fields__["cooldown_steps"].default
PLACES = ("layer", "cell", "param")

Values = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A series.

    Attributes:
        steps: (T,) increasing.
        values: (T, W).
        names: W labels of the columns, "" for a scalar.
        layers: W layers, None for a column that belongs to none.
    """

    steps: NDArray[np.int64]
    values: Values
    names: tuple[str, ...] = ("",)
    layers: tuple[int | None, ...] = (None,)

    @property
    def scalar(self) -> Values:
        """(T,) the first column."""
        return self.values[:, 0]


Curves = Mapping[str, Curve]


def gradient_norm(curves: Curves) -> Curve | None:
    """The global norm as a training loop has it: before clipping, where that was recorded."""
    return curves.get("grad_norm_unclipped") or curves.get("grad_norm")


@dataclass(frozen=True, slots=True, eq=False)
class Bell:
    """A rule of a tool over a series.

    Attributes:
        name: what the tool calls it.
        category: the part of `rules.rule.PARTS` that fits the rule best.
        curve: what it looks at.
        rings: (T,) or (T, W), where its condition holds; each column is a bell of its own.
    """

    name: str
    category: str
    curve: Curve
    rings: Flags


@dataclass(frozen=True, slots=True)
class Baseline:
    """A tool.

    Attributes:
        name: as it is shown.
        source: where the rule and its constants come from.
        constants: what they are.
        bells: the series of a rank to its bells; pure.
    """

    name: str
    source: str
    constants: str
    bells: Callable[[Curves], Iterable[Bell]]

    def alarms(self, curves: Curves, since: int) -> tuple[Alarm, ...]:
        """The alarms of one rank; bells that begin at the same step are one.

        Args:
            since: the step from which on the rows before an alarm are counted.
        """
        told: dict[int, Alarm] = {}
        with np.errstate(all="ignore"):
            for bell in self.bells(curves):
                for step, layers in _begun(bell).items():
                    rows = rows_since(bell.curve.steps, since, step)
                    alarm = Alarm(step, bell.name, "error", bell.category, layers, rows)
                    told.setdefault(step, alarm)
        return tuple(told[step] for step in sorted(told))


def curve_of(spec: SeriesSpec, rows: Rows) -> Curve:
    """A series as a curve."""
    values = np.asarray(rows.values, np.float64)
    if not spec.columns:
        return Curve(rows.steps, values)
    axis = next((i for i, name in enumerate(spec.axes) if name in PLACES), None)
    names = tuple(labels[axis or 0] for labels in spec.columns)
    layers = tuple(None if axis is None else layer_of(name) for name in names)
    return Curve(rows.steps, values, names, layers)


def _begun(bell: Bell) -> dict[int, tuple[int, ...]]:
    """The steps at which any column begins to ring, with the layers of those columns."""
    found: dict[int, list[int | None]] = {}
    rings = bell.rings if bell.rings.ndim == 2 else bell.rings[:, None]
    for column in np.flatnonzero(rings.any(axis=0)):
        for place in beginnings(bell.curve.steps, rings[:, column]):
            layer = bell.curve.layers[column] if bell.rings.ndim == 2 else None
            found.setdefault(int(bell.curve.steps[place]), []).append(layer)
    return {
        step: tuple(dict.fromkeys(layer for layer in layers if layer is not None))
        for step, layers in found.items()
    }


def beginnings(steps: NDArray[np.int64], rings: Flags) -> list[int]:
    """Where an alert would begin whose condition holds where `rings` says.

    Args:
        steps: (T,) increasing.
        rings: (T,).

    Example:
        >>> beginnings(np.arange(1, 200), np.isin(np.arange(1, 200), [5, 15, 60, 150]))
        [4, 149]
    """
    begun: list[int] = []
    last, silent_until, firing = 0, steps[0], False
    for place in np.flatnonzero(rings):
        step, before = steps[place], int(place) - 1
        if firing and before > last and steps[before] - steps[last + 1] + 1 >= HOLD_STEPS:
            over = steps[steps.searchsorted(steps[last + 1] + HOLD_STEPS - 1)]
            firing, silent_until = False, over + COOLDOWN_STEPS
        if not firing and step >= silent_until:
            begun.append(int(place))
            firing = True
        last = int(place)
    return begun
