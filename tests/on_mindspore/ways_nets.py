"""More small nets for the ways of training: any length, LoRA, tied weights, GAN, distillation."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from nets import LENGTH, WIDTH, WORDS, Encoder, Layer


class CausalAttention(nn.Cell):
    """Sizes are attributes and the length is the input's: amp O1 rewrites it, any batch fits."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Dense(width, width) for _ in range(3))
        self.num_heads, self.size = num_heads, width // num_heads
        self.scale = 1 / math.sqrt(self.size)
        self.softmax = nn.Softmax(-1)

    def construct(self, x: Any) -> Any:
        shape = (x.shape[0], x.shape[1], self.num_heads, self.size)
        q = self.q(x).reshape(shape).transpose(0, 2, 1, 3)
        k = self.k(x).reshape(shape).transpose(0, 2, 3, 1)
        v = self.v(x).reshape(shape).transpose(0, 2, 1, 3)
        hidden = ops.triu(ops.ones((x.shape[1], x.shape[1]), x.dtype), 1)
        p = self.softmax(ops.matmul(q, k) * self.scale - hidden * 1e4)
        return ops.matmul(p, v).transpose(0, 2, 1, 3).reshape(x.shape)


class Decoder(nn.Cell):
    """Takes ids and labels of any batch and length, returns the loss."""

    def __init__(self, tied: bool = False) -> None:
        super().__init__()
        self.words = WORDS
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.attention = CausalAttention(WIDTH, 2)
        self.norm = nn.LayerNorm((WIDTH,))
        self.head = nn.Dense(WIDTH, WORDS, has_bias=not tied)
        if tied:
            self.head.weight = self.embedding.embedding_table

    def construct(self, ids: Any, labels: Any) -> Any:
        x = self.embedding(ids)
        x = self.norm(x + self.attention(x))
        logits = self.head(x).reshape(-1, self.words)
        return ops.cross_entropy(logits.astype(ms.float32), labels.reshape(-1))


class Adapted(nn.Cell):
    """A frozen Dense with a trainable low-rank part, as LoRA adds it."""

    def __init__(self, dense: Any, rank: int = 2) -> None:
        super().__init__()
        self.dense = dense
        rng = np.random.default_rng(1)
        down = rng.normal(0, 0.1, (rank, dense.in_channels))
        self.down = Parameter(Tensor(down, ms.float32), name="down")
        self.up = Parameter(Tensor(np.zeros((dense.out_channels, rank)), ms.float32), name="up")

    def construct(self, x: Any) -> Any:
        return self.dense(x) + ops.matmul(ops.matmul(x, self.down.T), self.up.T)


def with_adapters() -> Any:
    """An encoder in which only the adapters of query and value are trained."""
    net = Encoder(layers=1)
    for parameter in net.get_parameters():
        parameter.requires_grad = False
    attention = net.layers[0].attention
    attention.query, attention.value = Adapted(attention.query), Adapted(attention.value)
    net.update_parameters_name("")
    return net


class Scorer(Encoder):
    """Takes ids, returns logits (batch, length, words)."""

    def construct(self, ids: Any) -> Any:
        x = self.embedding(ids) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Distillation(nn.Cell):
    """A student that is trained on labels and on its teacher's logits; returns the loss."""

    def __init__(self, student: Any, teacher: Any) -> None:
        super().__init__()
        self.student, self.teacher = student, teacher
        for parameter in teacher.get_parameters():
            parameter.requires_grad = False

    def construct(self, ids: Any, labels: Any) -> Any:
        logits = self.student(ids)
        soft = ops.stop_gradient(self.teacher(ids))
        hard = ops.cross_entropy(logits.reshape(-1, WORDS), labels.reshape(-1))
        return hard + ops.square(logits - soft).mean()


class Generator(nn.Cell):
    """Noise (batch, length, width) to samples of the same shape."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.out = Layer(0), nn.Dense(WIDTH, WIDTH)
        self.update_parameters_name("generator.")

    def construct(self, noise: Any) -> Any:
        return self.out(self.layer(noise))


class Critic(nn.Cell):
    """Samples (batch, length, width) to one score each (batch, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.out = Layer(0), nn.Dense(LENGTH * WIDTH, 1)
        self.update_parameters_name("critic.")

    def construct(self, samples: Any) -> Any:
        return self.out(self.layer(samples).reshape(samples.shape[0], -1))


class CriticLoss(nn.Cell):
    """Tells real samples from generated ones; the critic runs twice."""

    def __init__(self, generator: Any, critic: Any) -> None:
        super().__init__(auto_prefix=False)
        self.generator, self.critic = generator, critic

    def construct(self, real: Any, noise: Any) -> Any:
        fake = ops.stop_gradient(self.generator(noise))
        return ops.square(self.critic(real) - 1).mean() + ops.square(self.critic(fake)).mean()


class GeneratorLoss(nn.Cell):
    """How far the critic is from taking the generated samples for real ones."""

    def __init__(self, generator: Any, critic: Any) -> None:
        super().__init__(auto_prefix=False)
        self.generator, self.critic = generator, critic

    def construct(self, noise: Any) -> Any:
        return ops.square(self.critic(self.generator(noise)) - 1).mean()
