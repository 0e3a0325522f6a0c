"""The probe of clipping: the norm of the gradients that are handed to it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from mindspore.ops import constexpr

from mindpulse.mindspore.guard import Guard
from mindpulse.mindspore.measures import tensors
from mindpulse.mindspore.probes.eager import guarded
from mindpulse.mindspore.ring import Slot

Shapes = tuple[tuple[int, ...], ...]
_numbers = itertools.count()
_WHAT = "the probe of clipping"


def clipping(slots: Sequence[Slot], shapes: Sequence[Shapes], guard: Guard) -> Callable[[Any], Any]:
    """Called inside the step with what is clipped; keeps sum(g ** 2) / 2 of all gradients.

    Args:
        slots: of width 1; the last call of a step counts.
        shapes: for each slot those of the gradients that belong there. What has other shapes, as
            a single tensor or the gradients of another training, is passed over.
    """
    # The compiler takes constant functions of one name for the same.
    number_of = constexpr(_numbering(shapes), name=f"mindpulse_clipping_{next(_numbers)}")
    writers = [
        _writer(number, slot, own, guard)
        for number, (slot, own) in enumerate(zip(slots, shapes, strict=True))
    ]

    def show(gradients: Any) -> None:
        if isinstance(gradients, (tuple, list)):
            number = number_of(tuple(map(_shape, gradients)))
            for write in writers:
                write(number, gradients)

    return guarded(show, guard, _WHAT, compiles=False)


def _numbering(shapes: Sequence[Shapes]) -> Callable[[Any], int]:
    """Shapes of some gradients -> number of the slot, -1 for none."""
    numbers: dict[Shapes, int] = {}
    for number, own in enumerate(shapes):
        numbers.setdefault(own, number)

    def number_of(found: Any) -> int:
        return numbers.get(tuple(tuple(shape) for shape in found), -1)

    return number_of


def _writer(number: int, slot: Slot, shapes: Shapes, guard: Guard) -> Callable[[int, Any], None]:
    half_squares, put = tensors.half_squares(shapes), slot.put

    def keep(gradients: Any, old: Any) -> None:
        put(True, half_squares(gradients).sum().reshape(1))

    keep = guarded(keep, guard, _WHAT)

    def write(found: int, gradients: Any) -> None:
        if found == number:
            keep(gradients, ())

    return write


def _shape(gradient: Any) -> Any:
    return gradient.shape
