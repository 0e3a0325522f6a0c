"""The model as a tree: names, wrappers of mixed precision, linear layers and embedding tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mindspore import Parameter, nn

_WRAPPERS = ("_OutputTo16", "_OutputTo32")  # mixed precision puts these around a cell
_WRAPPED = "_backbone"
_REWRITTEN = re.compile(r"(?<=.)Opt(_\d+)?$")
_FEATURES = (
    ("in_channels", "out_channels"), ("in_features", "out_features"),
    ("input_size", "output_size"),
)  # fmt: skip
_LINEAR = re.compile(r"dense|linear", re.IGNORECASE)
_EMBEDDING = re.compile(r"embed", re.IGNORECASE)
_NOT_TOKENS = re.compile(r"pos|segment|token_?type|patch|rotary|time", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A layer with a 2-D weight, and its numbers of features."""

    path: str
    cell: Any
    inputs: int
    outputs: int


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """An embedding: a 2-D table whose rows are picked by whole numbers."""

    path: str
    cell: Any
    rows: int


class Tree:
    """The cells of a model by path, each once, in the order in which MindSpore counts them."""

    def __init__(self, net: Any) -> None:
        self.net = net
        self.cells: dict[str, Any] = dict(net.cells_and_names())

    def ancestors(self, path: str) -> list[str]:
        """Paths from the parent up to the root, which is ""."""
        parts = path.split(".") if path else []
        return [".".join(parts[:end]) for end in range(len(parts) - 1, -1, -1)]

    def real_owner(self, path: str) -> str:
        """`path`, or the path of the first cell above that mixed precision did not put there."""
        above = [path, *self.ancestors(path)]
        return next((each for each in above if not is_wrapper(self.cells[each])), path)

    def users(self, cell: Any) -> int:
        """How many attributes in the tree hold this very cell."""
        return self._users.get(id(cell), 0)

    @cached_property
    def _users(self) -> dict[int, int]:
        counts: dict[int, int] = {}
        for owner in self.cells.values():
            for child in owner._cells.values():
                counts[id(child)] = counts.get(id(child), 0) + 1
        return counts

    @cached_property
    def linears(self) -> list[Linear]:
        """Every linear layer."""
        found = []
        for path, cell in self.cells.items():
            features = _features(cell)
            if features:
                found.append(Linear(path, cell, *features))
        return found

    @cached_property
    def tables(self) -> list[Table]:
        """Every embedding table, those of tokens before those of positions and the like."""
        found = []
        for path, cell in self.cells.items():
            table = _table(cell)
            if table is not None and _EMBEDDING.search(class_name(cell)):
                found.append(Table(path, cell, int(table.shape[0])))
        return sorted(found, key=lambda table: not is_token_table(table))


def join(path: str, name: str) -> str:
    """The path of a child."""
    return f"{path}.{name}" if path else name


def last_name(path: str) -> str:
    """The name of a cell in its owner."""
    return path.rpartition(".")[2]


def class_name(cell: Any) -> str:
    """The class as the user wrote it: mixed precision at O1 appends "Opt" or "Opt_1"."""
    return _REWRITTEN.sub("", type(cell).__name__)


def without_wrappers(path: str) -> str:
    """The path as it was before mixed precision put cells between."""
    return ".".join(name for name in path.split(".") if name != _WRAPPED)


def is_wrapper(cell: Any) -> bool:
    """Whether mixed precision put this cell around one of the model's."""
    return type(cell).__name__ in _WRAPPERS


def is_token_table(table: Table) -> bool:
    """Whether neither name nor class speaks of positions, segments or patches."""
    return not _NOT_TOKENS.search(last_name(table.path) + " " + class_name(table.cell))


def number(cell: Any, names: tuple[str, ...]) -> int:
    """The first of these attributes that is a positive whole number, of the cell or its config."""
    for holder in (cell, getattr(cell, "config", None)):
        for name in names:
            value = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return 0


def is_list(cell: Any) -> bool:
    """Whether the cell is nothing but a list of layers."""
    return isinstance(cell, nn.CellList)


def _features(cell: Any) -> tuple[int, int] | None:
    weight = getattr(cell, "weight", None)
    if not isinstance(weight, Parameter) or len(weight.shape) != 2:
        return None
    for inputs, outputs in _FEATURES:
        found = number(cell, (inputs,)), number(cell, (outputs,))
        if all(found):
            return found
    if not _LINEAR.search(class_name(cell)):
        return None
    first, second = (int(size) for size in weight.shape)
    return (second, first) if getattr(cell, "transpose_b", True) else (first, second)


def _table(cell: Any) -> Any:
    for parameter in cell._params.values():
        if parameter is not None and len(parameter.shape) == 2:
            return parameter
    return None
