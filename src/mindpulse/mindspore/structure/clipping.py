"""Cells that clip all gradients of a step together, as MindFormers' `ClipGradNorm`."""

from __future__ import annotations

import re
from typing import Any

from mindspore import nn

# Not CLIPAttention and the like: those are layers of a model.
_NAME = re.compile(r"Clip(Grad|By|Global)|Grad(ient)?Clip")


def find_clip_cells(train_cell: Any, net: Any) -> list[tuple[str, Any]]:
    """(path, cell) of each cell of a training cell, outside of the model, that clips by its name.

    What it gets decides in the end: only a tuple of the optimizer's gradients is measured.
    """
    if not isinstance(train_cell, nn.Cell):
        return []
    inside = net if isinstance(net, nn.Cell) and net is not train_cell else None
    model = {id(cell) for _, cell in inside.cells_and_names()} if inside is not None else set()
    return [
        (path, cell)
        for path, cell in train_cell.cells_and_names()
        if id(cell) not in model and _NAME.search(type(cell).__name__)
    ]
