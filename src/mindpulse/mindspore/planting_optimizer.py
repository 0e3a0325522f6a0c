"""Plants the probes of the optimizers: gradients, weights, moments, learning rates."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mindspore import ParameterTuple

from mindpulse.errors import PlantError
from mindpulse.mindspore.learning_rate import LearningRate
from mindpulse.mindspore.planting_clipping import UNCLIPPED
from mindpulse.mindspore.planting_forward import own_measures, safe
from mindpulse.mindspore.probes import optimizer as probes
from mindpulse.mindspore.probes.optimizer import OptimizerTap, Part
from mindpulse.mindspore.ring import Group
from mindpulse.mindspore.sites import (
    Decode,
    Fallback,
    Site,
    decode_gradients,
    decode_groups,
    decode_norms,
    decode_updates,
)
from mindpulse.mindspore.structure import Place, parameter_names

if TYPE_CHECKING:
    from mindpulse.mindspore.planting import Planting

_NORMS = ("grad_norm", "grad_norm_param", "grad_norm_ratio")


def plant_optimizers(planting: Planting, optimizers: Sequence[Any], rate: LearningRate) -> None:
    """Plants each optimizer; the last one ends the step.

    Raises:
        PlantError: an optimizer has no parameters.
    """
    for number, optimizer in enumerate(optimizers):
        rates = rate.rates if number == len(optimizers) - 1 else ()
        counter = planting.ring.counter if number == len(optimizers) - 1 else None
        _plant(planting, optimizer, str(number) if number else "", rates, counter)
    planting.places.append(_rate_place(rate))


def _plant(
    planting: Planting, optimizer: Any, number: str, rates: Sequence[Any], counter: Any
) -> None:
    names = parameter_names(optimizer)
    if not names:
        name = type(optimizer).__name__
        raise PlantError(f"{name} has no parameters: give the optimizer that trains")
    place = Place("optimizer" + number, "optimizer", optimizer, reason=f"{len(names)} gradients")
    planting.places.append(place)
    build = _Builder(planting, place, number, names)
    parameters = ParameterTuple(list(optimizer.parameters))
    shapes = [tuple(parameter.shape) for parameter in parameters]
    # The norm before clipping has a row for the steps that the optimizer has one for.
    wanted = (*_NORMS, UNCLIPPED, "learning_rate")
    cheap = [tag for tag in wanted if tag in planting.intervals]
    if cheap:
        groups = [Group(tag, 0, 0) for tag in cheap]
        build.add(
            "optimizer", len(names) + len(rates), groups,
            probes.gradient_values(shapes, rates), decode_gradients(names, len(rates)),
        )  # fmt: skip
    details = tuple(tag for tag in planting.wanted("gradient") if tag not in _NORMS)
    if details:
        build.per_parameter("gradient", details, probes.detail_values(shapes, details))
    if "weight_norm" in planting.intervals:
        build.add(
            "weight", len(names), [Group("weight_norm", 0, len(names))],
            probes.weight_values(parameters), decode_norms(names, ("weight_norm",)),
        )  # fmt: skip
    own = [build.own("gradient", None), build.own("weight", parameters)]
    if "weight_update_ratio" in planting.intervals:
        build.add(
            "update", 2 * len(names), [Group("weight_update_ratio", 0, 0)],
            probes.update_values(parameters), decode_updates(names), needs_old=True,
        )  # fmt: skip
    _plant_moments(planting, optimizer, build, names)
    tap = OptimizerTap(optimizer, build.parts, counter, planting.guard)
    planting.members.append(tap)
    if any(own):
        own_out = functools.partial(tap.drop, ".own")
        planting.fallbacks.insert(0, Fallback("user", own_out, tap.restore))
    planting.fallbacks.append(Fallback("optimizer", tap.drop, tap.restore))


def _plant_moments(planting: Planting, optimizer: Any, build: _Builder, names: list[str]) -> None:
    tags = tuple(tag for tag in ("adam_m_norm", "adam_v_norm") if tag in planting.intervals)
    if not tags:
        return
    moments = probes.moments_of(optimizer)
    if moments is None:
        reason = f"{type(optimizer).__name__} keeps no first and second moments"
        planting.places.append(
            Place(f"{build.place.path}.moments", "optimizer", None, "skipped", reason)
        )
        return
    both = ("adam_m_norm", "adam_v_norm")
    groups = [Group(tag, i * len(names), len(names)) for i, tag in enumerate(both) if tag in tags]
    build.add(
        "moments", 2 * len(names), groups,
        probes.moment_values(*moments), decode_norms(names, both),
    )  # fmt: skip


class _Builder:
    """Makes the slots of one optimizer's probe."""

    def __init__(self, planting: Planting, place: Place, number: str, names: list[str]) -> None:
        self.planting = planting
        self.place = place
        self.number = number
        self.names = names
        self.parts: list[Part] = []

    def add(
        self,
        name: str,
        width: int,
        groups: list[Group],
        values: Any,
        decode: Decode,
        needs_old: bool = False,
    ) -> None:
        """A slot whose rows `decode` understands."""
        slot = self.planting.ring.slot(name + self.number, width, groups, merges=False)
        site = Site(slot, self.place, decode)
        self.planting.sites.append(site)
        self.parts.append(Part(site, values, needs_old))

    def own(self, place: str, weights: Any) -> bool:
        """The user's measures of each gradient, or of each of `weights`; False without any."""
        users = own_measures(place, self.planting.guard)
        if users:
            calls = [safe(user, self.planting.guard, per_head=False) for user in users]
            tags = tuple(user.measure.tag for user in users)
            self.per_parameter(f"{place}.own", tags, probes.own_values(weights, calls), own=True)
        return bool(users)

    def per_parameter(self, name: str, tags: Sequence[str], values: Any, own: bool = False) -> None:
        """A slot with one column per tag and parameter."""
        columns = tuple((parameter,) for parameter in self.names)
        count = len(columns)
        groups = [Group(tag, i * count, count, columns) for i, tag in enumerate(tags)]
        slot = self.planting.ring.slot(name + self.number, count * len(tags), groups, merges=False)
        site = Site(slot, self.place, decode_groups(slot))
        self.planting.sites.append(site)
        self.parts.append(Part(site, values, own=own))


def _rate_place(found: LearningRate) -> Place:
    if found.rates:
        reason = f"{len(found.constants)} constant, {len(found.schedules)} scheduled"
        return Place("optimizer.learning_rate", "learning_rate", reason=reason)
    reason = "the optimizer has no learning_rate that is a Parameter or a schedule"
    return Place("optimizer.learning_rate", "learning_rate", None, "skipped", reason)
