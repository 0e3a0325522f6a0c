"""Measures of a mixture of experts: who gets the tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mindpulse.catalogue.measure import Measure


def expert_load(p: ArrayLike, top_k: int = 1) -> NDArray[np.float64]:
    """Share of all token choices that falls on each expert; each token chooses its top_k.

    Choices are counted as the router makes them, before any limit of capacity drops tokens.

    Args:
        p: (..., experts), probabilities or logits of the router. Of equal experts the one with
            the lower number is chosen.
        top_k: experts per token.

    Returns:
        (experts,), sum 1; 1 / experts each is balanced. NaN where there is no token.

    Example:
        >>> expert_load([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]]).round(2).tolist()
        [0.67, 0.0, 0.33]
    """
    scores = np.asarray(p, np.float64)
    scores = scores.reshape(-1, scores.shape[-1])
    chosen = np.argsort(-scores, axis=-1, kind="stable")[:, :top_k]
    counts = np.bincount(chosen.ravel(), minlength=scores.shape[-1])
    return counts / chosen.size if chosen.size else np.full(scores.shape[-1], np.nan)


MEASURES = (
    Measure(
        tag="expert_load",
        formula="token choices that fall on one expert / all token choices of its layer",
        unit="",
        axes=("layer", "expert"),
        reduction="mean",
        source="Fedus, Zoph, Shazeer 2021, Switch Transformers (arXiv 2101.03961): f_i in the "
        "load-balancing loss",
        reference=expert_load,
        family="moe",
        place="router",
    ),
)
