"""Measures of gradients, as the optimizer gets them: after unscaling, reduction and clipping.

One looks at them before: `grad_norm_unclipped`, what a training hands to its clipping.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mindpulse.catalogue.layers import first_to_last
from mindpulse.catalogue.measure import Measure


def param_norms(gradients: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """L2 norm of each gradient.

    Args:
        gradients: P arrays of any shape.

    Returns:
        (P,).

    Example:
        >>> param_norms([[3.0, 4.0], [[0.0]]]).tolist()
        [5.0, 0.0]
    """
    return np.array([np.sqrt(np.square(np.asarray(g, np.float64)).sum()) for g in gradients])


def global_norm(gradients: Sequence[ArrayLike]) -> float:
    """L2 norm of all gradients taken as one vector.

    Args:
        gradients: P arrays of any shape.

    Example:
        >>> global_norm([[3.0], [[4.0]]])
        5.0
    """
    return float(np.sqrt(np.square(param_norms(gradients)).sum()))


def norm_ratio(paths: Sequence[str], gradients: Sequence[ArrayLike]) -> float:
    """Norm of the gradients of the first numbered layer / norm of those of the last.

    Args:
        paths: P, of the parameters.
        gradients: P arrays of any shape.

    Returns:
        NaN where the paths name fewer than two layers; see `layers.first_to_last`.

    Example:
        >>> norm_ratio(["l.0.w", "l.1.w", "head.w"], [[3.0, 4.0], [10.0], [99.0]])
        0.5
    """
    return float(first_to_last(paths, param_norms(gradients)[None, :])[0])


def max_abs(gradients: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """Largest magnitude in each gradient.

    Args:
        gradients: P arrays of any shape.

    Returns:
        (P,): NaN where a gradient holds one, 0 where it is empty.

    Example:
        >>> max_abs([[3.0, -4.0], [[0.0]], []]).tolist()
        [4.0, 0.0, 0.0]
    """
    return np.array([np.abs(np.asarray(g, np.float64)).max(initial=0.0) for g in gradients])


def zero_share(gradients: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """Share of each gradient that is exactly 0.

    Args:
        gradients: P arrays of any shape.

    Returns:
        (P,), 0 to 1; NaN where a gradient is empty. A NaN is not 0.

    Example:
        >>> zero_share([[0.0, -4.0], [0.0], [np.nan]]).tolist()
        [0.5, 1.0, 0.0]
    """
    arrays = [np.asarray(g, np.float64) for g in gradients]
    return np.array([(g == 0).mean() if g.size else np.nan for g in arrays])


def nonfinite(gradients: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """How many elements of each gradient are NaN or infinite.

    Args:
        gradients: P arrays of any shape.

    Returns:
        (P,).

    Example:
        >>> nonfinite([[np.nan, -np.inf, 1.0], [[0.0]]]).tolist()
        [2.0, 0.0]
    """
    counts = [np.count_nonzero(~np.isfinite(np.asarray(g, np.float64))) for g in gradients]
    return np.array(counts, np.float64)


MEASURES = (
    Measure(
        tag="grad_norm",
        formula="sqrt of the sum over parameters of the squared L2 norms",
        unit="",
        axes=(),
        reduction="mean",
        source="Pascanu, Mikolov, Bengio 2013, On the difficulty of training recurrent networks",
        reference=global_norm,
        family="gradient",
        place="gradient",
        within="last",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="grad_norm_unclipped",
        formula="grad_norm of the gradients that are handed to clipping",
        unit="",
        axes=(),
        reduction="mean",
        source="Pascanu, Mikolov, Bengio 2013, On the difficulty of training recurrent networks",
        reference=global_norm,
        family="gradient",
        place="clipping",
        within="last",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="grad_norm_param",
        formula="sqrt of the sum of squares of the gradient of one parameter",
        unit="",
        axes=("param",),
        reduction="mean",
        source="as grad_norm, kept apart for each trainable parameter",
        reference=param_norms,
        family="gradient",
        place="gradient",
        within="last",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="grad_norm_ratio",
        formula="gradient norm of the first numbered layer / that of the last",
        unit="",
        axes=(),
        reduction="mean",
        source="Zhang et al. 2021, AutoTrainer (ICSE), which compares the first and last kernel",
        reference=norm_ratio,
        family="gradient",
        place="",
        within="last",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="grad_max_abs",
        formula="max |g| over the gradient of one parameter",
        unit="",
        axes=("param",),
        reduction="max",
        source="MindStudio msprobe, monitor: statistic max of a weight gradient",
        reference=max_abs,
        family="gradient",
        place="gradient",
        within="last",
        level="all",
    ),
    Measure(
        tag="grad_zero_share",
        formula="elements of the gradient of one parameter that are 0 / all its elements",
        unit="",
        axes=("param",),
        reduction="mean",
        source="Zhang et al. 2021, AutoTrainer (ICSE), which calls 70 % zeros a dying ReLU",
        reference=zero_share,
        family="gradient",
        place="gradient",
        within="last",
        level="all",
    ),
    Measure(
        tag="grad_nonfinite",
        formula="number of NaN and infinite elements in the gradient of one parameter",
        unit="",
        axes=("param",),
        reduction="max",
        source="Micikevicius et al. 2018, Mixed Precision Training (arXiv 1710.03740)",
        reference=nonfinite,
        family="gradient",
        place="gradient",
        within="last",
        level="all",
    ),
)
