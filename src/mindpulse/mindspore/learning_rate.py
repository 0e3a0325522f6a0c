"""The learning rates of the optimizers, measured and changed without a new compilation."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary, ref

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, ops

from mindpulse.mindspore.probes.schedule import schedule_probe


class Schedule:
    """The handle on one learning-rate schedule.

    It lives as long as the schedule does, whatever monitors come and go: in PyNative an optimizer
    keeps the schedule as it was when its own jit function was compiled.

    Attributes:
        factor: (1,) multiplies the schedule.
        used: (1,) the rate that the optimizer used last.
    """

    def __init__(self, cell: Any, name: str) -> None:
        self.factor = Parameter(Tensor([1.0], ms.float32), f"{name}.factor", requires_grad=False)
        self.used = Parameter(Tensor([0.0], ms.float32), f"{name}.used", requires_grad=False)
        self._plain = type(cell)
        self._probed = schedule_probe(self._plain, self.factor, self.used)
        self._cell = ref(cell)

    def on(self) -> None:
        """The schedule is measured, and can be scaled."""
        self._become(self._probed)

    def off(self) -> None:
        """The schedule is the user's again, unless an action scaled it: that stays."""
        if float(self.factor.asnumpy()[0]) == 1.0:
            self._become(self._plain)

    def _become(self, kind: type) -> None:
        cell = self._cell()
        if cell is not None:
            cell.__class__ = kind


_numbers = itertools.count()
_schedules: WeakKeyDictionary[Any, Schedule] = WeakKeyDictionary()


def schedule_of(cell: Any) -> Schedule:
    """The handle on a schedule, the same at each call."""
    if cell not in _schedules:
        _schedules[cell] = Schedule(cell, f"mindpulse.schedule{next(_numbers)}")
    return _schedules[cell]


class LearningRate:
    """The handles on an optimizer's learning rates.

    Attributes:
        constants: the Parameters of constant rates, one per group.
        schedules: the handles on scheduled rates, one per group.
        scaled_by: the product of all factors that were asked for, less those that were undone.
    """

    def __init__(self, constants: tuple[Parameter, ...], schedules: tuple[Schedule, ...]) -> None:
        self.constants = constants
        self.schedules = schedules
        self.scaled_by = 1.0

    @property
    def rates(self) -> tuple[Parameter, ...]:
        """What the optimizer used in the step that it just made, one Parameter per group."""
        return (*self.constants, *(schedule.used for schedule in self.schedules))

    def scale(self, factor: float) -> dict[str, float]:
        """Multiplies the rates by `factor`; no graph is compiled anew.

        `ops.assign` and not `set_data`: the latter is silently ignored under jit and in PyNative.

        Returns:
            the numbers before and after, for the answer and for an undo.
        """
        self.scaled_by *= factor
        told: dict[str, float] = {}
        for name, rate in self._handles():
            before = value_of(rate)
            told |= {f"{name}_before": before, f"{name}_after": put(rate, before * factor)}
        return told

    def undo(self, told: Mapping[str, float], factor: float) -> dict[str, float]:
        """Takes one `scale` back: exactly where nothing was changed since, else by the ratio.

        Args:
            told: what `scale` returned.
            factor: by what it multiplied.
        """
        self.scaled_by /= factor
        now: dict[str, float] = {}
        for name, rate in self._handles():
            before, after = told.get(f"{name}_before"), told.get(f"{name}_after")
            if before is None or after is None:
                continue
            held = value_of(rate)
            wanted = before if held == after else held / factor
            now |= {f"{name}_before": held, f"{name}_after": put(rate, wanted)}
        return now

    def _handles(self) -> list[tuple[str, Parameter]]:
        constants = [(_name("learning_rate", i), rate) for i, rate in enumerate(self.constants)]
        factors = [
            (_name("schedule_factor", i), schedule.factor)
            for i, schedule in enumerate(self.schedules)
        ]
        return constants + factors


def _name(what: str, group: int) -> str:
    return what if group == 0 else f"{what}_group_{group}"


def value_of(parameter: Parameter) -> float:
    """The number that a Parameter of one element holds."""
    return float(np.asarray(parameter.asnumpy()).reshape(-1)[0])


def put(parameter: Parameter, value: float) -> float:
    """Writes one number into a Parameter, in its own type; returns what it then holds."""
    held = np.float32(value)
    ops.assign(parameter, Tensor(np.full(parameter.shape, held), parameter.dtype))
    return float(held)


def in_words(told: Mapping[str, float]) -> str:
    """What `scale` told, for a reader.

    Example:
        >>> in_words({"learning_rate_before": 0.01, "learning_rate_after": 0.005})
        'learning_rate 0.01 -> 0.005'
    """
    names = [key.removesuffix("_before") for key in told if key.endswith("_before")]
    return "; ".join(f"{n} {told[n + '_before']:.6g} -> {told[n + '_after']:.6g}" for n in names)


def find_learning_rates(optimizers: Sequence[Any]) -> LearningRate:
    """The learning rates of all optimizers, one per group; those that we do not know are left out.

    Constants come before schedules.
    """
    found = [_learning_rate(optimizer) for optimizer in optimizers]
    return LearningRate(
        tuple(rate for part in found for rate in part.constants),
        tuple(schedule for part in found for schedule in part.schedules),
    )


def _learning_rate(optimizer: Any) -> LearningRate:
    rate = getattr(optimizer, "learning_rate", None)
    groups = getattr(optimizer, "param_groups", None)
    if rate is None and isinstance(groups, list):
        rate = [group.get("lr") for group in groups]
    # With groups there is one entry per parameter, the same object for each of a group.
    several = isinstance(rate, (tuple, list, ms.ParameterTuple, ms.nn.CellList))
    entries: list[Any] = list(rate) if several and rate is not None else [rate]
    found = list({id(x): x for x in entries}.values())
    constants = tuple(x for x in found if isinstance(x, Parameter))
    schedules = tuple(schedule_of(x) for x in found if isinstance(x, ms.nn.Cell))
    return LearningRate(constants, schedules)
