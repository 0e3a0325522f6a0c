"""Plants all probes of a training, and knows how to take them out again."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor

from mindpulse.errors import PlantError, UsageError
from mindpulse.mindspore import plant, structure
from mindpulse.mindspore.actions import LearningRate, find_learning_rate
from mindpulse.mindspore.guard import Guard
from mindpulse.mindspore.measures import MAP_HEADS, MAP_SIDE
from mindpulse.mindspore.ring import Ring
from mindpulse.mindspore.structure import Place
from mindpulse.mindspore.variants import Thinning, watched
from mindpulse.schedule import Every

UNKNOWN_HEADS = 64  # columns kept for a softmax whose owner does not tell its number of heads
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure and how often; see `TransformerMonitor` for the meaning of each."""

    attention_every: int = 10
    snapshot_every: int = 100
    include: str = "*"
    exclude: str = ""
    capacity: int = 64

    def __post_init__(self) -> None:
        Every(self.attention_every)
        for name, least in (("snapshot_every", 0), ("capacity", 2)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise UsageError(f"{name}={value!r}: use a whole number from {least} up")


@dataclass(slots=True, eq=False)
class AttentionProbe:
    """One planted softmax: layer label, slot, columns kept, and its map (heads, query, key)."""

    layer: str
    slot: str
    cap: int
    place: Place
    map: Parameter | None


@dataclass(slots=True, eq=False)
class Planted:
    """Everything that was planted for one training."""

    ring: Ring
    places: list[Place]
    attention: list[AttentionProbe]
    parameters: list[str]
    has_loss: bool
    thinning: Thinning
    learning_rate: LearningRate | None
    chooses_itself: bool = False
    undo: list[Callable[[], None]] = field(default_factory=list)

    def remove(self) -> None:
        """Takes every probe out; the model is as it was."""
        self.thinning.retire()
        while self.undo:
            self.undo.pop()()


def plant_all(
    net: Any, optimizer: Any, train_cell: Any, first_step: int, options: Options, guard: Guard
) -> Planted:
    """Plants the probes of this version: loss, learning rate, gradient norms, attention.

    Raises:
        PlantError: there is no optimizer, or it has no parameters.
    """
    if optimizer is None:
        raise PlantError("no optimizer was found in the training cell: use attach(net, optimizer)")
    ring = Ring(f"mindpulse{next(_numbers)}", options.capacity, first_step)
    places = structure.attention_places(net, options.include, options.exclude)
    attention, swaps = _plant_attention(ring, places, options)
    thinning = Thinning(swaps, Every(options.attention_every), lambda: first_step)
    planted = Planted(ring, places, attention, [], False, thinning, None)
    try:
        _plant_optimizer(planted, optimizer)
        if train_cell is not None:
            _plant_train_cell(planted, train_cell, guard)
    except BaseException:
        planted.remove()
        raise
    thinning.set(True)
    return planted


def _plant_attention(
    ring: Ring, places: list[Place], options: Options
) -> tuple[list[AttentionProbe], list[plant.Swap]]:
    probes: list[AttentionProbe] = []
    swaps: list[plant.Swap] = []
    for place in places:
        if place.state != "planted":
            continue
        layer, cap = str(len(probes)), place.heads or UNKNOWN_HEADS
        slot = ring.slot(f"attention.{layer}", 3 + 2 * cap)
        small = _map_parameter(ring, layer) if options.snapshot_every else None
        swaps.append(plant.attention_probe(place.cell, slot, place.heads, cap, small))
        probes.append(AttentionProbe(layer, slot.name, cap, place, small))
    return probes, swaps


def _map_parameter(ring: Ring, layer: str) -> Parameter:
    zeros = Tensor(np.zeros((MAP_HEADS, MAP_SIDE, MAP_SIDE)), ms.float32)
    return Parameter(zeros, name=f"{ring.name}.map.{layer}", requires_grad=False)


def _plant_optimizer(planted: Planted, optimizer: Any) -> None:
    planted.parameters = structure.parameter_names(optimizer)
    if not planted.parameters:
        name = type(optimizer).__name__
        raise PlantError(f"{name} has no parameters: give the optimizer that trains")
    found = find_learning_rate(optimizer)
    for schedule in found.schedules:
        schedule.on()
        planted.undo.append(schedule.off)
    slot = planted.ring.slot("optimizer", len(planted.parameters) + len(found.rates))
    planted.undo.append(plant.optimizer_probe(optimizer, slot, found.rates))
    planted.places.append(
        Place("optimizer", "optimizer", optimizer, reason=f"{len(planted.parameters)} gradients")
    )
    planted.places.append(_rate_place(found))
    planted.learning_rate = found if found.rates else None


def _rate_place(found: LearningRate) -> Place:
    if found.rates:
        reason = f"{len(found.constants)} constant, {len(found.schedules)} scheduled"
        return Place("optimizer.learning_rate", "learning_rate", reason=reason)
    reason = "the optimizer has no learning_rate that is a Parameter or a schedule"
    return Place("optimizer.learning_rate", "learning_rate", None, "skipped", reason)


def _plant_train_cell(planted: Planted, train_cell: Any, guard: Guard) -> None:
    network = getattr(train_cell, "network", None)
    if isinstance(network, ms.nn.Cell):
        swap = plant.loss_probe(network, planted.ring.slot("loss", 1))
        swap.on()
        planted.undo.append(swap.off)
        planted.has_loss = True
        planted.places.append(Place("network", "loss", network, reason="output of the loss cell"))
    chooser = watched(train_cell, planted.ring.name, planted.thinning, guard, planted.remove)
    chooser.on()
    planted.chooses_itself = True
    planted.undo.append(chooser.off)
