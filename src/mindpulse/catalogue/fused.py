"""Focus and max logit where the attention is fused and its probabilities never exist in memory.

A fused operator walks over blocks of keys and keeps two numbers for each row: the largest logit m
so far, and s = sum of exp(logit - m) (Milakov, Gimelshein 2018, Online normalizer calculation for
softmax, arXiv 1805.02867). The probability of a key is exp(logit - m) / s, and it is largest where
the logit is m: there it is 1 / s. So both measures are left over from what the operator does
anyway. On Ascend they are its outputs softmax_max and softmax_sum, float32 of shape
(batch, head, query, 8) with eight equal values.

`attention_focus` divides by sum p + 1e-8, and sum p is 1: it is smaller by a factor 1 + 1e-8, less
than the rounding of float32 (6e-8). Two more differences are none of mathematics: dropout comes
after m and s, and so does what an operator does to rows without a visible key (`fused_focus`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def online_softmax(
    logits: ArrayLike, block: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Row maxima and sums as a fused operator finds them, one block of keys after the other.

    Args:
        logits: (..., key), scaled and with the mask added.
        block: keys looked at together, 1 or more.

    Returns:
        m (...), the largest logit of each row, and s (...), the sum of exp(logit - m); -inf and 0
        for a row whose logits are all -inf.

    Example:
        >>> m, s = online_softmax([[0.0, 3.0, 3.0, -np.inf]], block=2)
        >>> m.tolist(), s.round(4).tolist()
        ([3.0], [2.0498])
    """
    x = np.asarray(logits, np.float64)
    m = np.full(x.shape[:-1], -np.inf)
    s = np.zeros(x.shape[:-1])
    for start in range(0, x.shape[-1], block):
        part = x[..., start : start + block]
        larger = np.maximum(m, part.max(axis=-1))
        # A row that has seen nothing but -inf has no scale yet; any finite one gives exp(-inf) = 0.
        shift = np.where(np.isneginf(larger), 0.0, larger)
        with np.errstate(invalid="ignore"):
            s = s * np.exp(m - shift) + np.exp(part - shift[..., None]).sum(axis=-1)
        m = larger
    return m, s


def fused_focus(row_max: ArrayLike, row_sum: ArrayLike) -> NDArray[np.float64]:
    """Mean over batch and query of 1 / s.

    Args:
        row_max: (batch, head, query) or, as on Ascend, (batch, head, query, 8).
        row_sum: the same shape.

    Returns:
        (head,). A row of which every logit is -inf (m = -inf) has no probabilities and counts
        with 0, as a row of zeros does in `attention_focus`; hidden behind a finite number (-1e9)
        its keys share alike, and both forms give 1 / keys.

    Example:
        >>> fused_focus([[[3.0, -np.inf]]], [[[2.0, 0.0]]]).tolist()
        [0.25]
    """
    m, s = np.asarray(row_max, np.float64), np.asarray(row_sum, np.float64)
    empty = np.isneginf(m) | (s == 0)
    return _per_head(np.where(empty, 0.0, 1.0 / np.where(empty, 1.0, s)))


def fused_max_logit(row_max: ArrayLike) -> NDArray[np.float64]:
    """Largest m of each head: the largest logit.

    Args:
        row_max: (batch, head, query) or, as on Ascend, (batch, head, query, 8).

    Returns:
        (head,): as `attention_max_logit` of the logits.

    Example:
        >>> fused_max_logit([[[3.0, -np.inf]]]).tolist()
        [3.0]
    """
    m = np.asarray(row_max, np.float64)
    return np.asarray(m.max(axis=(0, *range(2, m.ndim))), np.float64)


def _per_head(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(values.mean(axis=(0, *range(2, values.ndim))), np.float64)
