"""The measures as framework operators: differentiable, and the same in every mode.

`mindpulse.catalogue` holds the formulas and the NumPy references that these are tested against.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import Tensor, ops

_TINY = 1.1754944e-38  # smallest normal float32: ln of it is finite, and x * ln(x) below it is 0
MASKED_BY = 5000.0
MAP_SIDE = 64
MAP_HEADS = 8


def attention_focus(p: Tensor) -> Tensor:
    """(heads,) mean over batch and query of max_k p / (sum_k p + 1e-8).

    Args:
        p: (batch, head, query, key), attention probabilities.
    """
    return (ops.amax(p, -1) / (p.sum(-1) + 1e-8)).mean((0, 2))


def visible_keys(logits: Tensor) -> Tensor:
    """(batch, head, query) number of keys that the mask leaves visible.

    A key is hidden where its logit lies `MASKED_BY` below the largest of its row: every usual mask
    (-1e4, -1e9, the lowest number, -inf) does that, and no trained logit. The probabilities cannot
    tell: those of sharp attention underflow to 0, and the modes disagree on which.

    Args:
        logits: (batch, head, query, key), what goes into the softmax, mask added.
    """
    below = logits - ops.amax(logits, -1, keepdims=True)
    return (below > -MASKED_BY).astype(ms.float32).sum(-1)


def attention_entropy(p: Tensor, visible: Tensor) -> Tensor:
    """(heads,) mean over batch and query of -sum_k p ln p / ln(visible keys).

    Args:
        p: (batch, head, query, key), attention probabilities.
        visible: (batch, head, query), see `visible_keys`; fewer than two count as two.
    """
    nats = -(p * ops.log(ops.maximum(p, _TINY))).sum(-1)
    return (nats / ops.log(ops.maximum(visible, 2.0))).mean((0, 2))


def four_axes(p: Any, heads: int) -> Any:
    """p as (batch, head, query, key): folded heads are unfolded, missing leading axes are added."""
    shape = p.shape
    if len(shape) == 3 and heads > 0 and shape[0] % heads == 0:
        return p.reshape(-1, heads, shape[1], shape[2])
    if len(shape) == 4:
        return p
    return p.reshape(-1, 1, shape[-2], shape[-1])


def squared_norm_half() -> Any:
    """The operator that gives sum(x ** 2) / 2 in one pass.

    Measured on the CPU: one pass costs a sixth of square, then sum (docs/experiments.md).
    """
    return ops.L2Loss()
