"""A small Vision Transformer on the handwritten digits that scikit-learn brings along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer
from numpy.typing import NDArray

from mindpulse.demo.encoder import Encoder, EncoderConfig, initialise
from mindpulse.demo.task import Task, uniform_loss

SIDE, PATCH, CLASSES = 8, 2, 10
PATCHES = (SIDE // PATCH) ** 2
HELD_OUT = 360  # of the 1,797 pictures
SIZE = EncoderConfig(hidden=64)


class PictureBatch(NamedTuple):
    """Patches (batch, 16, 4) float32 in 0..1, and digits (batch,) int32."""

    patches: NDArray[np.float32]
    digits: NDArray[np.int32]


def load_digits() -> PictureBatch:
    """All 1,797 pictures of 8 x 8 pixels, cut into 2 x 2 patches.

    Raises:
        ModuleNotFoundError: scikit-learn is not installed.
    """
    from sklearn import datasets

    digits = datasets.load_digits()
    images = (digits.images / 16.0).astype(np.float32)
    side = SIDE // PATCH
    patches = images.reshape(-1, side, PATCH, side, PATCH).transpose(0, 1, 3, 2, 4)
    return PictureBatch(patches.reshape(-1, PATCHES, PATCH**2), digits.target.astype(np.int32))


@dataclass(frozen=True)
class PictureBatches:
    """Random batches of pictures; batch k depends on the seed and k only."""

    pictures: PictureBatch
    batch: int = 64
    seed: int = 0
    columns: tuple[str, ...] = PictureBatch._fields

    def __getitem__(self, index: int) -> PictureBatch:
        rng = np.random.default_rng((self.seed, index))
        chosen = rng.integers(0, len(self.pictures.digits), self.batch)
        return PictureBatch(self.pictures.patches[chosen], self.pictures.digits[chosen])


class ViT(nn.Cell):  # type: ignore[misc]
    """Classifier that returns its loss, the mean cross-entropy in nats."""

    def __init__(self, config: EncoderConfig, seed: int) -> None:
        super().__init__()
        self.embed = nn.Dense(PATCH**2, config.hidden)
        self.places = nn.Embedding(PATCHES + 1, config.hidden)
        self.cls = Parameter(initializer("zeros", (1, 1, config.hidden)), name="cls")
        self.encoder = Encoder(config)
        self.head = nn.Dense(config.hidden, CLASSES)
        self.loss = nn.CrossEntropyLoss()
        initialise(self, seed)

    def logits(self, patches: Tensor) -> Tensor:
        """patches (batch, 16, 4) -> (batch, 10)."""
        batch = patches.shape[0]
        cls = ops.tile(self.cls, (batch, 1, 1))
        x = ops.concat((cls, self.embed(patches)), axis=1) + self.places.embedding_table
        everything = ops.zeros((batch, 1, 1, PATCHES + 1), patches.dtype)
        return self.head(self.encoder(x, everything)[:, 0])

    def construct(self, patches: Tensor, digits: Tensor) -> Tensor:
        """patches (batch, 16, 4), digits (batch,) -> scalar loss."""
        return self.loss(self.logits(patches), digits)


def vit_task(seed: int, size: EncoderConfig = SIZE) -> Task:
    """Training of a ViT on 1,437 digits; the other 360 are held out."""
    pictures = load_digits()
    order = np.random.default_rng(seed).permutation(len(pictures.digits))
    held_out = PictureBatch(*(array[order[:HELD_OUT]] for array in pictures))
    training = PictureBatch(*(array[order[HELD_OUT:]] for array in pictures))
    net = ViT(size, seed)

    def evaluate() -> dict[str, float]:
        guess = net.logits(Tensor(held_out.patches)).asnumpy().argmax(axis=1)
        return {"accuracy on 360 held-out digits": float((guess == held_out.digits).mean())}

    return Task(
        title=f"a small ViT ({size}) on 1,437 handwritten digits",
        network=net,
        layers=net.encoder.layers,
        batches=PictureBatches(training, seed=seed),
        learning_rate=1e-3,
        reference=("loss of a blind guess (ln 10)", uniform_loss(CLASSES)),
        evaluate=evaluate,
    )
