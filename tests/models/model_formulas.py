"""The measures of the catalogue once more, written down on their own in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def attention(p: Array, logits: Array, shown: Array, padding: Array) -> dict[str, Array]:
    """By tag, (steps, layers, heads).

    Args:
        p, logits: (steps, layers, batch, heads, query, key).
        shown, padding: the same shape, which keys are visible and which hold padding.
    """
    p = p.astype(np.float64)
    keys = shown.sum(-1)
    nats = np.zeros(p.shape[:-1])
    for key in range(p.shape[-1]):
        weight = p[..., key]
        nats[weight > 0] -= weight[weight > 0] * np.log(weight[weight > 0])
    later = np.triu(np.ones(p.shape[-2:]), 1)
    by_query = {
        "attn_focus": p.max(-1) / (p.sum(-1) + 1e-8),
        "attn_entropy": np.minimum(nats / np.log(np.maximum(keys, 2)), 1),
        "attn_sparsity": ((p < 1e-3) & shown).sum(-1) / keys,
        "attn_sink_mass": p[..., 0],
        "attn_future_mass": (p * later).sum(-1),
        "attn_padding_mass": (p * padding).sum(-1),
    }
    found = {tag: values.mean((2, 4)) for tag, values in by_query.items()}
    found["attn_max_logit"] = np.where(shown, logits, -np.inf).max((2, 4, 5))
    return found


def _kurtosis(x: Array) -> float:
    """Mean over tokens; x: (..., features)."""
    standard = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    return float((standard**4).mean())


NORMS = {
    "norm_input_mean": np.mean,
    "norm_input_variance": lambda x: x.var(-1).mean(),
    "norm_input_rms": lambda x: np.sqrt((x**2).mean()),
    "norm_input_max_abs": lambda x: np.abs(x).max(),
    "norm_input_kurtosis": _kurtosis,
}


def magnitudes(x: Array) -> Array:
    """(steps, layers, bins) shares: zeros, below 2^-20, one bin for each power of two, 2^12 and up.

    Args:
        x: (steps, layers, ...).
    """
    powers = np.floor(np.log2(np.abs(np.where(x == 0, 1, x)).astype(np.float64)))
    bins = np.where(x == 0, 0, np.clip(powers + 22, 1, 34)).reshape(*x.shape[:2], -1)
    return np.stack([(bins == number).mean(-1) for number in range(35)], axis=-1)


def log_partition(logits: Array) -> Array:
    """(steps,) mean over tokens of ln sum_c exp(logit_c); logits: (steps, ..., classes)."""
    x = logits.astype(np.float64)
    return np.log(np.exp(x).sum(-1)).reshape(len(x), -1).mean(1)
