"""The probe of the optimizer: gradients, weights, moments and rates, and the end of the step.

A class swap of the optimizer, as for every other cell: its `construct` gets the gradients as they
are used, after unscaling, clipping and the reduction over ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import mindspore as ms
from mindspore import Parameter, ParameterTuple, ops

from mindpulse.mindspore.guard import Guard
from mindpulse.mindspore.measures import tensors
from mindpulse.mindspore.probes.eager import guarded
from mindpulse.mindspore.sites import Site
from mindpulse.mindspore.tap.swap import bridge, complete

_MOMENTS = (
    ("moment1", "moment2"),
    ("moments1", "moments2"),
    ("exp_avg", "exp_avg_sq"),
    ("adam_m", "adam_v"),
)


@dataclass(slots=True, eq=False)
class Part:
    """One slot of the optimizer's probe.

    Attributes:
        site: whose slot takes the values, from its tier on.
        values: called after the update with (gradients, weights before), returns (width,) float32.
        needs_old: whether `values` wants the weights from before the update.
        own: whether it holds measures of the user, which fail one by one in PyNative.
    """

    site: Site
    values: Callable[[Any, Any], Any]
    needs_old: bool = False
    own: bool = False


@dataclass(slots=True, eq=False)
class OptimizerTap:
    """An optimizer's class, exchanged for one of its probed variants.

    Args:
        cell: the optimizer.
        parts: what is measured.
        counter: advanced by this optimizer; None where another one ends the step.
        guard: catches what fails in PyNative.
    """

    cell: Any
    parts: list[Part]
    counter: Parameter | None
    guard: Guard
    plain: type = field(init=False)
    _probed: dict[int, type] = field(init=False, default_factory=dict)
    _all: tuple[Part, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        self.plain = type(self.cell)
        self._all = tuple(self.parts)

    def set(self, tier: int) -> None:
        """The variant of a tier; -1 for the class as the user made it."""
        if tier >= 0 and tier not in self._probed:
            self._probed[tier] = self._make(tier)
        self.cell.__class__ = self._probed[tier] if tier >= 0 else self.plain

    def drop(self, name: str = "") -> None:
        """Leaves out slots with this in their names: they do not compile. Still ends the step."""
        self.parts[:] = [part for part in self.parts if name not in part.site.slot.name]
        self._probed.clear()

    def restore(self) -> None:
        """Measures everything again."""
        self.parts[:] = self._all
        self._probed.clear()

    def _make(self, tier: int) -> type:
        parts = [part for part in self.parts if part.site.tier <= tier]
        parameters = ParameterTuple(list(self.cell.parameters))
        old = any(part.needs_old for part in parts)
        scale = _own_scale(self.cell)
        return _probed(self.plain, parts, parameters, old, scale, self.counter, self.guard)


def _probed(
    plain: type,
    parts: Sequence[Part],
    parameters: ParameterTuple,
    needs_old: bool,
    scale: float,
    counter: Parameter | None,
    guard: Guard,
) -> type:
    one = ms.Tensor([1], ms.int32)
    writers = [_writer(part) for part in parts]

    def before() -> Any:
        return tuple(map(_twice, parameters)) if needs_old else ()

    def unscaled(gradient: Any) -> Any:
        return gradient.astype(ms.float32) * scale

    def after(gradients: Any, old: Any) -> None:
        if scale != 1.0:
            gradients = tuple(map(unscaled, gradients))
        for write in writers:
            write(gradients, old)

    before, after = (
        guarded(before, guard, "the optimizer's probe"),
        guarded(after, guard, "the optimizer's probe", compiles=not any(p.own for p in parts)),
    )

    base, members = bridge(plain)  # an optimizer whose construct calls super().construct

    class Probed(base):  # type: ignore[misc, valid-type]
        def construct(self, gradients: Any) -> Any:  # what a graph is compiled from
            old = before()
            out = self._mindpulse_update(gradients)
            after(gradients, old)
            if counter is not None:
                ops.assign_add(counter, one)
            return out

        def __call__(self, gradients: Any) -> Any:  # what PyNative calls
            # Most optimizers' construct is a jit function, which compiles whatever the class has
            # then: with the probes in it they would run twice, and could not be changed again.
            old = before()
            probed, self.__class__ = type(self), plain
            try:
                out = self(gradients)
            finally:
                self.__class__ = probed
            after(gradients, old)
            if counter is not None:
                ops.assign_add(counter, one)
            return out

    complete(Probed, plain, members, "_mindpulse_update")
    return Probed


# Through `map`: a loop over some hundred parameters is nested too deeply for the graph compiler.


def _twice(weight: Any) -> Any:
    # A real copy: times two is exact, and no pass of the compiler takes it away.
    return weight.astype(ms.float32) * 2.0


def _half(twice: Any) -> Any:
    return twice * 0.5


def _change(after: Any, before: Any) -> Any:
    return after.astype(ms.float32) - before


def _own_scale(optimizer: Any) -> float:
    """What an optimizer with a `loss_scale` multiplies its gradients with before it uses them."""
    scale = getattr(optimizer, "loss_scale", 1.0)
    return 1.0 / float(scale) if getattr(optimizer, "need_scale", False) else 1.0


def _writer(part: Part) -> Callable[[Any, Any], None]:
    put, values = part.site.slot.put, part.values

    def write(gradients: Any, old: Any) -> None:
        put(True, values(gradients, old))

    return write


def gradient_values(shapes: Sequence[tuple[int, ...]], rates: Sequence[Parameter]) -> Any:
    """(gradients, old) -> (sum(g ** 2) / 2 of each parameter, then the learning rates)."""
    half_squares = tensors.half_squares(shapes)
    rates = list(rates)

    def values(gradients: Any, old: Any) -> Any:
        row: tuple[Any, ...] = (half_squares(gradients),)
        for rate in rates:
            row = (*row, rate.astype(ms.float32).reshape(1))
        return ops.concat(row)

    return values


def detail_values(shapes: Sequence[tuple[int, ...]], wanted: tuple[str, ...]) -> Any:
    """(gradients, old) -> each wanted measure of each gradient."""
    details = tensors.details(shapes, wanted)

    def values(gradients: Any, old: Any) -> Any:
        return details(gradients).reshape(-1)

    return values


def own_values(weights: ParameterTuple | None, measures: list[Callable[[Any], Any]]) -> Any:
    """(gradients, old) -> the user's measures of each weight, or of each gradient without."""

    numbers = [_number_by(measure) for measure in measures]

    def values(gradients: Any, old: Any) -> Any:
        tensors = gradients if weights is None else weights
        row: tuple[Any, ...] = ()
        for number in numbers:
            row = (*row, *tuple(map(number, tensors)))
        return ops.concat(row)

    return values


