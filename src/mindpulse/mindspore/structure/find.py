"""All places of a model."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from typing import Any

from mindpulse.mindspore.mark import Mark
from mindpulse.mindspore.structure import feedforward, norms, outputs, softmaxes
from mindpulse.mindspore.structure.place import PLANTED, Place
from mindpulse.mindspore.structure.tree import Tree, last_name, without_wrappers

Globs = str | Sequence[str]

_MISSING = {
    "attention": "no softmax of attention was found: hand probabilities and logits to a "
    "mindpulse.mindspore.Mark('attention') in construct",
    "norm": "no LayerNorm or RMSNorm was found by class name: hand its input to a Mark('norm')",
    "ffn": "no expanding and contracting linear layers were found: hand the inner activation to a "
    "Mark('ffn')",
    "logits": "no head, loss or cross_entropy was found: hand the logits to a Mark('logits')",
    "embedding": "no embedding cell was found: attention to padding is not measured",
}


def find_places(net: Any, include: Globs = "*", exclude: Globs = "") -> list[Place]:
    """Every place of `net` worth measuring, with the reason where one is not taken.

    Places come in the order of the model's tree; a kind that is missing altogether has a row with
    an empty path at the end.

    Args:
        net: the model, any `nn.Cell`.
        include, exclude: globs over the paths ("encoder.*", ["*.0.*", "*cross*"]), for all kinds;
            a path may be written without the "_backbone." that mixed precision puts into it.
    """
    tree = Tree(net)
    places = [
        *_marked(tree),
        *softmaxes.softmax_places(tree),
        *norms.norm_places(tree),
        *feedforward.feedforward_places(tree),
        *outputs.logits_places(tree),
        *outputs.embedding_places(tree),
    ]
    _prefer_marks(places)
    missing = [
        Place("", kind).skip(reason)
        for kind, reason in _MISSING.items()
        if not any(place.kind == kind for place in places)
    ]
    for place in places:
        _select(place, include, exclude)
    return [*_in_order(tree, places), *missing]


def _marked(tree: Tree) -> list[Place]:
    return [
        Place(
            path, cell.kind, cell, how="mark", heads=cell.heads, size=cell.size, top_k=cell.top_k,
            owner=tree.cells[tree.ancestors(path)[0]], attribute=last_name(path),
            reason="marked in the model",
        )
        for path, cell in tree.cells.items()
        if isinstance(cell, Mark)
    ]  # fmt: skip


def _prefer_marks(places: list[Place]) -> None:
    """What the user marked is not measured a second time by its structure."""
    marked = {(place.kind, id(place.owner)) for place in places if place.how == "mark"}
    for place in places:
        if place.how != "mark" and (place.kind, id(place.owner)) in marked:
            place.skip("its owner marks this kind by hand")


def _select(place: Place, include: Globs, exclude: Globs) -> None:
    if place.state != PLANTED:
        return
    if not _matches(place.path, include):
        place.skip(f"does not match include={include!r}")
    elif exclude and _matches(place.path, exclude):
        place.skip(f"matches exclude={exclude!r}")


def _matches(path: str, globs: Globs) -> bool:
    globs = (globs,) if isinstance(globs, str) else globs
    names = (path, without_wrappers(path))
    return any(fnmatch.fnmatchcase(name, glob) for name in names for glob in globs if glob)


def _in_order(tree: Tree, places: Iterable[Place]) -> list[Place]:
    rank = {path: position for position, path in enumerate(tree.cells)}

    def position(place: Place) -> int:
        near = next(path for path in (place.path, *tree.ancestors(place.path)) if path in rank)
        return rank[near]

    return sorted(places, key=position)
