"""Carries out what the watcher asks for, at a step boundary, and says what it did."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary, ref

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, ops

from mindpulse.control import Answer, Request
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
    """

    def __init__(self, constants: tuple[Parameter, ...], schedules: tuple[Schedule, ...]) -> None:
        self.constants = constants
        self.schedules = schedules

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
        told: dict[str, float] = {}
        for index, rate in enumerate(self.constants):
            told |= _multiply(rate, factor, _name("learning_rate", index))
        for index, schedule in enumerate(self.schedules):
            told |= _multiply(schedule.factor, factor, _name("schedule_factor", index))
        return told


def _name(what: str, group: int) -> str:
    return what if group == 0 else f"{what}_group_{group}"


def _multiply(rate: Parameter, factor: float, name: str) -> dict[str, float]:
    before = float(np.asarray(rate.asnumpy()).reshape(-1)[0])
    after = np.float32(before * factor)
    ops.assign(rate, Tensor(np.full(rate.shape, after), rate.dtype))
    return {f"{name}_before": before, f"{name}_after": float(after)}


class Sampler(Protocol):
    """What can measure more densely."""

    def burst(self, steps: int) -> None:
        """Measures everything on each of the next steps."""

    def snapshot(self) -> None:
        """Keeps the attention maps of the next step."""


class Actions:
    """The verbs of a training; `carry_out` turns a request into its answer."""

    def __init__(
        self, rank: int, attempt: int, learning_rate: LearningRate | None, sampler: Sampler
    ) -> None:
        self.rank = rank
        self.attempt = attempt
        self.learning_rate = learning_rate
        self.sampler = sampler
        self.stop_asked = False
        self._verbs: dict[
            str, Callable[[Mapping[str, float]], tuple[str, str, dict[str, float]]]
        ] = {
            "scale_lr": self._scale_lr,
            "burst": self._burst,
            "snapshot": self._snapshot,
            "stop": self._stop,
        }

    def carry_out(self, request: Request, step: int, now: float) -> Answer:
        """Does what is asked before optimizer step `step`; anything it cannot do is refused."""
        verb = self._verbs.get(request.verb)
        if verb is None:
            known = ", ".join(sorted(self._verbs))
            return self.answer(request, step, now, "refused", f"{request.verb!r}: can do {known}")
        try:
            status, detail, data = verb(request.args)
        except (RuntimeError, TypeError, ValueError) as error:  # what MindSpore's operators raise
            return self.answer(
                request, step, now, "failed", f"{type(error).__name__}: {error}"[:300]
            )
        return self.answer(request, step, now, status, detail, data)

    def answer(
        self,
        request: Request,
        step: int,
        now: float,
        status: str,
        detail: str,
        data: Mapping[str, float] | None = None,
    ) -> Answer:
        """The answer of this rank."""
        return Answer(request.seq, now, self.rank, self.attempt, step, status, detail, data or {})

    def _scale_lr(self, args: Mapping[str, float]) -> tuple[str, str, dict[str, float]]:
        if self.learning_rate is None:
            return "refused", "this optimizer's learning rate cannot be changed from outside", {}
        told = self.learning_rate.scale(args["factor"])
        pairs = [(key[:-7], key[:-7] + "_after") for key in told if key.endswith("_before")]
        detail = "; ".join(f"{n} {told[n + '_before']:.6g} -> {told[a]:.6g}" for n, a in pairs)
        return "done", detail, told

    def _burst(self, args: Mapping[str, float]) -> tuple[str, str, dict[str, float]]:
        steps = int(args["steps"])
        self.sampler.burst(steps)
        return "done", f"everything is measured on each of the next {steps} steps", {}

    def _snapshot(self, args: Mapping[str, float]) -> tuple[str, str, dict[str, float]]:
        self.sampler.snapshot()
        return "done", "the attention maps of the next step are kept", {}

    def _stop(self, args: Mapping[str, float]) -> tuple[str, str, dict[str, float]]:
        self.stop_asked = True
        return "done", "the training stops after this step", {}


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