def _number_by(measure: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def number(tensor: Any) -> Any:
        return measure(tensor.astype(ms.float32)).astype(ms.float32).reshape(1)

    return number


def weight_values(parameters: ParameterTuple) -> Any:
    """(gradients, old) -> sum(w ** 2) / 2 of each weight after the update."""
    half_squares = tensors.half_squares([p.shape for p in parameters])

    def values(gradients: Any, old: Any) -> Any:
        return half_squares(parameters)

    return values


def update_values(parameters: ParameterTuple) -> Any:
    """(gradients, old) -> half squares of each weight's change, then of each weight before it."""
    half_squares = tensors.half_squares([p.shape for p in parameters])

    def values(gradients: Any, old: Any) -> Any:
        befores = tuple(map(_half, old))
        changes = tuple(map(_change, parameters, befores))
        return ops.concat((half_squares(changes), half_squares(befores)))

    return values


def moment_values(first: ParameterTuple, second: ParameterTuple) -> Any:
    """(gradients, old) -> half squares of Adam's first moments, then of its second ones."""
    shapes = [p.shape for p in first]
    half_squares = tensors.half_squares(shapes)

    def values(gradients: Any, old: Any) -> Any:
        return ops.concat((half_squares(first), half_squares(second)))

    return values


def moments_of(optimizer: Any) -> tuple[ParameterTuple, ParameterTuple] | None:
    """Adam's first and second moments, one each per parameter; None where it has none."""
    count = len(list(optimizer.parameters))
    for names in _MOMENTS:
        found = [getattr(optimizer, name, None) for name in names]
        if all(isinstance(x, (tuple, list)) and len(x) == count for x in found):
            first, second = (ParameterTuple(list(x)) for x in found if x is not None)
            return first, second
    return None
