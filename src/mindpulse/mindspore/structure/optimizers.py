"""Optimizers, and the order in which they take gradients."""

from __future__ import annotations

from typing import Any

from mindspore import nn
from mindspore.experimental.optim import Optimizer as GroupedOptimizer


def find_optimizers(cell: Any) -> list[Any]:
    """Every optimizer inside a training cell, in the order of its tree.

    `mindspore.nn`, `mindspore.experimental.optim` and `mindspore.mint.optim` are known; one inside
    another (as in a wrapper that averages weights) is not counted again.
    """
    found: list[Any] = []
    inside: list[str] = []
    for path, child in cell.cells_and_names():
        if any(path.startswith(outer) for outer in inside):
            continue
        if isinstance(child, (nn.Optimizer, GroupedOptimizer)):
            found.append(child)
            inside.append(f"{path}." if path else "")
    return found


def parameter_names(optimizer: Any) -> list[str]:
    """Names of the parameters in the order in which the optimizer takes their gradients."""
    return [parameter.name for parameter in optimizer.parameters]
