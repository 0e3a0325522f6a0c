"""The networks of the fault benchmark, hand-written with `mindspore.nn` as a user would.

What a fault changes inside the network is an input of the step (`controls`), so that hundreds of
runs share one compiled graph; only another structure needs another network.
"""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from numpy.typing import NDArray

from benchmarks.faults.data import IGNORED, VOCABULARY
from benchmarks.faults.settings import CONTROLS, EXPERTS, HEADS, HIDDEN, LAYERS, LENGTH, Variant

WEIGHT_STD = 0.04


def through_half(x: Tensor) -> Tensor:
    """The values as float16 holds them; backward the gradients too."""
    return x.astype(ms.float16).astype(ms.float32)


class SelfAttention(nn.Cell):  # type: ignore[misc]
    """Multi-head attention with an additive mask."""

    def __init__(self, qk_norm: bool) -> None:
        super().__init__()
        self.num_heads, self.head_size = HEADS, HIDDEN // HEADS
        self.scale = self.head_size**-0.5
        self.query = nn.Dense(HIDDEN, HIDDEN, has_bias=False)
        self.key = nn.Dense(HIDDEN, HIDDEN, has_bias=False)
        self.value = nn.Dense(HIDDEN, HIDDEN, has_bias=False)
        self.output = nn.Dense(HIDDEN, HIDDEN, has_bias=False)
        self.softmax = nn.Softmax(axis=-1)
        self.qk_norm = qk_norm
        if qk_norm:
            self.query_norm = nn.LayerNorm((self.head_size,))
            self.key_norm = nn.LayerNorm((self.head_size,))

    def _heads(self, x: Tensor) -> Tensor:
        return x.reshape((-1, LENGTH, self.num_heads, self.head_size)).transpose((0, 2, 1, 3))

    def construct(self, x: Tensor, bias: Tensor, factor: Tensor) -> Tensor:
        """x (batch, length, hidden), bias (batch, 1, length, length), factor () -> like x."""
        query, key = self._heads(self.query(x)), self._heads(self.key(x))
        if self.qk_norm:
            query, key = self.query_norm(query), self.key_norm(key)
        logits = ops.matmul(query * self.scale, key.transpose((0, 1, 3, 2))) * factor + bias
        mixed = ops.matmul(self.softmax(logits), self._heads(self.value(x)))
        return self.output(mixed.transpose((0, 2, 1, 3)).reshape((-1, LENGTH, HIDDEN)))


class FeedForward(nn.Cell):  # type: ignore[misc]
    """Two dense layers with an activation between them."""

    def __init__(self, activation: str, width: int = 4 * HIDDEN) -> None:
        super().__init__()
        self.inner = nn.Dense(HIDDEN, width)
        self.activation = nn.GELU() if activation == "gelu" else nn.ReLU()
        self.outer = nn.Dense(width, HIDDEN)

    def construct(self, x: Tensor) -> Tensor:
        """x (batch, length, hidden) -> like x."""
        return self.outer(self.activation(self.inner(x)))


