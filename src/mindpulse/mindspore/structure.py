"""Finds the places worth measuring in a model, by structure and not by one model's names."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mindspore import nn

_ATTENTION = re.compile(r"attn|attention", re.IGNORECASE)
_PROJECTIONS = (
    {"query", "key", "value"}, {"q", "k", "v"}, {"wq", "wk", "wv"}, {"q_proj", "k_proj", "v_proj"},
    {"qkv"}, {"in_proj"}, {"dense1", "dense2", "dense3"},
)  # fmt: skip
_HEADS = ("num_heads", "num_attention_heads", "n_head", "n_heads", "heads", "nhead", "head_num")


@dataclass(slots=True)
class Place:
    """One place in the model, and what became of it.

    Attributes:
        path: the name of the cell from the root, as MindSpore counts it.
        kind: "attention", "optimizer", "learning_rate", "loss".
        cell: the cell that the probe is planted on; None when nothing can be planted.
        state: "planted", "skipped" or "never ran".
        reason: why it is skipped, or what is measured.
        heads: number of attention heads where an attribute of the owner tells it, else 0.
    """

    path: str
    kind: str
    cell: Any = field(repr=False, default=None)
    state: str = "planted"
    reason: str = ""
    heads: int = 0


def attention_places(net: Any, include: str = "*", exclude: str = "") -> list[Place]:
    """Every softmax of `net`, with the reason where it is not taken for attention.

    Args:
        net: the model, any `nn.Cell`.
        include, exclude: globs over the softmax's path ("encoder.*", "*cross*").
    """
    return [_judge(*found, include, exclude) for found in _softmaxes(net)]


def _softmaxes(net: Any) -> Iterator[tuple[str, Any, Any]]:
    """(path, softmax, owner), each softmax once, in the order of the model's tree."""
    seen: set[int] = set()
    for path, owner in net.cells_and_names():
        for name, child in owner.name_cells().items():
            if isinstance(child, nn.Softmax) and id(child) not in seen:
                seen.add(id(child))
                yield (f"{path}.{name}" if path else name), child, owner


def _judge(path: str, cell: Any, owner: Any, include: str, exclude: str) -> Place:
    place = Place(path, "attention", cell, reason="focus and entropy per head", heads=_heads(owner))
    if not _is_attention(path, owner):
        reason = (
            f"owner {type(owner).__name__} has no query, key and value and is not called attention"
        )
        return Place(path, "attention", None, "skipped", reason)
    if not fnmatch.fnmatchcase(path, include):
        return Place(path, "attention", None, "skipped", f"does not match include={include!r}")
    if exclude and fnmatch.fnmatchcase(path, exclude):
        return Place(path, "attention", None, "skipped", f"matches exclude={exclude!r}")
    if _axis(cell) not in (-1, 3):
        return Place(
            path, "attention", None, "skipped", f"softmax over axis {_axis(cell)}, not keys"
        )
    return place


def _is_attention(path: str, owner: Any) -> bool:
    names = set(owner.name_cells())
    by_parts = any(wanted <= names for wanted in _PROJECTIONS)
    return by_parts or bool(_ATTENTION.search(path) or _ATTENTION.search(type(owner).__name__))


def _axis(softmax: Any) -> int:
    axis = softmax.softmax.axis if hasattr(softmax, "softmax") else -1
    return int(axis[0] if isinstance(axis, (tuple, list)) else axis)


def _heads(owner: Any) -> int:
    for name in _HEADS:
        value = getattr(owner, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return 0


def find_optimizer(train_cell: Any) -> Any:
    """The optimizer inside a training cell, or None."""
    for _, cell in train_cell.cells_and_names():
        if isinstance(cell, nn.Optimizer):
            return cell
    return None


def parameter_names(optimizer: Any) -> list[str]:
    """Names of the parameters in the order in which the optimizer takes their gradients."""
    return [parameter.name for parameter in optimizer.parameters]
