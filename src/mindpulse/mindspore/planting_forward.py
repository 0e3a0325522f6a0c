"""Plants the probes of forward values: attention, norms, feed-forward blocks, logits, routers."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, ops

from mindpulse.catalogue.histogram import BINS, HISTOGRAM_LABELS
from mindpulse.catalogue.user import UserMeasure, registered
from mindpulse.mindspore import measures
from mindpulse.mindspore.guard import Guard
from mindpulse.mindspore.measures import MAP_HEADS
from mindpulse.mindspore.probes import forward
from mindpulse.mindspore.probes.eager import guarded
from mindpulse.mindspore.ring import Group
from mindpulse.mindspore.sites import (
    Fallback,
    Site,
    TapMember,
    decode_attention,
    decode_groups,
    decode_values,
)
from mindpulse.mindspore.structure import Place, find_places
from mindpulse.mindspore.tap import tap

if TYPE_CHECKING:
    from mindpulse.mindspore.planting import Planting

log = logging.getLogger("mindpulse")
UNKNOWN_HEADS = 64  # columns kept for a softmax whose owner does not tell its number of heads
# In this order kinds are left out of a step that does not compile: the likeliest culprit first.
FALLBACKS = ("router", "logits", "ffn", "norm", "attention", "loss")


def plant_forward(planting: Planting, net: Any, train_cell: Any) -> None:
    """Finds the places of the model and plants what is wanted there; the loss cell too."""
    options = planting.options
    places = find_places(net, options.include, options.exclude)
    planting.places += places
    own = {
        kind: own_measures(kind, planting.guard) for kind in ("attention", "norm", "ffn", "logits")
    }
    padding = _plant_padding(planting, places)
    calls: list[Any] = []  # the user's own measures that are in the step
    for place in places:
        if place.state != "planted":
            continue
        if place.kind == "attention":
            _plant_attention(planting, place, own["attention"], padding, calls)
        elif place.kind in ("norm", "ffn", "logits"):
            _plant_values(planting, place, own[place.kind], calls)
        elif place.kind == "router":
            _plant_router(planting, place)
    _plant_loss(planting, train_cell)
    if calls:
        planting.fallbacks.append(_without_calls(calls))
    for kind in FALLBACKS:
        members = [m for m in planting.members if m.site.place.kind == kind]
        if members:
            out = functools.partial(_leave_out, members, True)
            back = functools.partial(_leave_out, members, False)
            planting.fallbacks.append(Fallback(kind, out, back))


def _without_calls(calls: Sequence[list[Any]]) -> Fallback:
    """The user's own measures; the lists are those that the probes' closures hold."""
    kept = [tuple(extra) for extra in calls]

    def out() -> None:
        for extra in calls:
            extra.clear()

    def back() -> None:
        for extra, functions in zip(calls, kept, strict=True):
            extra[:] = functions

    return Fallback("user", out, back)


def _leave_out(members: Sequence[TapMember], dropped: bool) -> None:
    for member in members:
        member.dropped = dropped


def _plant_padding(planting: Planting, places: Sequence[Place]) -> forward.Padding | None:
    """The probe of the token ids, where they are of use; says what becomes of its place."""
    tag, options = "attn_padding_mass", planting.options
    wanted = tag in planting.intervals
    found = [place for place in places if place.kind == "embedding" and place.state == "planted"]
    attention = [place for place in places if place.kind == "attention"]
    if not wanted or options.pad_id is None or not found:
        if wanted:
            del planting.intervals[tag]
        for place in found:
            place.skip("only for attn_padding_mass" + ("; give pad_id" if wanted else ""))
        return None
    padding = forward.Padding(planting.ring, options.pad_id)
    place = found[0]
    place.reason = f"which tokens are padding (id {options.pad_id})"
    for other in found[1:]:
        other.skip("the first embedding tells which tokens are padding")
    site = Site(planting.ring.slot("padding", 1, [Group(tag, 0, 0)]), place, ran=True)
    watch = guarded(padding.watch, planting.guard, f"the probe of {place.path}")
    planting.members.append(TapMember(tap(place, watch), site))
    planting.sites.append(site)
    return padding if attention else None


def _plant_attention(
    planting: Planting,
    place: Place,
    own: Sequence[UserMeasure],
    padding: forward.Padding | None,
    calls: list[Any],
) -> None:
    ours = planting.wanted("attention")
    tags = (*ours, *(user.measure.tag for user in own))
    if not tags:
        place.skip("no measure of attention is wanted")
        return
    ring, options = planting.ring, planting.options
    layer = str(sum(site.place.kind == "attention" for site in planting.sites))
    cap = place.heads or UNKNOWN_HEADS
    groups = [
        Group(tag, forward.SHAPE + i * cap, cap, within=planting.measure_of(tag).within)
        for i, tag in enumerate(tags)
    ]
    slot = ring.slot(f"attention.{layer}", forward.SHAPE + len(tags) * cap, groups)
    small = None
    if options.snapshot_every:
        side = options.snapshot_side
        zeros = Tensor(np.zeros((min(place.heads or MAP_HEADS, cap), side, side)), ms.float32)
        small = Parameter(zeros, name=f"{ring.name}.map.{layer}", requires_grad=False)
    site = Site(slot, place, label=layer, map=small)
    site.decode = decode_attention(site, cap)
    rows = measures.attention.rows(ours) if ours else None
    extra = _calls(own, planting.guard, calls, per_head=True)
    watch = forward.attention(slot, place.heads, cap, rows, extra, padding, small)
    place.reason = place.reason or ", ".join(tags)
    _add(planting, place, site, watch, compiles=not extra)


def _plant_values(
    planting: Planting, place: Place, own: Sequence[UserMeasure], calls: list[Any]
) -> None:
    """A norm, a feed-forward block or the logits: plain values of one node."""
    kind = place.kind
    ours = planting.wanted(kind)
    tags = (*ours, *(user.measure.tag for user in own))
    if not tags:
        place.skip(f"no measure of {kind} is wanted")
        return
    groups: list[Group] = []
    for tag in tags:
        measure = planting.measure_of(tag)
        columns: tuple[tuple[str, ...], ...] = ((place.path,),) if measure.axes else ()
        if "bin" in measure.axes:
            columns = tuple((place.path, label) for label in HISTOGRAM_LABELS)
        width = BINS if "bin" in measure.axes else 1
        start = groups[-1].start + groups[-1].width if groups else 0
        groups.append(Group(tag, start, width, columns, measure.within))
    number = sum(site.place.kind == kind for site in planting.sites)
    if kind == "logits" and number:
        place.skip("only the first logits are measured")
        return
    width = groups[-1].start + groups[-1].width + forward.BITS
    slot = planting.ring.slot(f"{kind}.{number}", width, groups)
    site = Site(slot, place, label=place.path)
    site.decode = decode_values(site)
    maker = {"norm": measures.norm.row, "ffn": measures.ffn.row, "logits": measures.output.row}
    row = maker[kind](ours) if ours else None
    extra = _calls(own, planting.guard, calls, per_head=False)
    watch = forward.values(slot, place.side == "output", row, extra)
    _add(planting, place, site, watch, compiles=not extra)


def _plant_router(planting: Planting, place: Place) -> None:
    tags = planting.wanted("router")
    if not tags:
        place.skip("no measure of routers is wanted")
        return
    if not place.size:
        place.skip("nothing tells the number of experts")
        return
    layer = str(sum(site.place.kind == "router" for site in planting.sites))
    columns = tuple((layer, str(expert)) for expert in range(place.size))
    width, groups = place.size + forward.BITS, [Group("expert_load", 0, place.size, columns)]
    slot = planting.ring.slot(f"router.{layer}", width, groups)
    site = Site(slot, place, label=layer)
    site.decode = decode_values(site)
    row = measures.router.row(place.size, place.top_k)
    _add(planting, place, site, forward.values(slot, place.side == "output", row, []))


def _plant_loss(planting: Planting, train_cell: Any) -> None:
    network = _loss_cell(train_cell)
    if "train_loss" not in planting.intervals or network is None:
        return
    place = Place("network", "loss", network, reason="output of the loss cell")
    slot = planting.ring.slot("loss", 1, [Group("train_loss", 0, 1)])
    site = Site(slot, place)
    site.decode = decode_groups(slot)
    planting.places.append(place)
    _add(planting, place, site, forward.loss(slot))


def _loss_cell(train_cell: Any) -> Any:
    """What a training cell, or one inside it, calls for the loss: its `network`."""
    cells = train_cell.cells_and_names() if isinstance(train_cell, ms.nn.Cell) else ()
    found = (getattr(cell, "network", None) for _, cell in cells)
    return next((network for network in found if isinstance(network, ms.nn.Cell)), None)


def _add(
    planting: Planting, place: Place, site: Site, watch: forward.Watch, compiles: bool = True
) -> None:
    what = f"the probe of {place.path}"
    try:
        member = TapMember(tap(place, guarded(watch, planting.guard, what, compiles)), site)
    except Exception as error:  # a place that is not what it looks like costs that place only
        place.skip(f"cannot be tapped: {type(error).__name__}: {error}"[:200])
        del planting.ring.slots[site.slot.name]
        return
    planting.sites.append(site)
    planting.members.append(member)


_TRIAL = {"attention": (2, 2, 4, 4), "gradient": (4, 8), "weight": (4, 8)}


def own_measures(place: str, guard: Guard) -> list[UserMeasure]:
    """The user's measures of a place, without those that PyNative must not meet inside a step.

    An operator that refuses its types there takes the gradients of the step with it; outside it is
    an error like any. Other errors may come from the trial's shapes, and do no harm in a step.
    """
    return [
        user
        for user in registered(place)
        if ms.get_context("mode") == ms.GRAPH_MODE
        or guard(f"trying the measure {user.tag}", functools.partial(_try_out, user, place))
    ]


def _try_out(user: UserMeasure, place: str) -> None:
    shape = _TRIAL.get(place, (2, 4, 8))
    node = np.random.default_rng(0).random(shape).astype(np.float32)
    try:
        user.function(Tensor(node)).asnumpy()
    except TypeError:
        raise
    except Exception as error:
        log.debug("trying the measure %s: %s", user.tag, error)


def _calls(
    own: Sequence[UserMeasure], guard: Guard, calls: list[Any], per_head: bool
) -> list[Callable[[Any], Any]]:
    """The user's functions, each of which gives NaN once it has failed in PyNative."""
    found = [safe(measure, guard, per_head) for measure in own]
    if found:
        calls.append(found)
    return found


def safe(measure: UserMeasure, guard: Guard, per_head: bool) -> Callable[[Any], Any]:
    function, tag = measure.function, measure.measure.tag
    failed: list[bool] = []

    @functools.wraps(function)
    def run(node: Any) -> Any:
        found: list[Any] = []

        def call() -> None:
            value = function(node)
            wanted = node.shape[1] if per_head else 1
            if value.size != wanted:
                raise ValueError(
                    f"{tag} returned shape {tuple(value.shape)}, want "
                    + (f"({wanted},), one value per head" if per_head else "()")
                )
            found.append(value)

        if not failed and not guard(f"the measure {tag}", call):
            failed.append(True)
        size = (node.shape[1],) if per_head else (1,)
        return found[0] if found else ops.full(size, float("nan"), dtype=ms.float32)

    return run
