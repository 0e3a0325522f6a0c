"""A vision transformer: layers and feed-forward networks as `SequentialCell`."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from zoo.parts import ATTENTION, INNER, WIDTH

SIDE, PATCH, CLASSES = 8, 4, 5
TOKENS = (SIDE // PATCH) ** 2 + 1


class Block(nn.Cell):
    def __init__(self, style: str) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm((WIDTH,)), nn.LayerNorm((WIDTH,))
        self.attn = ATTENTION[style]()
        self.mlp = nn.SequentialCell(
            nn.Dense(WIDTH, INNER), nn.ReLU(), nn.Dropout(p=0.0), nn.Dense(INNER, WIDTH)
        )
        self.mask = Tensor(np.zeros((1, 1, 1, 1)), ms.float32)

    def construct(self, x: Any) -> Any:
        x = x + self.attn(self.norm1(x), mask=self.mask)
        return x + self.mlp(self.norm2(x))


class PatchEmbedding(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Conv2d(1, WIDTH, PATCH, PATCH, pad_mode="valid")

    def construct(self, images: Any) -> Any:
        x = self.proj(images)
        return x.reshape(x.shape[0], WIDTH, -1).swapaxes(1, 2)


class Vit(nn.Cell):
    """(images, labels) -> loss; a classifier that is called `head`."""

    def __init__(self, style: str) -> None:
        super().__init__()
        self.patches = PatchEmbedding()
        start = Tensor(np.full((1, 1, WIDTH), 0.1), ms.float32)
        place = Tensor(np.full((1, TOKENS, WIDTH), 0.1), ms.float32)
        self.cls_token = Parameter(start, name="cls_token")
        self.position = Parameter(place, name="position")
        self.blocks = nn.SequentialCell([Block(style) for _ in range(2)])
        self.norm = nn.LayerNorm((WIDTH,))
        self.head = nn.Dense(WIDTH, CLASSES)

    def construct(self, images: Any, labels: Any) -> Any:
        x = self.patches(images)
        start = ops.tile(self.cls_token, (x.shape[0], 1, 1))
        x = self.blocks(ops.concat((start, x), 1) + self.position)
        return ops.cross_entropy(self.head(self.norm(x)[:, 0]), labels)


def inputs(rng: Any) -> tuple[Any, ...]:
    """Images (batch, 1, side, side) and labels (batch,)."""
    images = rng.normal(size=(3, 1, SIDE, SIDE))
    return Tensor(images, ms.float32), Tensor(rng.integers(0, CLASSES, 3), ms.int32)
