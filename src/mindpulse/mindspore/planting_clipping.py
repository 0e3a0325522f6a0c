"""Plants the probe of clipping: what is handed to it, wherever in the step that happens."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mindspore import ops

from mindpulse.mindspore.acting import clip
from mindpulse.mindspore.probes.clipping import Shapes, clipping
from mindpulse.mindspore.ring import Group
from mindpulse.mindspore.sites import Fallback, Site, TapMember, decode_total
from mindpulse.mindspore.structure import Place
from mindpulse.mindspore.structure.clipping import find_clip_cells
from mindpulse.mindspore.tap.named import NameTap, shown_by_cell, shown_by_function
from mindpulse.mindspore.tap.swap import watch_cell

if TYPE_CHECKING:
    from mindpulse.mindspore.planting import Planting

UNCLIPPED = "grad_norm_unclipped"
# What the framework's functions go through: name -> the function, how it is watched.
_PASSED = {
    "_ClipByGlobalNorm": ("ops.clip_by_global_norm", shown_by_cell),
    "_cal_total_norm": ("ops.clip_by_norm", shown_by_function),
}


def plant_clipping(
    planting: Planting, net: Any, optimizers: Sequence[Any], train_cell: Any
) -> None:
    """Watches each way of clipping that is known; whether the step clips shows when it runs."""
    if UNCLIPPED not in planting.intervals:
        return
    shapes = _shapes(optimizers)
    place = Place("clipping", "clip", how="function")
    planting.places.append(place)
    sites = [
        Site(
            planting.ring.slot(f"clipping.{n}", 1, [Group(UNCLIPPED, 0, 1)], merges=False),
            place,
            decode_total(UNCLIPPED),
        )
        for n in range(len(shapes))
    ]
    planting.sites += sites
    show = clipping([site.slot for site in sites], shapes, planting.guard)
    taps, names = _taps(show, net, train_cell)
    place.reason = "what goes into " + ", ".join(names)
    member = TapMember(_Taps(taps), sites[0])
    planting.members.append(member)
    planting.fallbacks.append(
        Fallback(
            "clip",
            functools.partial(setattr, member, "dropped", True),
            functools.partial(setattr, member, "dropped", False),
        )
    )


def _shapes(optimizers: Sequence[Any]) -> list[Shapes]:
    """Of the gradients of each optimizer; then, of several, of all together."""
    each = [tuple(tuple(p.shape) for p in optimizer.parameters) for optimizer in optimizers]
    return each if len(each) == 1 else [*each, tuple(itertools.chain(*each))]


def _taps(show: Callable[[Any], Any], net: Any, train_cell: Any) -> tuple[list[Any], list[str]]:
    """The taps, and what they watch."""
    taps: list[Any] = [NameTap(clip, "square_total", shown_by_function, show)]
    names = ["ClipNorm"]
    module: Any = getattr(ops.function, "clip_func", None)
    for name, (function, wrap) in _PASSED.items():
        if hasattr(module, name):
            taps.append(NameTap(module, name, wrap, show))
            names.append(function)

    def show_input(training: Any, before: Any, out: Any) -> None:
        show(before)

    for path, cell in find_clip_cells(train_cell, net):
        taps.append(watch_cell(cell, show_input))
        names.append(path)
    return taps, names


class _Taps:
    """Several taps as one."""

    def __init__(self, taps: Sequence[Any]) -> None:
        self._taps = taps

    def on(self) -> None:
        for tap in self._taps:
            tap.on()

    def off(self) -> None:
        for tap in self._taps:
            tap.off()
