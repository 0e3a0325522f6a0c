"""Feed-forward networks: an expanding and a contracting linear layer, and what lies between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mindspore import nn
from mindspore.ops import Primitive

from mindpulse.mindspore.structure import calls, roles
from mindpulse.mindspore.structure.place import Place
from mindpulse.mindspore.structure.tree import (
    Linear,
    Tree,
    class_name,
    is_list,
    is_wrapper,
    join,
    last_name,
)

_ACTIVATIONS = {
    name.lower()
    for name in (
        "ReLU", "ReLU6", "LeakyReLU", "RReLU", "SeLU", "SiLU", "Swish", "GELU", "FastGelu", "ELU",
        "CELU", "PReLU", "PReLUExt", "HSwish", "Mish", "Tanh", "Sigmoid", "Softplus", "QuickGELU",
        "GELUActivation", "NewGELUActivation", "QuickGELUActivation", "SiLUActivation", "ReLU2",
        "SquaredReLU",
    )
}  # fmt: skip
_CLIMB = 2  # owners above the contracting layer in which the expanding one is looked for


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A feed-forward network: the owner's path, expanding layers (two where gated), contraction."""

    owner: str
    expanding: list[Linear]
    contracting: Linear
    gated: bool


def feedforward_places(tree: Tree) -> Iterator[Place]:
    """The inner activation of each feed-forward network."""
    for pair in pairs(tree):
        place = _place(tree, pair)
        place.size = pair.contracting.inputs
        yield place


def pairs(tree: Tree) -> list[Pair]:
    """The feed-forward networks, in the order of the tree."""
    free = [linear for linear in tree.linears if not _in_attention(tree, linear.path)]
    found: dict[str, Pair] = {}
    for choose in (_fitting, _twice_as_wide):
        for contracting in free:
            used = {id(linear) for pair in found.values() for linear in pair.expanding}
            rest = [linear for linear in free if id(linear) not in used]
            if contracting.outputs < contracting.inputs and contracting.path not in found:
                pair = _pair(tree, contracting, rest, choose)
                if pair is not None:
                    found[contracting.path] = pair
    return [found[linear.path] for linear in free if linear.path in found]


def _fitting(linear: Linear, contracting: Linear) -> bool:
    return linear.outputs == contracting.inputs and linear.outputs > linear.inputs


def _twice_as_wide(linear: Linear, contracting: Linear) -> bool:
    """Gate and value in one layer."""
    return linear.outputs == 2 * contracting.inputs and linear.inputs == contracting.outputs


def _in_attention(tree: Tree, path: str) -> bool:
    if roles.is_projection(path):
        return True
    return any(
        above
        and (
            roles.speaks_of_attention(class_name(tree.cells[above]))
            or roles.has_projections(tree.cells[above])
        )
        for above in tree.ancestors(path)[:1]
    ) and not _holds_whole_layer(tree, path)


def _holds_whole_layer(tree: Tree, path: str) -> bool:
    """An owner with projections that also holds a norm is a layer written flat."""
    owner = tree.cells[tree.ancestors(path)[0]]
    return any("norm" in name.lower() for name in owner._cells) and not roles.speaks_of_attention(
        class_name(owner)
    )


def _pair(
    tree: Tree, contracting: Linear, free: list[Linear], choose: Callable[[Linear, Linear], bool]
) -> Pair | None:
    """The pair in the nearest owner that holds an expanding layer too.

    Where contraction comes first it is a bottleneck (an adapter) and no feed-forward network.
    """
    order, steps = list(tree.cells), 0
    for owner in tree.ancestors(contracting.path):
        if is_list(tree.cells[owner]) or steps == _CLIMB:
            return None
        steps += not is_wrapper(tree.cells[owner])
        expanding = [
            linear
            for linear in free
            if choose(linear, contracting) and _is_near(tree, owner, linear.path)
        ]
        if expanding and order.index(expanding[0].path) < order.index(contracting.path):
            gated = len(expanding) > 1 or choose is _twice_as_wide
            return Pair(owner, expanding, contracting, gated)
    return None


def _is_near(tree: Tree, owner: str, path: str) -> bool:
    """Whether at most one cell lies between `owner` and `path`, and no list."""
    if owner and not path.startswith(f"{owner}."):
        return False
    between = [tree.cells[above] for above in tree.ancestors(path) if len(above) > len(owner)]
    return not any(map(is_list, between)) and sum(not is_wrapper(cell) for cell in between) < _CLIMB


def _place(tree: Tree, pair: Pair) -> Place:
    if not pair.gated:
        place = _inside_linear(pair.expanding[0]) or _activation(tree, pair)
        if place is not None:
            return place
    last = pair.contracting
    what = "gated inner activation" if pair.gated else "inner activation"
    reason = f"{what}, taken where it goes into {last_name(last.path)}"
    if _has_dropout(tree, pair):
        reason += "; a dropout may lie between, then its zeros count too"
    return Place(
        last.path, "ffn", last.cell, reason=reason, side="input", owner=tree.cells[pair.owner],
        attribute=last_name(last.path),
    )  # fmt: skip


def _inside_linear(linear: Linear) -> Place | None:
    """Where the linear layer applies the activation itself, its output is the inner activation."""
    if getattr(linear.cell, "activation", None) is None:
        return None
    return Place(
        linear.path, "ffn", linear.cell, reason="inner activation, applied by the layer itself",
        owner=linear.cell, attribute="activation",
    )  # fmt: skip


def _activation(tree: Tree, pair: Pair) -> Place | None:
    """The only activation of the owner, or of the expanding layer's owner."""
    owners = {pair.owner, tree.ancestors(pair.expanding[0].path)[0]}
    found = [place for owner in owners for place in _activations(tree, owner)]
    return found[0] if len(found) == 1 else None


def _activations(tree: Tree, path: str) -> Iterator[Place]:
    owner = tree.cells[path]
    for name, child in owner._cells.items():
        if (
            child is not None
            and class_name(child).lower() in _ACTIVATIONS
            and tree.users(child) == 1
        ):
            yield Place(
                join(path, name), "ffn", child, owner=owner, attribute=name,
                reason=f"inner activation, after {class_name(child)}",
            )  # fmt: skip
    for name, value in vars(owner).items():
        primitive = isinstance(value, Primitive) and value.name.lower() in _ACTIVATIONS
        if primitive or calls.is_activation(value):
            yield Place(
                join(path, name), "ffn", owner, how="primitive", owner=owner, attribute=name,
                reason="inner activation",
            )  # fmt: skip


def _has_dropout(tree: Tree, pair: Pair) -> bool:
    owner = tree.cells[pair.owner]
    return any(_drops(child) for child in owner._cells.values() if isinstance(child, nn.Cell))


def _drops(cell: Any) -> bool:
    chance = getattr(cell, "p", None)
    return "dropout" in class_name(cell).lower() and chance != 0.0
