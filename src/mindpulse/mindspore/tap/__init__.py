"""Taps: show a place's input and output to a function that runs inside the step.

A tap changes nothing that the step computes. How it gets in depends on the place: `swap` exchanges
a cell's class, `attribute` a primitive or function that a cell holds, `shadow` a function that its
methods call.
"""

from __future__ import annotations

from typing import Any, Protocol

from mindpulse.errors import PlantError
from mindpulse.mindspore.structure import Place, calls
from mindpulse.mindspore.tap.attribute import watch_attribute
from mindpulse.mindspore.tap.functions import watched_cross_entropy, watched_softmax
from mindpulse.mindspore.tap.shadow import watch_function
from mindpulse.mindspore.tap.swap import Watch, watch_cell, watch_mark

__all__ = ["Tap", "Watch", "tap"]

_FUNCTIONS = {
    "softmax": (calls.SOFTMAX, watched_softmax),
    "cross_entropy": (calls.CROSS_ENTROPY, watched_cross_entropy),
}


class Tap(Protocol):
    """Something that watches a place; `on` and `off` may alternate as often as needed."""

    def on(self) -> None:
        """The place is watched from now on; what is compiled already does not change."""

    def off(self) -> None:
        """The model is exactly as the user made it."""


def tap(place: Place, watch: Watch) -> Tap:
    """A tap on a planted place, still off.

    Args:
        place: as `structure.find_places` gives it.
        watch: called as `watch(training, before, after)` right after the operator: whether the cell
            trains (a bool, constant in a graph), the operator's first input and its output (the
            first of several). For a fused attention: row maxima and sums. It runs in the graph.

    Raises:
        PlantError: the place is skipped.
    """
    if place.cell is None:
        raise PlantError(f"{place.path or place.kind} cannot be tapped: {place.reason}")
    if place.how == "mark":
        return watch_mark(place.cell, watch)
    if place.how == "function":
        targets, wrap = _FUNCTIONS[place.attribute]
        return watch_function(place.cell, targets, wrap, watch)
    show = _sums(watch) if place.how == "fused" else _first(watch)
    if place.how == "primitive":
        return watch_attribute(place.owner, place.attribute, show)
    if place.how == "fused" and place.attribute in vars(place.owner):
        return watch_attribute(place.owner, place.attribute, show)
    if place.how == "fused":
        return watch_cell(getattr(place.owner, place.attribute), show)
    return watch_cell(place.cell, show)


def _first(watch: Watch) -> Watch:
    def show(training: Any, before: Any, out: Any) -> None:
        watch(training, before, out[0] if isinstance(out, (tuple, list)) else out)

    return show


def _sums(watch: Watch) -> Watch:
    """A fused attention returns (row maxima, row sums, reserved, result)."""

    def show(training: Any, before: Any, out: Any) -> None:
        watch(training, out[0], out[1])

    return show
