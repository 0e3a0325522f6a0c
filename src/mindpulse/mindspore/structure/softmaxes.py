"""Softmaxes: those of attention and of routers, as cells, attributes, calls and fused operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mindspore import nn
from mindspore.ops import Primitive

from mindpulse.mindspore.structure import calls, roles
from mindpulse.mindspore.structure.place import Place
from mindpulse.mindspore.structure.tree import Tree, class_name, join

_CELLS = ("Softmax", "SoftmaxExt")
_PRIMITIVES = ("Softmax", "SoftmaxExt")
_FUSED = "flashattention"
_FUSED_OPERATOR = "FlashAttentionScore"
_LAST_AXES = (-1, 3)
_MARK = "hand the tensor to a mindpulse.mindspore.Mark in construct"


def softmax_places(tree: Tree) -> Iterator[Place]:
    """Every softmax, in the order of the tree, with the reason where it is not taken."""
    seen: set[int] = set()
    for path, owner in tree.cells.items():
        if is_softmax(owner):
            continue
        fused = _fused(tree, path, owner)
        if fused is not None:
            yield fused
            continue
        for place, axis in _in_owner(path, owner, seen):
            yield _judge(tree, path, place, axis)
        yield from _called(tree, path, owner)


def is_softmax(cell: Any) -> bool:
    """Whether the cell is one of the framework's softmax cells, mixed precision or not."""
    return isinstance(cell, nn.Softmax) or class_name(cell) in _CELLS


def _in_owner(path: str, owner: Any, seen: set[int]) -> Iterator[tuple[Place, Any]]:
    for name, child in owner._cells.items():
        if child is not None and is_softmax(child) and id(child) not in seen:
            seen.add(id(child))
            yield (
                Place(join(path, name), "attention", child, owner=owner, attribute=name),
                _axis(child),
            )
    for name, value in vars(owner).items():
        primitive = isinstance(value, Primitive) and value.name in _PRIMITIVES
        if primitive or calls.is_softmax(value):
            place = Place(
                join(path, name), "attention", owner, how="primitive", owner=owner, attribute=name
            )
            yield place, (value.axis if primitive else -1)


def _axis(cell: Any) -> Any:
    return cell.softmax.axis if hasattr(cell, "softmax") else getattr(cell, "dim", -1)


def _judge(tree: Tree, path: str, place: Place, axis: Any) -> Place:
    path = tree.real_owner(path)
    owner = tree.cells[path]
    if roles.is_router(path, owner):
        return _router(tree, path, place)
    if not roles.is_attention(path, owner):
        return place.skip(
            f"owner {class_name(owner)} has no query, key and value and is not called attention"
        )
    if isinstance(axis, (tuple, list)):
        axis = axis[0]
    if axis not in _LAST_AXES:
        return place.skip(f"softmax over axis {axis}, not keys")
    place.heads = roles.heads(tree, path)
    place.reason = "probabilities of attention"
    return place


def _router(tree: Tree, path: str, place: Place) -> Place:
    place.kind = "router"
    place.size, place.top_k = roles.experts(tree, path)
    if not place.size:
        return place.skip(
            f"a router, but neither {class_name(tree.cells[path])}.num_experts nor a linear layer "
            f"in it tells the number of experts; {_MARK}"
        )
    place.reason = f"each token goes to {place.top_k} of {place.size} experts"
    return place


def _called(tree: Tree, path: str, owner: Any) -> Iterator[Place]:
    """A softmax that the owner's construct calls as a function."""
    reached = calls.reach(owner, calls.SOFTMAX)
    if not reached.found and not reached.methods_of_tensors:
        return
    place = Place(
        join(path, "softmax()"),
        "attention",
        owner,
        how="function",
        owner=owner,
        attribute="softmax",
    )
    by_helper = any(roles.speaks_of_attention(name) for name in reached.functions)
    if by_helper and not roles.is_router(path, owner):
        path_for_judging = f"{path} {' '.join(reached.functions)}"
    else:
        path_for_judging = path
    if not roles.is_router(path, owner) and not roles.is_attention(path_for_judging, owner):
        yield place.skip(
            f"owner {class_name(owner)} has no query, key and value and is not called attention"
        )
    elif not reached.found:
        yield place.skip(f"called as a method of a tensor, which cannot be reached; {_MARK}")
    elif reached.obstacle:
        yield place.skip(f"{reached.obstacle}; {_MARK}")
    elif roles.is_router(path, owner):
        yield _router(tree, path, place)
    else:
        place.heads = roles.heads(tree, path)
        place.reason = f"probabilities of attention, called in {', '.join(reached.callers)}"
        yield place


def _fused(tree: Tree, path: str, owner: Any) -> Place | None:
    """Attention as one operator: its row maxima and sums, where it hands them out."""
    operators = [
        name
        for name, value in [*vars(owner).items(), *owner._cells.items()]
        if _is_fused_operator(value)
    ]
    by_call = calls.reach(owner, calls.FUSED).found
    named = _FUSED in class_name(owner).lower().replace("_", "")
    if type(owner).__name__ == _FUSED_OPERATOR or not (operators or by_call or named):
        return None
    if not operators and any(
        _is_fused_operator(value)
        for below, cell in tree.cells.items()
        if below.startswith(join(path, ""))
        for value in [*vars(cell).values(), *cell._cells.values()]
    ):
        return None  # the cell inside that holds the operator is the place
    name = operators[0] if operators else ""
    place = Place(join(path, name), "attention", owner, how="fused", owner=owner, attribute=name)
    if not operators:
        return place.skip(
            f"{class_name(owner)} is one fused operator: probabilities never exist, and its row "
            f"maxima and sums are not handed out; switch flash attention off to see them"
        )
    place.heads = roles.heads(tree, path)
    place.reason = "row maxima and sums of the fused operator; probabilities never exist"
    return place


def _is_fused_operator(value: Any) -> bool:
    if isinstance(value, Primitive):
        return bool(value.name == _FUSED_OPERATOR)
    return isinstance(value, nn.Cell) and class_name(value) == _FUSED_OPERATOR
