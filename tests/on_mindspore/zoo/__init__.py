"""Small Transformers as people write them by hand: each gives its loss, from seeded weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import mindspore as ms
import numpy as np

from zoo import bert, decoder, parts, vit


@dataclass(frozen=True)
class Family:
    """How to build a model, and the inputs that it takes."""

    make: Callable[[], Any]
    inputs: Callable[[Any], tuple[Any, ...]]


MODELS: dict[str, Family] = {
    **{
        f"bert_{style}": Family(partial(bert.Bert, style), bert.inputs)
        for style in ("cell", "primitive", "helper")
    },
    **{
        f"vit_{style}": Family(partial(vit.Vit, style), vit.inputs)
        for style in ("cell", "primitive", "call")
    },
    **{
        f"decoder_{style}": Family(partial(decoder.Decoder, style), decoder.inputs)
        for style in parts.ATTENTION
    },
    "albert": Family(partial(bert.Bert, "cell", shared=True), bert.inputs),
    "albert_call": Family(partial(bert.Bert, "call", shared=True), bert.inputs),
    "experts": Family(partial(decoder.Decoder, "primitive", net="experts"), decoder.inputs),
    "relu": Family(partial(decoder.Decoder, "helper", net="relu"), decoder.inputs),
    "tied": Family(partial(decoder.Decoder, "call", net="gelu", tied=True), decoder.inputs),
}


def build(name: str) -> tuple[Any, list[tuple[Any, ...]]]:
    """The model of this name, set to train, and three batches of its inputs."""
    ms.set_seed(5)
    np.random.seed(5)
    net = MODELS[name].make()
    net.set_train()
    rng = np.random.default_rng(11)
    return net, [MODELS[name].inputs(rng) for _ in range(3)]
