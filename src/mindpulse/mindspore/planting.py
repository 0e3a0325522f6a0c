"""Plants all probes of a training, and knows how to take them out again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mindpulse.catalogue import MEASURES, Measure
from mindpulse.catalogue.selection import select
from mindpulse.catalogue.user import registered_tags
from mindpulse.errors import PlantError, UsageError
from mindpulse.mindspore.acting.clip import find_limits
from mindpulse.mindspore.guard import Guard
from mindpulse.mindspore.learning_rate import LearningRate, find_learning_rates
from mindpulse.mindspore.planting_clipping import plant_clipping
from mindpulse.mindspore.planting_forward import plant_forward
from mindpulse.mindspore.planting_optimizer import plant_optimizers
from mindpulse.mindspore.probes.train_cell import loss_scale_probe, scales_loss
from mindpulse.mindspore.ring import Group, Ring
from mindpulse.mindspore.sites import Fallback, Site, decode_groups
from mindpulse.mindspore.structure import Place
from mindpulse.mindspore.variants import Variants, watched
from mindpulse.schedule import Budget, Density

_numbers = itertools.count()
Globs = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure and how often; see `TransformerMonitor` for the meaning of each.

    Attributes:
        intervals: tag -> steps between two measurements, of everything that is wanted.
    """

    measures: str | Sequence[str] = "default"
    interval: int | Mapping[str, int] | None = None
    snapshot_every: int = 100
    snapshot_side: int = 64
    include: Globs = "*"
    exclude: Globs = ""
    pad_id: int | None = None
    causal: bool | None = None
    max_overhead: float | None = None
    capacity: int = 64
    keep_every: int = 0
    clip: Any = None

    def __post_init__(self) -> None:
        least_of = {"snapshot_every": 0, "snapshot_side": 1, "capacity": 2, "keep_every": 0}
        for name, least in least_of.items():
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise UsageError(f"{name}={value!r}: use a whole number from {least} up")
        if self.pad_id is not None and not isinstance(self.pad_id, int):
            raise UsageError(f"pad_id={self.pad_id!r}: use the id of the padding token, or None")
        if self.causal not in (None, True, False):
            raise UsageError(f"causal={self.causal!r}: use True, False, or None for not told")
        if self.max_overhead is not None:
            Budget(self.max_overhead)
        find_limits((), self.clip)
        self.intervals()

    def intervals(self) -> dict[str, int]:
        """Tag -> steps between two measurements: what was asked for, and the user's measures."""
        known = known_measures()
        found = select(self.measures, self.interval, known)
        own = {tag: m for tag, m in known.items() if tag not in MEASURES and tag not in found}
        return {**found, **(select(tuple(own), self.interval, known) if own else {})}


def known_measures() -> dict[str, Measure]:
    """The catalogue and the user's own measures."""
    return {**MEASURES, **registered_tags()}


@dataclass(slots=True, eq=False)
class Planting:
    """What is known while probes are planted.

    Attributes:
        intervals: tag -> steps between two measurements.
        members: what follows the variants.
        fallbacks: kinds of probes, in the order in which they are left out when the step does not
            compile.
        tries: how often something was left out.
    """

    ring: Ring
    options: Options
    intervals: dict[str, int]
    guard: Guard
    places: list[Place] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    members: list[Any] = field(default_factory=list)
    fallbacks: list[Fallback] = field(default_factory=list)
    tries: int = 0

    def wanted(self, place: str) -> tuple[str, ...]:
        """Our measures that are taken at such a place."""
        return tuple(
            tag for tag in self.intervals if tag in MEASURES and MEASURES[tag].place == place
        )

    def measure_of(self, tag: str) -> Measure:
        """A measure of ours or of the user's."""
        return known_measures()[tag]


