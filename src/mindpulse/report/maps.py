"""Attention maps: one tile per layer and head, all on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.report import colour, plot
from mindpulse.report.data import AttentionMap
from mindpulse.report.heat import colour_bar
from mindpulse.report.markup import Html, join, tag, void
from mindpulse.report.png import data_uri
from mindpulse.report.scales import format_number
from mindpulse.report.words import Words

MAX_PIXELS = 96
MAX_TILES = 96


def shrink(values: NDArray[Any], limit: int = MAX_PIXELS) -> NDArray[np.float64]:
    """A map of at most `limit` cells a side that keeps the largest weight of each block.

    Args:
        values: (query, key).

    Example:
        >>> shrink(np.eye(4), limit=2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    small = np.asarray(values, np.float64)
    for axis in (0, 1):
        size = small.shape[axis]
        if size > limit:
            starts = np.unique(np.arange(limit) * size // limit)
            small = np.fmax.reduceat(small, starts, axis=axis)
    return small


def share(values: NDArray[Any], top: float) -> NDArray[np.float64]:
    """Place of each weight on the colours: a square root shows what a linear scale leaves black.

    Args:
        values: any shape; what is not finite lies at 0.
        top: the value of the brightest colour.

    Example:
        >>> share(np.array([0.0, 0.25, 1.0]), top=1.0).tolist()
        [0.0, 0.5, 1.0]
    """
    finite = np.where(np.isfinite(values), values, 0.0)
    return np.sqrt(np.clip(finite / (top or 1.0), 0.0, 1.0))


def brightest(maps: Sequence[AttentionMap]) -> float:
    """The largest weight of all maps, which gets the brightest colour."""
    return max((float(m.values[np.isfinite(m.values)].max(initial=0.0)) for m in maps), default=0.0)


def draw(maps: Sequence[AttentionMap], words: Words) -> Html:
    """The figure: a row of tiles for each layer, and the colour bar."""
    shown = _spread(maps)
    top = brightest(shown)
    rows = [
        _layer(layer, list(heads), top, words) for layer, heads in groupby(shown, lambda m: m.layer)
    ]
    caption = words.say("maps.caption", step=format_number(max(m.step for m in shown)))
    if len(shown) < len(maps):
        caption += " " + words.say("maps.some", shown=len(shown), total=len(maps))
    figure_caption = plot.Caption(words.say("maps.title"), caption)
    bar = colour_bar(words.say("maps.unit"), (0.0, top / 4, top))
    return plot.figure(figure_caption, bar, tag("div", *rows, class_="maps"))


def _spread(maps: Sequence[AttentionMap]) -> list[AttentionMap]:
    """As many whole layers as fit, spread over the depth of the model."""
    layers = list(dict.fromkeys(m.layer for m in maps))
    per_layer = -(-len(maps) // max(1, len(layers)))
    count = max(1, min(len(layers), MAX_TILES // max(1, per_layer)))
    chosen = {layers[i] for i in np.linspace(0, len(layers) - 1, count).astype(int)}
    return [m for m in maps if m.layer in chosen]


def _layer(layer: str, heads: list[AttentionMap], top: float, words: Words) -> Html:
    tiles = [_tile(m, top, words) for m in heads]
    step = words.say("maps.step", step=format_number(heads[0].step))
    title = tag("h4", words.say("maps.layer", layer=layer), " ", tag("small", step))
    return tag("section", title, tag("div", *tiles, class_="tiles"))


def _tile(m: AttentionMap, top: float, words: Words) -> Html:
    small = shrink(m.values)
    pixels = colour.paint(share(small, top), ~np.isfinite(small))
    name = words.say("maps.head", head=m.head)
    alt = words.say(
        "maps.alt", layer=m.layer, head=m.head, step=m.step, focus=format_number(_focus(m))
    )
    picture = void("img", src=data_uri(pixels), alt=alt, title=alt, class_="pixels")
    focus = tag("small", words.say("maps.focus", value=format_number(_focus(m))))
    return tag("figure", picture, tag("figcaption", join(name, " ", focus)))


def _focus(m: AttentionMap) -> float:
    """Mean over queries of the largest weight; NaN where nothing is finite."""
    finite = np.where(np.isfinite(m.values), m.values, 0.0)
    return round(float(np.mean(np.max(finite, axis=1) / (np.sum(finite, axis=1) + 1e-8))), 3)
