"""A decoder-only model: RMSNorm, shared key and value heads, gated network or experts."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from zoo.parts import ATTENTION, KV_HEADS, WIDTH, GatedNet, GeluNet, Mixture, ReluNet, RMSNorm

WORDS, LENGTH = 24, 6
NETS = {"gated": GatedNet, "experts": Mixture, "relu": ReluNet, "gelu": GeluNet}


class Layer(nn.Cell):
    def __init__(self, style: str, net: str) -> None:
        super().__init__()
        self.input_norm, self.post_norm = RMSNorm(WIDTH), RMSNorm(WIDTH)
        self.self_attn = ATTENTION[style](KV_HEADS)
        self.feed_forward = NETS[net]()

    def construct(self, x: Any, mask: Any) -> Any:
        x = x + self.self_attn(self.input_norm(x), mask)
        return x + self.feed_forward(self.post_norm(x))


class Backbone(nn.Cell):
    def __init__(self, style: str, net: str) -> None:
        super().__init__()
        self.tok_embeddings = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.CellList([Layer(style, net) for _ in range(2)])
        self.norm = RMSNorm(WIDTH)
        future = np.triu(np.full((LENGTH, LENGTH), -1e9, np.float32), 1)
        self.future = Tensor(future)

    def construct(self, ids: Any) -> Any:
        x = self.tok_embeddings(ids)
        for layer in self.layers:
            x = layer(x, self.future)
        return self.norm(x)


class Decoder(nn.Cell):
    """(ids, labels) -> loss; `tied` makes the logits with the embedding's table."""

    def __init__(self, style: str, net: str = "gated", tied: bool = False) -> None:
        super().__init__()
        self.model = Backbone(style, net)
        self.tied = tied
        if not tied:
            self.lm_head = nn.Dense(WIDTH, WORDS, has_bias=False)

    def construct(self, ids: Any, labels: Any) -> Any:
        x = self.model(ids)
        if self.tied:
            logits = ops.matmul(x, self.model.tok_embeddings.embedding_table.swapaxes(0, 1))
        else:
            logits = self.lm_head(x)
        return ops.cross_entropy(logits.reshape(-1, WORDS), labels.reshape(-1))


def inputs(rng: Any) -> tuple[Any, ...]:
    """Ids and labels (batch, length)."""
    ids, labels = rng.integers(0, WORDS, (2, 2, LENGTH))
    return Tensor(ids, ms.int32), Tensor(labels, ms.int32)
