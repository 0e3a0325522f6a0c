"""Which columns of a series belong to which layer."""

from __future__ import annotations

from mindpulse.catalogue.layers import numbered_layers
from mindpulse.series import SeriesSpec

LAYER = "layer"
_KEPT = 512

# By identity: the labels of a wide series take longer to compare than a rule takes to judge.
_known: dict[int, tuple[SeriesSpec, dict[int, list[int]]]] = {}


def columns_by_layer(spec: SeriesSpec) -> dict[int, list[int]]:
    """Number of a layer -> positions of its columns, numbers in rising order.

    The number is the label of the axis "layer"; without that axis the first number in the path of
    the parameter or cell. Columns without a number belong to no layer.

    Example:
        >>> columns_by_layer(SeriesSpec("g", axes=("param",), columns=(("h.1.q",), ("h.0.q",))))
        {0: [1], 1: [0]}
    """
    held = _known.get(id(spec))
    if held is None:
        if len(_known) >= _KEPT:
            _known.clear()
        held = _known[id(spec)] = spec, _by_layer(spec)
    return held[1]


def _by_layer(spec: SeriesSpec) -> dict[int, list[int]]:
    if not spec.columns:
        return {}
    place = spec.axes.index(LAYER) if LAYER in spec.axes else 0
    return numbered_layers([labels[place] for labels in spec.columns])
