"""How a series moves: growth of counters, share of rises, turns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.rules.lanes import Values, total


def rate(v: Values, steps: NDArray[Any]) -> Values:
    """Growth per step of each lane (..., N) -> (...); what is below its predecessor begins at 0.

    Example:
        >>> float(rate(np.array([10.0, 14.0, 2.0]), np.array([1, 2, 3])))
        3.0
    """
    grown = v[..., 1:] - v[..., :-1]
    grown = np.where(grown < 0, v[..., 1:], grown)
    return np.asarray(total(grown) / (steps[..., -1] - steps[..., 0]).astype(np.float64))


def rising(v: Values) -> Values:
    """Share of the neighbours of each lane that rise (..., N) -> (...)."""
    risen = (v[..., 1:] > v[..., :-1]).sum(axis=-1, dtype=np.float64)
    return np.asarray(risen / (v.shape[-1] - 1))


def turns(v: Values) -> Values:
    """Share of the inner rows of each lane that are a peak or a valley (..., N) -> (...).

    Example:
        >>> float(turns(np.array([1.0, 2.0, 1.0, 2.0]))), float(turns(np.array([1.0, 2.0, 3.0])))
        (1.0, 0.0)
    """
    moves = np.sign(v[..., 1:] - v[..., :-1])
    turned = moves[..., 1:] * moves[..., :-1] < 0
    return np.asarray(turned.sum(axis=-1, dtype=np.float64) / (v.shape[-1] - 2))
