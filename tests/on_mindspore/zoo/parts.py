"""Attention, norms and feed-forward networks in the styles that people write them in."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms
import mindspore.ops as F  # noqa: N812 (as people write it)
import numpy as np
from mindspore import Parameter, Tensor, mint, nn, ops

WIDTH, HEADS, INNER, KV_HEADS, EXPERTS, TOP_K = 16, 4, 32, 2, 4, 2
PER_HEAD = WIDTH // HEADS


def scaled_dot_product(q: Any, k: Any, v: Any, mask: Any) -> Any:
    """Attention as a helper function of the module."""
    scores = ops.matmul(q, k.swapaxes(-1, -2)) / math.sqrt(PER_HEAD) + mask
    return ops.matmul(F.softmax(scores, axis=-1), v)


class Attention(nn.Cell):
    """Projections and heads; what is between is the subclasses' affair."""

    def __init__(self, kv_heads: int = HEADS) -> None:
        super().__init__()
        self.q_proj, self.o_proj = nn.Dense(WIDTH, WIDTH), nn.Dense(WIDTH, WIDTH)
        self.k_proj = nn.Dense(WIDTH, kv_heads * PER_HEAD)
        self.v_proj = nn.Dense(WIDTH, kv_heads * PER_HEAD)
        self.num_heads, self.kv_heads = HEADS, kv_heads

    def split(self, x: Any, heads: int) -> Any:
        parts = x.reshape(x.shape[0], x.shape[1], heads, PER_HEAD).transpose(0, 2, 1, 3)
        repeat = self.num_heads // heads
        if repeat == 1:
            return parts
        return ops.concat((parts,) * repeat, 1)

    def project(self, x: Any) -> Any:
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        kv = self.kv_heads
        return self.split(q, self.num_heads), self.split(k, kv), self.split(v, kv)

    def scores(self, q: Any, k: Any, mask: Any) -> Any:
        return ops.matmul(q, k.swapaxes(-1, -2)) / math.sqrt(PER_HEAD) + mask

    def join(self, x: Any) -> Any:
        shape = (x.shape[0], x.shape[2], WIDTH)
        return self.o_proj(x.transpose(0, 2, 1, 3).reshape(shape))


class CellAttention(Attention):
    """The softmax is a cell."""

    def __init__(self, kv_heads: int = HEADS) -> None:
        super().__init__(kv_heads)
        self.softmax = nn.Softmax(axis=-1)

    def construct(self, x: Any, mask: Any) -> Any:
        q, k, v = self.project(x)
        return self.join(ops.matmul(self.softmax(self.scores(q, k, mask)), v))


class PrimitiveAttention(Attention):
    """The softmax is a primitive."""

    def __init__(self, kv_heads: int = HEADS) -> None:
        super().__init__(kv_heads)
        self.softmax = ops.Softmax(axis=-1)

    def construct(self, x: Any, mask: Any) -> Any:
        q, k, v = self.project(x)
        return self.join(ops.matmul(self.softmax(self.scores(q, k, mask)), v))


class CallAttention(Attention):
    """The softmax is called in construct."""

    def construct(self, x: Any, mask: Any) -> Any:
        q, k, v = self.project(x)
        return self.join(ops.matmul(ops.softmax(self.scores(q, k, mask), -1), v))


class MethodAttention(Attention):
    """The softmax is called in another method."""

    def construct(self, x: Any, mask: Any) -> Any:
        q, k, v = self.project(x)
        return self.join(self.attend(self.scores(q, k, mask), v))

    def attend(self, scores: Any, v: Any) -> Any:
        return ops.matmul(mint.nn.functional.softmax(scores, dim=-1), v)


class HelperAttention(Attention):
    """The softmax is called in a function of the module."""

    def construct(self, x: Any, mask: Any) -> Any:
        q, k, v = self.project(x)
        return self.join(scaled_dot_product(q, k, v, mask))


ATTENTION = {
    "cell": CellAttention,
    "primitive": PrimitiveAttention,
    "call": CallAttention,
    "method": MethodAttention,
    "helper": HelperAttention,
}


class RMSNorm(nn.Cell):
    """Root mean square norm, written by hand."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = Parameter(Tensor(np.ones(width), ms.float32))

    def construct(self, x: Any) -> Any:
        return x * ops.rsqrt((x * x).mean(-1, keep_dims=True) + 1e-6) * self.weight


class ReluNet(nn.Cell):
    """Feed-forward network with an activation cell."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Dense(WIDTH, INNER), nn.ReLU(), nn.Dense(INNER, WIDTH)

    def construct(self, x: Any) -> Any:
        return self.fc2(self.act(self.fc1(x)))


class GeluNet(nn.Cell):
    """Feed-forward network whose activation is called."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Dense(WIDTH, INNER), nn.Dense(INNER, WIDTH)

    def construct(self, x: Any) -> Any:
        return self.fc2(ops.gelu(self.fc1(x)))


class GatedNet(nn.Cell):
    """SwiGLU."""

    def __init__(self) -> None:
        super().__init__()
        self.w1 = nn.Dense(WIDTH, INNER, has_bias=False)
        self.w2 = nn.Dense(INNER, WIDTH, has_bias=False)
        self.w3 = nn.Dense(WIDTH, INNER, has_bias=False)

    def construct(self, x: Any) -> Any:
        return self.w2(ops.silu(self.w1(x)) * self.w3(x))


class Mixture(nn.Cell):
    """Experts; the router's softmax picks two of four for each token."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Dense(WIDTH, EXPERTS, has_bias=False)
        self.softmax = nn.Softmax(-1)
        self.experts = nn.CellList([GatedNet() for _ in range(EXPERTS)])
        self.num_experts, self.top_k = EXPERTS, TOP_K

    def construct(self, x: Any) -> Any:
        p = self.softmax(self.gate(x))
        least = ops.topk(p, self.top_k)[0][..., -1:]
        weights = p * (p >= least).astype(p.dtype)
        out = x * 0.0
        for number, expert in enumerate(self.experts):
            out = out + expert(x) * weights[..., number : number + 1]
        return out
