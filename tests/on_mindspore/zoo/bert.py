"""BERT in the naming of the original: tied head, cross-entropy as a cell."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from zoo.parts import ATTENTION, INNER, WIDTH

WORDS, LENGTH = 24, 6


class Intermediate(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.intermediate_act_fn = nn.Dense(WIDTH, INNER), nn.GELU()

    def construct(self, x: Any) -> Any:
        return self.intermediate_act_fn(self.dense(x))


class Output(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.layernorm = nn.Dense(INNER, WIDTH), nn.LayerNorm((WIDTH,))

    def construct(self, x: Any, rest: Any) -> Any:
        return self.layernorm(self.dense(x) + rest)


class Layer(nn.Cell):
    def __init__(self, style: str) -> None:
        super().__init__()
        self.attention = ATTENTION[style]()
        self.layernorm = nn.LayerNorm((WIDTH,))
        self.intermediate, self.output = Intermediate(), Output()

    def construct(self, x: Any, mask: Any) -> Any:
        x = self.layernorm(x + self.attention(x, mask))
        return self.output(self.intermediate(x), rest=x)


class Embeddings(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.position_embeddings = nn.Embedding(LENGTH, WIDTH)
        self.word_embeddings = nn.Embedding(WORDS, WIDTH)
        self.layernorm = nn.LayerNorm((WIDTH,))
        self.positions = Tensor(np.arange(LENGTH), ms.int32)

    def construct(self, ids: Any) -> Any:
        x = self.word_embeddings(ids) + self.position_embeddings(self.positions)
        return self.layernorm(x)


class Bert(nn.Cell):
    """(ids, labels, mask) -> loss; the head shares the embedding's table.

    Args:
        style: how the softmax is written, see `parts.ATTENTION`.
        shared: one layer, run twice, as in ALBERT.
    """

    def __init__(self, style: str, shared: bool = False) -> None:
        super().__init__()
        self.embeddings = Embeddings()
        self.layers = nn.CellList([Layer(style) for _ in range(1 if shared else 2)])
        self.runs = 2 if shared else 1
        self.transform = nn.Dense(WIDTH, WIDTH)
        self.loss = nn.CrossEntropyLoss()

    def construct(self, ids: Any, labels: Any, mask: Any) -> Any:
        x = self.embeddings(ids)
        hidden = (1.0 - mask.reshape(mask.shape[0], 1, 1, mask.shape[1])) * -1e9
        for layer in self.layers:
            for _ in range(self.runs):
                x = layer(x, hidden)
        table = self.embeddings.word_embeddings.embedding_table
        logits = ops.matmul(self.transform(x), table.swapaxes(0, 1))
        return self.loss(logits.reshape(-1, WORDS), labels.reshape(-1))


def inputs(rng: Any) -> tuple[Any, ...]:
    """Ids and labels (batch, length), and a mask that hides the second sample's last two."""
    ids, labels = rng.integers(0, WORDS, (2, 2, LENGTH))
    mask = np.ones((2, LENGTH), np.float32)
    mask[1, -2:] = 0
    return Tensor(ids, ms.int32), Tensor(labels, ms.int32), Tensor(mask)
