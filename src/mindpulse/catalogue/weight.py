"""Measures of the weights and of how far one step moves them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mindpulse.catalogue.gradient import param_norms
from mindpulse.catalogue.measure import Measure


def update_ratio(before: Sequence[ArrayLike], after: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """Norm of the change of each weight / norm of the weight before the step.

    Args:
        before: P arrays of any shape, the weights before the update.
        after: the same after it.

    Returns:
        (P,); NaN where a weight was all zero: no change is relative to that.

    Example:
        >>> update_ratio([[3.0, 4.0], [0.0]], [[3.0, 4.5], [0.1]]).tolist()
        [0.1, nan]
    """
    old, new = ([np.asarray(w, np.float64) for w in weights] for weights in (before, after))
    changes = [b - a for a, b in zip(old, new, strict=True)]
    return relative(param_norms(changes), param_norms(old))


def relative(changes: ArrayLike, norms: ArrayLike) -> NDArray[np.float64]:
    """Norms of changes / norms of the weights, of any shape, NaN where the weight is 0.

    Args:
        changes: (..., P), norms of the changes.
        norms: (..., P), norms of the weights before.

    Example:
        >>> relative([[0.1, 0.1]], [[2.0, 0.0]]).tolist()
        [[0.05, nan]]
    """
    norm = np.asarray(norms, np.float64)
    zero = norm == 0
    ratio = np.asarray(changes, np.float64) / np.where(zero, 1.0, norm)
    return np.asarray(np.where(zero, np.nan, ratio), np.float64)


MEASURES = (
    Measure(
        tag="weight_norm",
        formula="sqrt of the sum of squares of one parameter, after the update",
        unit="",
        axes=("param",),
        reduction="mean",
        source="You et al. 2017, Large Batch Training of Convolutional Networks (arXiv "
        "1708.03888), which scales updates by it",
        reference=param_norms,
        family="weight",
        place="weight",
        within="last",
    ),
    Measure(
        tag="weight_update_ratio",
        formula="|w_after - w_before| / |w_before|, L2 norms of one parameter",
        unit="",
        axes=("param",),
        reduction="mean",
        source="CS231n course notes, Neural Networks Part 3: about 1e-3 is usual",
        reference=update_ratio,
        family="weight",
        place="weight",
        within="last",
        level="all",
    ),
)
