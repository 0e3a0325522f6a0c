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
    return (_largest(p) / (_sum_of_keys(p) + 1e-8)).mean((0, 2))


def visible_keys(logits: Tensor) -> Tensor:
    """(batch, head, query) number of keys that the mask leaves visible.

    A key is hidden where its logit is below -`MASKED_BY`: every usual mask (-1e4, -1e9, the lowest
    number, -inf) puts it there, and no trained logit comes near. The probabilities cannot tell:
    those of sharp attention underflow to 0, and the modes disagree on which.

    Args:
        logits: (batch, head, query, key), what goes into the softmax, mask added.
    """
    return _sum_of_keys((logits > -MASKED_BY).astype(ms.float32))


def attention_entropy(p: Tensor, visible: Tensor) -> Tensor:
    """(heads,) mean over batch and query of -sum_k p ln p / ln(visible keys), at most 1 each.

    Args:
        p: (batch, head, query, key), attention probabilities.
        visible: (batch, head, query), see `visible_keys`; fewer than two count as two.
    """
    nats = -_sum_of_keys(p * ops.log(ops.maximum(p, _TINY)))
    share = nats / ops.log(ops.maximum(visible, 2.0))
    return ops.minimum(share, 1.0).mean((0, 2))


def _sum_of_keys(x: Tensor) -> Tensor:
    """Sum over the last axis as a product with ones: a fifth of the time of `sum` on the CPU."""
    return ops.matmul(x, ops.ones((x.shape[-1], 1), x.dtype)).reshape(x.shape[:-1])


def _largest(x: Tensor) -> Tensor:
    """Maximum over the last axis; `ops.max` takes a third of the time of `ops.amax` on the CPU."""
    return ops.max(x, -1)[0]


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
