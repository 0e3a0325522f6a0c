"""Measures of attention: one value per layer and head.

`p` has shape (batch, head, query, key), attention probabilities; `logits` are what goes into the
softmax, scaled and with the mask added. Rows that are all zero (a padded query under some masks)
count with focus 0 and entropy 0; no measure divides by zero. Nothing is dropped: a NaN in a head
makes that head NaN, and so does a batch without a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mindpulse.catalogue.measure import Measure

EPSILON = 1e-8
MASKED_BY = 5000.0
SPARSE_BELOW = 1e-3


def visible(logits: ArrayLike) -> NDArray[np.bool_]:
    """Which keys the mask leaves visible: those whose logit is above -5000.

    Every usual mask (-1e4, -1e9, the lowest number, -inf) puts a hidden key below, and no trained
    logit comes near. The probabilities cannot tell: those of sharp attention underflow to 0.

    Example:
        >>> visible([2.0, -30.0, -1e4, -np.inf]).tolist()
        [True, True, False, False]
    """
    return np.asarray(logits, np.float64) > -MASKED_BY


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
    return _per_head(peak, weights)


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
    return _per_head(np.minimum(nats / np.log(keys), 1.0), weights)


def attention_sparsity(p: ArrayLike, mask: ArrayLike | None = None) -> NDArray[np.float64]:
    """Mean over batch and query of the visible keys with p < 1e-3 / the visible keys.

    Args:
        p: (batch, head, query, key), attention probabilities.
        mask: broadcastable to p, true where a key is visible; all keys without it. A query that
            sees no key at all counts with 0.

    Returns:
        (head,): 0 when each visible key gets its part, near 1 when nearly all are ignored.

    Example:
        >>> attention_sparsity([[[[0.9995, 0.0005, 0.0, 0.0]]]], [True, True, True, False])
        array([0.66666667])
    """
    weights = np.asarray(p, np.float64)
    shown = np.broadcast_to(True if mask is None else np.asarray(mask, bool), weights.shape)
    ignored = (shown & (weights < SPARSE_BELOW)).sum(axis=-1)
    return _per_head(ignored / np.maximum(shown.sum(axis=-1), 1), weights)


def attention_max_logit(logits: ArrayLike) -> NDArray[np.float64]:
    """Largest logit of a visible key, over batch, query and key.

    Hidden keys lie below -5000, so that the largest logit of all is that of a visible key wherever
    a head sees one; where it sees none the largest hidden one is given.

    Args:
        logits: (batch, head, query, key), what goes into the softmax, mask added.

    Returns:
        (head,).

    Example:
        >>> attention_max_logit([[[[1.0, 7.5, -1e9]]]]).tolist()
        [7.5]
    """
    x = np.asarray(logits, np.float64)
    if not x.size:
        return np.full(x.shape[1], np.nan)
    return np.asarray(x.max(axis=(0, 2, 3)), np.float64)


def attention_sink_mass(p: ArrayLike) -> NDArray[np.float64]:
    """Mean over batch and query of p on the first key.

    Args:
        p: (batch, head, query, key), attention probabilities.

    Returns:
        (head,): 1 / keys when attention is uniform, 1 when all look at the first token.

    Example:
        >>> attention_sink_mass([[[[0.7, 0.3], [0.1, 0.9]]]]).round(6).tolist()
        [0.4]
    """
    weights = np.asarray(p, np.float64)
    return _per_head(weights[..., 0], weights)


def attention_future_mass(p: ArrayLike) -> NDArray[np.float64]:
    """Mean over batch and query of the sum of p over keys that come after the query.

    The last query stands at the last key: with fewer queries than keys the first keys are a past
    that came before all queries.

    Args:
        p: (batch, head, query, key), attention probabilities.

    Returns:
        (head,): 0 under a causal mask that holds. NaN with more queries than keys: then a query
        has no place among the keys.

    Example:
        >>> attention_future_mass([[[[0.7, 0.3], [0.1, 0.9]]]]).round(6).tolist()
        [0.15]
    """
    weights = np.asarray(p, np.float64)
    queries, keys = weights.shape[-2:]
    if queries > keys:
        return np.full(weights.shape[1], np.nan)
    after = np.arange(keys) > np.arange(queries)[:, None] + (keys - queries)
    return _per_head(np.where(after, weights, 0.0).sum(axis=-1), weights)


def attention_padding_mass(p: ArrayLike, padding: ArrayLike) -> NDArray[np.float64]:
    """Mean over batch and query of the sum of p over keys that hold a padding token.

    Args:
        p: (batch, head, query, key), attention probabilities.
        padding: (batch, key), true where the token is padding: from the token ids, whatever the
            attention mask says, for it is the mask that is under test.

    Returns:
        (head,): 0 where no attention goes to padding.

    Example:
        >>> attention_padding_mass([[[[0.7, 0.3], [0.1, 0.9]]]], [[False, True]]).round(6).tolist()
        [0.6]
    """
    weights = np.asarray(p, np.float64)
    hidden = np.asarray(padding, bool)[:, None, None, :]
    return _per_head(np.where(hidden, weights, 0.0).sum(axis=-1), weights)


def _per_head(rows: NDArray[Any], p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of (batch, head, query) over batch and query; NaN for a head whose p holds one."""
    if not rows.size:
        return np.full(rows.shape[1], np.nan)
    spoilt = np.isnan(p).any(axis=(0, 2, 3))
    return np.asarray(np.where(spoilt, np.nan, rows.mean(axis=(0, 2))), np.float64)


