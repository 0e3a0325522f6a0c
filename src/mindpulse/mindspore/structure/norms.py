"""LayerNorm and RMSNorm, whoever wrote them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mindspore import nn

from mindpulse.mindspore.structure.place import Place
from mindpulse.mindspore.structure.tree import Tree, class_name, last_name

_NORM = re.compile(r"(layer|rms)_?norm", re.IGNORECASE)


def norm_places(tree: Tree) -> Iterator[Place]:
    """Every cell whose class is called LayerNorm or RMSNorm; a norm inside a norm counts once."""
    composite = {above for linear in tree.linears for above in tree.ancestors(linear.path)}
    inside = "\0"
    for path, cell in tree.cells.items():
        if path.startswith(inside) or path in composite or not is_norm(cell):
            continue
        inside = f"{path}."
        yield Place(
            path, "norm", cell, side="input", owner=cell, attribute=last_name(path),
            reason=f"what goes into {class_name(cell)}",
        )  # fmt: skip


def is_norm(cell: Any) -> bool:
    """Whether the class, or one that it is made from, is called LayerNorm or RMSNorm."""
    lineage = type(cell).__mro__
    return any(_NORM.search(cls.__name__) for cls in lineage[: lineage.index(nn.Cell)])
