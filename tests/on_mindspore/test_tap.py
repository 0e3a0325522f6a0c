"""Taps in real trainings: the right tensors in each mode, not a bit of difference, and no trace."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np
import pytest
from mindspore import Tensor, nn, ops

import zoo
from mindpulse.mindspore.structure import Place
from zoo.watching import Numbers, Slots, planted, same_but_for_the_order_of_sums, train

MODES = ("graph", "jit", "pynative")
COMPILED_BY_JIT = ("decoder_", "tied", "bert_helper", "albert")  # the same compiler as graph mode


def traces(net: Any) -> dict[str, Any]:
    """Everything about a model that a tap could leave behind."""
    return {
        "classes": [(path, type(cell)) for path, cell in net.cells_and_names()],
        "attributes": {
            path: [
                (name, id(value))
                for name, value in vars(cell).items()
                if callable(value) or isinstance(value, (nn.Cell, ops.Primitive))
            ]
            for path, cell in net.cells_and_names()
        },
        "parameters": [p.name for p in net.get_parameters()],
        "modules": {name for name in sys.modules if name.startswith("mindpulse_shadow")},
    }


class Reference:
    """What the places hold, from hooks on other cells in PyNative and NumPy."""

    def __init__(self, name: str) -> None:
        self.net, batches = zoo.build(name)
        self.places = {place.path: place for place in planted(self.net)}
        self.cells = dict(self.net.cells_and_names())
        self.seen: dict[str, Any] = {}
        self.rows: list[Numbers] = []
        self.batches = iter(batches)
        for path, cell in self.cells.items():
            if path and not isinstance(cell, (nn.CellList, nn.SequentialCell)):
                cell.register_forward_hook(self._keep(path))
        self.batch = batches[0]
        train(self.net, batches, "pynative", self._end_step)

    def _keep(self, path: str) -> Any:
        def keep(cell: Any, inputs: Any, output: Any) -> None:
            arrays = [x.asnumpy().copy() for x in (*inputs, output) if isinstance(x, Tensor)]
            self.seen[path] = arrays
            if isinstance(cell, nn.Embedding):
                self.table = cell.embedding_table.asnumpy().copy()

        return keep

    def _end_step(self) -> None:
        self.batch = next(self.batches)
        row = {}
        for path, place in self.places.items():
            before, after = self._tensors(path, place)
            x = (before if place.side == "input" else after).astype(np.float64)
            row[path] = [before.max(), x.mean(), (x * x).mean()]
        self.rows.append(row)

    def _tensors(self, path: str, place: Place) -> tuple[Any, Any]:
        owner = path.rpartition(".")[0]
        if place.kind == "attention":
            return self._attention(owner)
        if place.kind == "router":
            return softmax(self.seen[f"{owner}.gate"][-1])
        if path == "cross_entropy()":
            logits = self.seen["model.norm"][-1] @ self.table.T
            return logits.reshape(-1, len(self.table)), None
        return self.seen[path][0], self.seen[path][-1]

    def _attention(self, path: str) -> tuple[Any, Any]:
        q, k = (self.seen[f"{path}.{name}"][-1] for name in ("q_proj", "k_proj"))
        q, k = (split(x) for x in (q, k))
        k = np.concatenate([k] * (q.shape[1] // k.shape[1]), 1)
        return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + self._mask(path))

    def _mask(self, path: str) -> Any:
        if path.startswith("model."):
            return np.triu(np.full((6, 6), -1e9), 1)
        if path.startswith("blocks."):
            return 0.0
        return (1.0 - self.batch[2].asnumpy())[:, None, None] * -1e9


def split(x: Any) -> Any:
    """(batch, length, width) -> (batch, head, length, features)."""
    return x.reshape(*x.shape[:2], -1, 4).transpose(0, 2, 1, 3).astype(np.float64)


def softmax(logits: Any) -> tuple[Any, Any]:
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return logits, powers / powers.sum(-1, keepdims=True)


@functools.cache
def reference(name: str) -> Reference:
    return Reference(name)


CASES = [
    (name, mode)
    for name in zoo.MODELS
    for mode in MODES
    if mode != "jit" or name.startswith(COMPILED_BY_JIT)
]


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_models(name: str, mode: str) -> None:
    """Right numbers; weights bit for bit those of an untapped twin; no trace."""
    expected = reference(name)
    net, batches = zoo.build(name)
    before = traces(net)
    slots = Slots(planted(net))
    rows: list[Numbers] = []
    for each in slots.taps:
        each.on()
    result = train(net, batches, mode, lambda: rows.append(slots.read()))
    for each in slots.taps:
        each.off()
    after = traces(net)
    for kind, value in before.items():
        assert after[kind] == value, kind
    assert list(rows[0]) == list(expected.places)
    for step, (row, wanted) in enumerate(zip(rows, expected.rows, strict=True)):
        for path, numbers in row.items():
            np.testing.assert_allclose(
                numbers, wanted[path], rtol=2e-4, atol=2e-5, err_msg=f"{path}, step {step}"
            )
    twin, batches = zoo.build(name)
    losses, weights = train(twin, batches, mode, lambda: None)
    # The sum inside cross_entropy is split over threads anew each time: no two runs agree for sure.
    np.testing.assert_allclose(result[0], losses, rtol=1e-6)
    assert list(result[1]) == list(weights)
    if (name, mode) == ("experts", "graph"):
        same_but_for_the_order_of_sums(result[1], weights)
    else:
        assert [path for path, value in weights.items() if result[1][path] != value] == []