MEASURES = (
    Measure(
        tag="attn_focus",
        formula="mean over batch and query of max_k p / (sum_k p + 1e-8)",
        unit="",
        axes=("layer", "head"),
        reduction="mean",
        source="the concentration measure of the article that this project started from",
        reference=attention_focus,
        family="attention",
        place="attention",
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
        family="attention",
        place="attention",
    ),
    Measure(
        tag="attn_max_logit",
        formula="max over batch, query and visible key of the logit that goes into the softmax",
        unit="",
        axes=("layer", "head"),
        reduction="max",
        source="Dehghani et al. 2023, Scaling Vision Transformers to 22 Billion Parameters (arXiv "
        "2302.05442); Wortsman et al. 2023, Small-scale proxies (arXiv 2309.14322)",
        reference=attention_max_logit,
        family="attention",
        place="attention",
        within="max",
    ),
    Measure(
        tag="attn_sparsity",
        formula="mean over batch and query of (visible keys with p < 1e-3) / (visible keys)",
        unit="",
        axes=("layer", "head"),
        reduction="mean",
        source="as Child et al. 2019, Sparse Transformers (arXiv 1904.10509) see in trained maps; "
        "the limit is this project's",
        reference=attention_sparsity,
        family="attention",
        place="attention",
        level="all",
    ),
    Measure(
        tag="attn_sink_mass",
        formula="mean over batch and query of p on key 0",
        unit="",
        axes=("layer", "head"),
        reduction="mean",
        source="Xiao et al. 2023, Efficient Streaming Language Models with Attention Sinks (arXiv "
        "2309.17453)",
        reference=attention_sink_mass,
        family="attention",
        place="attention",
        level="all",
    ),
    Measure(
        tag="attn_future_mass",
        formula="mean over batch and query of sum p over keys after the query",
        unit="",
        axes=("layer", "head"),
        reduction="mean",
        source="Vaswani et al. 2017, Attention Is All You Need (arXiv 1706.03762), 3.2.3: a "
        "decoder masks these keys",
        reference=attention_future_mass,
        family="attention",
        place="attention",
        level="all",
    ),
    Measure(
        tag="attn_padding_mass",
        formula="mean over batch and query of sum p over keys that hold padding tokens",
        unit="",
        axes=("layer", "head"),
        reduction="mean",
        source="DEFault++ 2026 (arXiv 2604.28118), which counts it among the signs of a fault",
        reference=attention_padding_mass,
        family="attention",
        place="attention",
        level="all",
    ),
)
