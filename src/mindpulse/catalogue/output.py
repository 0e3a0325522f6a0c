"""Measures of the logits: what the model says before the loss looks at it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mindpulse.catalogue.measure import Measure


def log_partition(logits: ArrayLike) -> float:
    """Mean over tokens of ln sum_c exp(logit_c).

    Cross-entropy does not change when a constant is added to all logits; this does, so it shows a
    drift of the logits that the loss hides.

    Args:
        logits: (..., classes).

    Returns:
        nats. -inf where all logits of a token are -inf, NaN where one is NaN or there is none.

    Example:
        >>> round(log_partition([[0.0, 0.0], [1.0, 1.0]]), 6)
        1.193147
    """
    x = np.asarray(logits, np.float64)
    if not x.size:
        return float("nan")
    top = x.max(axis=-1)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        sums = np.exp(x - shift[..., None]).sum(axis=-1)
        return float((np.log(sums) + shift).mean())


MEASURES = (
    Measure(
        tag="logits_log_partition",
        formula="mean over tokens of ln sum_c exp(logit_c)",
        unit="nats",
        axes=(),
        reduction="mean",
        source="Chowdhery et al. 2022, PaLM (arXiv 2204.02311), whose z-loss keeps it near 0; "
        "Wortsman et al. 2023, Small-scale proxies for large-scale Transformer training "
        "instabilities (arXiv 2309.14322)",
        reference=log_partition,
        family="output",
        place="logits",
    ),
)
