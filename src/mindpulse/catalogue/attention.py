"""Measures of attention probabilities: one value per layer and head.

`p` has shape (batch, head, query, key). Rows that are all zero (a padded query under some masks)
count with focus 0 and entropy 0; no measure divides by zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mindpulse.catalogue.measure import Measure

EPSILON = 1e-8


def attention_focus(p: ArrayLike) -> NDArray[np.float64]:
    """Mean over batch and query of max_k p / (sum_k p + 1e-8).

    Args:
        p: (batch, head, query, key), attention probabilities.

    Returns:
        (head,): 1 / keys when attention is uniform, 1 when each query looks at one key.

    Example:
        >>> attention_focus(np.full((2, 3, 5, 4), 0.25)).round(6).tolist()
        [0.25, 0.25, 0.25]
    """
    weights = np.asarray(p, np.float64)
    peak = weights.max(axis=-1) / (weights.sum(axis=-1) + EPSILON)
    return _per_head(peak)


def attention_entropy(p: ArrayLike, mask: ArrayLike | None = None) -> NDArray[np.float64]:
    """Mean over batch and query of -sum p ln p / ln(visible keys), 0 ln 0 = 0, at most 1 each.

    Args:
        p: (batch, head, query, key), attention probabilities.
        mask: broadcastable to p, true where a key is visible. Without it the visible keys of a
            query are those with p > 0, at least 2. A query that sees no key at all (padding)
            spreads over hidden ones and counts with entropy 1.

    Returns:
        (head,): 0 when each query looks at one key, 1 when attention is uniform.

    Example:
        >>> attention_entropy(np.full((2, 3, 5, 4), 0.25)).round(6).tolist()
        [1.0, 1.0, 1.0]
    """
    weights = np.asarray(p, np.float64)
    shown = weights > 0 if mask is None else np.asarray(mask, bool)
    nats = -(weights * np.log(np.where(weights > 0, weights, 1.0))).sum(axis=-1)
    keys = np.maximum(np.broadcast_to(shown, weights.shape).sum(axis=-1), 2)
    return _per_head(np.minimum(nats / np.log(keys), 1.0))


def _per_head(values: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(values.mean(axis=(0, 2)), np.float64)


MEASURES = (
    Measure(
        tag="attn_focus",
        formula="mean over batch and query of max_k p / (sum_k p + 1e-8)",
        unit="",
        axes=("layer", "head"),
        reduction="mean",
        source="the concentration measure of the article that this project started from",
        reference=attention_focus,
    ),
    Measure(
        tag="attn_entropy",
        formula="mean over batch and query of min(1, -sum_k p ln p / ln(visible keys))",
        unit="",
        axes=("layer", "head"),
        reduction="mean",
        source="Zhai et al. 2023, Stabilizing Transformer Training by Preventing Attention "
        "Entropy Collapse (arXiv 2303.06296); divided by its maximum here",
        reference=attention_entropy,
    ),
)
