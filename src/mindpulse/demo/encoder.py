"""The Transformer encoder that both demo models share, hand-written with `mindspore.nn`."""

from __future__ import annotations

from dataclasses import dataclass

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

# Twice the usual 0.02: so small a model learns to attend some hundred steps sooner.
WEIGHT_STD = 0.04
HIDDEN_LOGIT = -10000.0  # added to the logits of keys that must not be seen


@dataclass(frozen=True)
class EncoderConfig:
    """Size of an encoder: `hidden` is split over `heads`, the inner FFN is 4 x `hidden`."""

    layers: int = 4
    hidden: int = 128
    heads: int = 4

    def __str__(self) -> str:
        return f"{self.layers} layers, hidden {self.hidden}, {self.heads} heads"


class SelfAttention(nn.Cell):  # type: ignore[misc]
    """Multi-head attention; the probabilities are the output of the cell `softmax`."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.num_heads = heads
        self.head_size = hidden // heads
        self.scale = float(self.head_size) ** -0.5
        self.query = nn.Dense(hidden, hidden)
        self.key = nn.Dense(hidden, hidden)
        self.value = nn.Dense(hidden, hidden)
        self.output = nn.Dense(hidden, hidden)
        self.softmax = nn.Softmax(axis=-1)

    def _heads(self, x: Tensor, batch: int, length: int) -> Tensor:
        x = x.reshape((batch, length, self.num_heads, self.head_size))
        return x.transpose((0, 2, 1, 3))

    def construct(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (batch, length, hidden), mask (batch, 1, 1, length), added -> like x."""
        batch, length, hidden = x.shape
        query = self._heads(self.query(x), batch, length) * self.scale
        key = self._heads(self.key(x), batch, length)
        value = self._heads(self.value(x), batch, length)
        logits = ops.matmul(query, key.transpose((0, 1, 3, 2))) + mask
        mixed = ops.matmul(self.softmax(logits), value)
        return self.output(mixed.transpose((0, 2, 1, 3)).reshape((batch, length, hidden)))


class FeedForward(nn.Cell):  # type: ignore[misc]
    """Two dense layers with GELU between them."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.inner = nn.Dense(hidden, 4 * hidden)
        self.activation = nn.GELU()
        self.outer = nn.Dense(4 * hidden, hidden)

    def construct(self, x: Tensor) -> Tensor:
        """x (batch, length, hidden) -> like x."""
        return self.outer(self.activation(self.inner(x)))


class EncoderLayer(nn.Cell):  # type: ignore[misc]
    """Attention and feed-forward, each with a residual path and a LayerNorm before it."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm((hidden,))
        self.attention = SelfAttention(hidden, heads)
        self.ffn_norm = nn.LayerNorm((hidden,))
        self.ffn = FeedForward(hidden)

    def construct(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (batch, length, hidden), mask (batch, 1, 1, length) -> like x."""
        x = x + self.attention(self.attention_norm(x), mask)
        return x + self.ffn(self.ffn_norm(x))


class Encoder(nn.Cell):  # type: ignore[misc]
    """A stack of layers with a LayerNorm at its end."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.layers = nn.CellList(
            [EncoderLayer(config.hidden, config.heads) for _ in range(config.layers)]
        )
        self.norm = nn.LayerNorm((config.hidden,))

    def construct(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (batch, length, hidden), mask (batch, 1, 1, length) -> like x."""
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


def initialise(net: nn.Cell, seed: int) -> None:
    """Sets all weights from NumPy: matrices normal with standard deviation 0.04, biases zero.

    MindSpore's own initialisers depend on how many cells were built before in the process.
    """
    rng = np.random.default_rng(seed)
    for parameter in net.trainable_params():
        if parameter.ndim > 1:
            values = rng.normal(0.0, WEIGHT_STD, parameter.shape)
        else:
            values = np.full(parameter.shape, float(parameter.name.endswith("gamma")))
        parameter.set_data(Tensor(values, ms.float32))
