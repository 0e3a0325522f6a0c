"""From the path of a parameter to the number of its layer, and from norms to norms of layers."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

NUMBERED = re.compile(r"^(?P<stem>.*?)(?:^|\.)(?P<index>\d+)(?:\.|$)")
"""Matches a path with a whole number among its components; the first one is the layer."""

Key = TypeVar("Key", bound=Hashable)


def layer_number(path: str) -> int | None:
    """The first component of a path that is a whole number; None where there is none.

    Example:
        >>> layer_number("encoder.layers.3.attention.wq.weight"), layer_number("fc1.weight")
        (3, None)
    """
    match = NUMBERED.match(path)
    return int(match["index"]) if match else None


def numbered_layers(paths: Sequence[str]) -> dict[int, list[int]]:
    """Number of a layer -> positions of its parameters, numbers in rising order.

    Parameters without a number (an embedding, a head) belong to no layer. Layers of two stacks
    that are numbered alike (an encoder and a decoder) count as one.

    Example:
        >>> numbered_layers(["embed.w", "layers.1.q", "layers.0.q", "layers.1.k"])
        {0: [2], 1: [1, 3]}
    """
    found: dict[int, list[int]] = {}
    for position, path in enumerate(paths):
        number = layer_number(path)
        if number is not None:
            found.setdefault(number, []).append(position)
    return dict(sorted(found.items()))


def layer_norms(values: NDArray[Any], groups: Mapping[Key, list[int]]) -> NDArray[np.float64]:
    """L2 norm of each layer from the L2 norms of its parameters.

    Args:
        values: (T, parameters).
        groups: layer -> positions of its parameters.

    Returns:
        (T, layers), float64; a NaN or infinity of a parameter stays one in its layer.

    Example:
        >>> layer_norms(np.array([[3.0, 4.0]]), {"layer 0": [0, 1]}).tolist()
        [[5.0]]
    """
    x = np.asarray(values, np.float64)
    columns = []
    for members in groups.values():
        part = x[:, members]
        with np.errstate(invalid="ignore"):
            top = np.max(np.abs(part), axis=1, keepdims=True)
            scale = np.where((top > 0) & np.isfinite(top), top, 1.0)
            columns.append(scale[:, 0] * np.sqrt(np.sum((part / scale) ** 2, axis=1)))
    return np.stack(columns, axis=1)


def first_to_last(paths: Sequence[str], norms: NDArray[Any]) -> NDArray[np.float64]:
    """Norm of the layer with the smallest number / norm of the layer with the greatest.

    Args:
        paths: P, of the parameters.
        norms: (T, P), their norms, step by step.

    Returns:
        (T,): infinite where only the last is 0, NaN where both are, and NaN where the paths name
        fewer than two layers.

    Example:
        >>> first_to_last(["l.0.q", "l.0.k", "l.7.q"], np.array([[3.0, 4.0, 10.0]])).tolist()
        [0.5]
    """
    layers = numbered_layers(paths)
    if len(layers) < 2:
        return np.full(len(norms), np.nan)
    first, last = min(layers), max(layers)
    ends = layer_norms(norms, {first: layers[first], last: layers[last]})
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(ends[:, 0] / ends[:, 1], np.float64)