@dataclass(slots=True, eq=False)
class Planted:
    """Everything that was planted for one training."""

    ring: Ring
    places: list[Place]
    sites: list[Site]
    variants: Variants
    density: Density
    learning_rate: LearningRate | None
    intervals: dict[str, int]
    chooses_itself: bool = False
    undo: list[Callable[[], None]] = field(default_factory=list)

    def reset(self, first_step: int) -> None:
        """The probes as they were before their first step, for the next run."""
        self.ring.reset(first_step)
        self.density = Density({s.slot.name: _tags(s) for s in self.sites}, self.intervals)
        self.variants.begin(self.density)

    def remove(self) -> None:
        """Takes every probe out; the model is as it was."""
        self.variants.retire()
        while self.undo:
            self.undo.pop()()


def plant_all(
    net: Any,
    optimizers: Sequence[Any],
    train_cell: Any,
    first_step: int,
    options: Options,
    guard: Guard,
    seen: Callable[[tuple[Any, ...]], None],
) -> Planted:
    """Plants the probes that the options want.

    Args:
        seen: called with the inputs of each step of `train_cell`.

    Raises:
        PlantError: there is no optimizer, or it has no parameters.
    """
    if not optimizers:
        raise PlantError("no optimizer was found in the training cell: use attach(net, optimizer)")
    ring = Ring(f"mindpulse{next(_numbers)}", options.capacity, first_step)
    planting = Planting(ring, options, options.intervals(), guard)
    plant_forward(planting, net, train_cell)
    rate = find_learning_rates(optimizers)
    plant_optimizers(planting, optimizers, rate)
    plant_clipping(planting, net, optimizers, train_cell)
    slots = {site.slot.name: _tags(site) for site in planting.sites}
    density = Density(slots, planting.intervals)
    for site in planting.sites:
        site.tier = next(t for t, held in enumerate(density.tiers) if site.slot.name in held)
    variants = Variants(planting.members, density)
    variants.drop = lambda: _drop(planting)
    planted = Planted(
        ring, planting.places, planting.sites, variants, density,
        rate if rate.rates else None, planting.intervals,
    )  # fmt: skip
    try:
        for schedule in rate.schedules:
            schedule.on()
            planted.undo.append(schedule.off)
        if train_cell is not None:
            _watch_train_cell(planted, train_cell, guard, seen)
    except BaseException:
        planted.remove()
        raise
    variants.set(variants.count - 1)
    return planted


def _watch_train_cell(
    planted: Planted, cell: Any, guard: Guard, seen: Callable[[tuple[Any, ...]], None]
) -> None:
    """Lets the training cell choose its variant; keeps the loss scale where it has one."""
    before = made = type(cell)
    ring, tags = planted.ring, ("overflow", "loss_scale")
    if scales_loss(cell) and any(tag in planted.intervals for tag in tags):
        slot = ring.slot("scale", 2, [Group(tag, i, 1) for i, tag in enumerate(tags)], merges=False)
        place = Place("train_network", "loss_scale", cell, reason="overflow and loss scale")
        planted.places.append(place)
        planted.sites.append(Site(slot, place, decode_groups(slot)))
        made = loss_scale_probe(made, slot, ring.counter, ring.capacity)
    cell.__class__ = watched(made, before, ring.name, planted.variants, guard, planted.remove, seen)

    def restore() -> None:
        cell.__class__ = before

    planted.undo.append(restore)
    planted.chooses_itself = True


def _tags(site: Site) -> tuple[str, ...]:
    return tuple(dict.fromkeys(group.tag for group in site.slot.groups))


def _drop(planting: Planting) -> bool:
    """Leaves something out of a step that does not compile; returns False when nothing is left.

    First each kind of probe by itself, so that the culprit alone is lost; then more and more.
    """
    kinds, tried = planting.fallbacks, planting.tries
    if tried >= 2 * len(kinds):
        return False
    planting.tries += 1
    if 0 < tried < len(kinds):
        kinds[tried - 1].back()
        _mark(planting, kinds[tried - 1].kind, "failed", "planted", "")
    fallback = kinds[tried % len(kinds)]
    fallback.out()
    _mark(planting, fallback.kind, "planted", "failed", "the step does not compile with this probe")
    return True


def _mark(planting: Planting, kind: str, old: str, new: str, reason: str) -> None:
    for place in planting.places:
        if place.kind == kind and place.state == old:
            place.state, place.reason = new, reason