class Mixture(nn.Cell):  # type: ignore[misc]
    """Experts of which the router's softmax chooses one for each token (Switch Transformer)."""

    def __init__(self, activation: str) -> None:
        super().__init__()
        self.num_experts, self.top_k = EXPERTS, 1
        self.gate = nn.Dense(HIDDEN, EXPERTS)
        self.softmax = nn.Softmax(axis=-1)
        self.experts = nn.CellList([FeedForward(activation, 2 * HIDDEN) for _ in range(EXPERTS)])

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x (batch, length, hidden) -> like x, and the balancing loss ()."""
        p = self.softmax(self.gate(x))
        first = ops.stop_gradient((p >= ops.amax(p, -1, keepdims=True)).astype(ms.float32))
        weights = p * first
        out = x * 0.0
        for number, expert in enumerate(self.experts):
            out = out + expert(x) * weights[..., number : number + 1]
        return out, EXPERTS * (first.mean((0, 1)) * p.mean((0, 1))).sum()


class Layer(nn.Cell):  # type: ignore[misc]
    """Attention and feed-forward, each with a residual path and a LayerNorm."""

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        self.post_norm, self.half, self.mixes = variant.post_norm, variant.half, variant.experts
        self.attention_norm = nn.LayerNorm((HIDDEN,))
        self.attention = SelfAttention(variant.qk_norm)
        self.ffn_norm = nn.LayerNorm((HIDDEN,))
        self.ffn = (
            Mixture(variant.activation) if variant.experts else FeedForward(variant.activation)
        )

    def _attended(self, x: Tensor, bias: Tensor, factor: Tensor, residual: Tensor) -> Tensor:
        if self.post_norm:
            return self.attention_norm(residual * x + self.attention(x, bias, factor))
        return residual * x + self.attention(self.attention_norm(x), bias, factor)

    def construct(
        self, x: Tensor, bias: Tensor, factor: Tensor, residual: Tensor
    ) -> tuple[Tensor, Tensor]:
        """x (batch, length, hidden) -> like x, and the loss that balances experts ()."""
        x = self._attended(x, bias, factor, residual)
        if self.half:
            x = through_half(x)
        inner = x if self.post_norm else self.ffn_norm(x)
        uneven = factor * 0.0
        if self.mixes:
            out, uneven = self.ffn(inner)
        else:
            out = self.ffn(inner)
        x = residual * x + out
        if self.post_norm:
            x = self.ffn_norm(x)
        if self.half:
            x = through_half(x)
        return x, uneven


class Transformer(nn.Cell):  # type: ignore[misc]
    """A language model over characters that returns its loss; the output matrix is tied."""

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        self.post_norm, self.half = variant.post_norm, variant.half
        self.words = nn.Embedding(VOCABULARY, HIDDEN)
        self.places = nn.Embedding(LENGTH, HIDDEN)
        self.layers = nn.CellList([Layer(variant) for _ in range(LAYERS)])
        self.norm = nn.LayerNorm((HIDDEN,))
        self.head_bias = Parameter(Tensor(np.zeros(VOCABULARY), ms.float32), name="head_bias")
        self.loss = nn.CrossEntropyLoss(ignore_index=IGNORED)

    def construct(
        self, ids: Tensor, targets: Tensor, bias: Tensor, places: Tensor, controls: Tensor
    ) -> Tensor:
        """ids, targets (batch, length); bias (batch, 1, length, length); places (length,);
        controls (len(CONTROLS),) -> scalar loss in nats."""
        place = ops.gather(self.places.embedding_table, places, 0)
        x = self.words(ids) + place * controls[CONTROLS["positions"]]
        residual, uneven = controls[CONTROLS["residual"]], 0.0
        for number, layer in enumerate(self.layers):
            factor = controls[CONTROLS["attention_0"] + number]
            x, more = layer(x, bias, factor, residual)
            uneven = uneven + more
        x = self.norm(x).reshape((-1, HIDDEN))
        logits = ops.matmul(x, self.words.embedding_table.transpose((1, 0)))
        logits = (logits + self.head_bias) * controls[CONTROLS["output"]]
        if self.half:
            logits = through_half(logits)
        partition = ops.logsumexp(logits, -1)
        loss = self.loss(logits, targets.reshape((-1,)))
        loss = loss + controls[CONTROLS["z_loss"]] * (partition * partition).mean()
        return loss + controls[CONTROLS["balance"]] * uneven


def initial_weights(net: nn.Cell, seed: int) -> dict[str, NDArray[np.float32]]:
    """Weights by name: matrices normal with standard deviation 0.04, biases 0, gammas 1.

    MindSpore's own initialisers depend on how many cells were built before in the process.
    """
    rng = np.random.default_rng((seed, 1))
    found = {}
    for parameter in net.get_parameters():
        if parameter.ndim > 1:
            values = rng.normal(0.0, WEIGHT_STD, parameter.shape)
        else:
            values = np.full(parameter.shape, float(parameter.name.endswith("gamma")))
        found[parameter.name] = values.astype(np.float32)
    return found
