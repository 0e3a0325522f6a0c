"""Measures of gradients, as they are before clipping and after unscaling of the loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

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


MEASURES = (
    Measure(
        tag="grad_norm",
        formula="sqrt of the sum over parameters of the squared L2 norms",
        unit="",
        axes=(),
        reduction="mean",
        source="Pascanu, Mikolov, Bengio 2013, On the difficulty of training recurrent networks",
        reference=global_norm,
    ),
    Measure(
        tag="grad_norm_param",
        formula="sqrt of the sum of squares of the gradient of one parameter",
        unit="",
        axes=("param",),
        reduction="mean",
        source="as grad_norm, kept apart for each trainable parameter",
        reference=param_norms,
    ),
)
