"""Carries out what the watcher asks for, at a step boundary, and says what it did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, ops

from mindpulse.control import Answer, Request


class LearningRate:
    """The handles on an optimizer's learning rate, constant or scheduled.

    Args:
        constants: the Parameters of constant rates, one per group.
        factor: the Parameter (1,) that multiplies the schedules, None where there is none.
    """

    def __init__(self, constants: tuple[Parameter, ...], factor: Parameter | None) -> None:
        self.constants = constants
        self.factor = factor

    def scale(self, factor: float) -> dict[str, float]:
        """Multiplies the rate by `factor`; no graph is compiled anew.

        `ops.assign` and not `set_data`: the latter is silently ignored under jit and in PyNative.

        Returns:
            the numbers before and after, for the answer and for an undo.
        """
        told: dict[str, float] = {}
        for index, rate in enumerate(self.constants):
            name = "learning_rate" if index == 0 else f"learning_rate_group_{index}"
            told |= _multiply(rate, factor, name)
        if self.factor is not None:
            told |= _multiply(self.factor, factor, "schedule_factor")
        return told


def _multiply(rate: Parameter, factor: float, name: str) -> dict[str, float]:
    before = float(np.asarray(rate.asnumpy()).reshape(-1)[0])
    after = np.float32(before * factor)
    ops.assign(rate, Tensor(np.full(rate.shape, after), rate.dtype))
    return {f"{name}_before": before, f"{name}_after": float(after)}


class Actions:
    """The verbs of a training; `carry_out` turns a request into its answer."""

    def __init__(self, rank: int, attempt: int, learning_rate: LearningRate | None) -> None:
        self.rank = rank
        self.attempt = attempt
        self.learning_rate = learning_rate
        self.stop_asked = False
        self._verbs: dict[
            str, Callable[[Mapping[str, float]], tuple[str, str, dict[str, float]]]
        ] = {
            "scale_lr": self._scale_lr,
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

    def _stop(self, args: Mapping[str, float]) -> tuple[str, str, dict[str, float]]:
        self.stop_asked = True
        return "done", "the training stops after this step", {}


def find_learning_rate(optimizer: Any) -> tuple[tuple[Parameter, ...], tuple[Any, ...]]:
    """(constant rates, schedule cells) of an optimizer; both empty where we know none."""
    rate = getattr(optimizer, "learning_rate", None)
    groups = getattr(optimizer, "param_groups", None)
    if rate is None and isinstance(groups, list):
        rate = [group.get("lr") for group in groups]
    found = list(rate) if isinstance(rate, (tuple, list, ms.ParameterTuple)) else [rate]
    constants = tuple(x for x in found if isinstance(x, Parameter))
    schedules = tuple(x for x in found if isinstance(x, ms.nn.Cell))
    return constants, schedules
