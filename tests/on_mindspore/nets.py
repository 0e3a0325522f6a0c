"""A small hand-written encoder and what the tests need around it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

BATCH, LENGTH, WORDS, WIDTH, HEADS = 4, 12, 50, 16, 2


class Attention(nn.Cell):
    """Self-attention with an additive mask that hides the last `hidden` keys."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.query, self.key = nn.Dense(WIDTH, WIDTH), nn.Dense(WIDTH, WIDTH)
        self.value, self.out = nn.Dense(WIDTH, WIDTH), nn.Dense(WIDTH, WIDTH)
        self.num_heads = HEADS
        self.softmax = nn.Softmax(-1)
        mask = np.zeros((1, 1, 1, LENGTH), np.float32)
        if hidden:
            mask[..., -hidden:] = -1e9
        self.mask = Tensor(mask)

    def construct(self, x: Any) -> Any:
        shape = (x.shape[0], LENGTH, HEADS, WIDTH // HEADS)
        q = self.query(x).reshape(shape).transpose(0, 2, 1, 3)
        k = self.key(x).reshape(shape).transpose(0, 2, 3, 1)
        v = self.value(x).reshape(shape).transpose(0, 2, 1, 3)
        p = self.softmax(ops.matmul(q, k) / math.sqrt(WIDTH // HEADS) + self.mask)
        return self.out(ops.matmul(p, v).transpose(0, 2, 1, 3).reshape(x.shape))


class Layer(nn.Cell):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.attention = Attention(hidden)
        self.norm1, self.norm2 = nn.LayerNorm((WIDTH,)), nn.LayerNorm((WIDTH,))
        self.inner, self.outer = nn.Dense(WIDTH, 32), nn.Dense(32, WIDTH)

    def construct(self, x: Any) -> Any:
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.outer(ops.relu(self.inner(x))))


class Encoder(nn.Cell):
    """Takes ids and labels, returns the loss."""

    def __init__(self, layers: int = 2, hidden: int = 3) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.position = Parameter(
            Tensor(np.full((LENGTH, WIDTH), 0.1), ms.float32), name="position"
        )
        self.layers = nn.CellList([Layer(hidden) for _ in range(layers)])
        self.head = nn.Dense(WIDTH, WORDS)

    def construct(self, ids: Any, labels: Any) -> Any:
        x = self.embedding(ids) + self.position
        for layer in self.layers:
            x = layer(x)
        return ops.cross_entropy(self.head(x).reshape(-1, WORDS), labels.reshape(-1))


@dataclass
class Training:
    """One mode of training: `step(ids, labels)` runs a step and returns its loss."""

    net: Any
    optimizer: Any
    cell: Any
    step: Callable[[Any, Any], Any]


MODES = ("graph", "jit", "pynative")


def make_training(mode: str, rate: Any = 1e-2, **net_args: int) -> Training:
    """A freshly seeded training; call `compile_step` only after attaching."""
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(7)
    np.random.seed(7)
    net = Encoder(**net_args)
    net.set_train()
    optimizer = nn.AdamWeightDecay(net.trainable_params(), rate)
    if mode == "graph":
        cell = nn.TrainOneStepCell(net, optimizer)
        cell.set_train()
        return Training(net, optimizer, cell, lambda ids, labels: cell(ids, labels))
    gradients = ms.value_and_grad(net, None, optimizer.parameters)

    def step(ids: Any, labels: Any) -> Any:
        loss, grads = gradients(ids, labels)
        optimizer(grads)
        return loss

    return Training(net, optimizer, None, ms.jit(step) if mode == "jit" else step)


def batches(count: int, seed: int = 3) -> list[tuple[Any, Any]]:
    """`count` batches of ids and labels."""
    rng = np.random.default_rng(seed)
    shape = (count, 2, BATCH, LENGTH)
    return [
        (Tensor(ids, ms.int32), Tensor(labels, ms.int32))
        for ids, labels in rng.integers(0, WORDS, shape)
    ]


def weights(net: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Copies of all parameters by name."""
    return {p.name: p.asnumpy().copy() for p in net.get_parameters()}
