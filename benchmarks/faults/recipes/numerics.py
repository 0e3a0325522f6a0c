"""Faults of the numbers themselves: NaN, half precision, flipped bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.faults.data import Batch
from benchmarks.faults.recipes.recipe import MIDDLE, fault
from benchmarks.faults.script import Script, Weights

BOTH = ("decoder", "encoder")


@fault("nan-batch", "numerics", (1, 8, 16), variants=BOTH, when=MIDDLE)
def nan_batch(script: Script, samples: int) -> None:
    """The mask of {level} samples of one batch is NaN."""
    script.change_data(
        lambda batch, index: poisoned(batch, samples) if index == script.label - 1 else batch
    )


@fault("inf-weight", "numerics", (1, 8, 64), when=MIDDLE, layer=1)
def inf_weight(script: Script, count: int) -> None:
    """At the label {level} weights of layer 1 become infinite."""

    def overflow(w: Weights) -> Weights:
        w.reshape(-1)[:count] = np.inf
        return w

    script.at(script.label, lambda live: live.edit("layers.1.ffn.outer.weight", overflow))


@fault("half-overflow", "numerics", (2.0**22, 2.0**26, 2.0**30), variants=("decoder-half",))
def half_overflow(script: Script, scale: float) -> None:
    """A loss scale of {level} (healthy: 4096) that is never lowered: steps are skipped."""
    script.controls["loss_scale"] = scale


@fault("half-overflow-late", "numerics", (2.0**22, 2.0**26, 2.0**30), variants=("decoder-half",),
       when=MIDDLE)  # fmt: skip
def half_overflow_late(script: Script, scale: float) -> None:
    """From the label on the loss scale is {level} and stays there."""
    script.set_at(script.label, loss_scale=scale)


@fault("half-underflow", "numerics", (2.0**-4, 2.0**-8, 2.0**-12), variants=("decoder-half",))
def half_underflow(script: Script, scale: float) -> None:
    """A loss scale of {level}: gradients vanish in half precision."""
    script.controls["loss_scale"] = scale


@fault("bit-flip", "numerics", ((25, 1), (25, 100), (30, 1)), variants=BOTH, when=MIDDLE, layer=1)
def bit_flip(script: Script, flips: tuple[int, int]) -> None:
    """At the label (bit, weights) {level} of an FFN matrix of layer 1 flips from 0 to 1."""
    bit, count = flips
    script.at(
        script.label, lambda live: live.edit("layers.1.ffn.inner.weight", flipper(bit, count))
    )


@fault("bit-flip-embedding", "numerics", ((25, 1), (25, 100), (30, 1)), when=MIDDLE)
def bit_flip_embedding(script: Script, flips: tuple[int, int]) -> None:
    """At the label (bit, weights) {level} of the embedding flips from 0 to 1."""
    bit, count = flips
    script.at(script.label, lambda live: live.edit("words.embedding_table", flipper(bit, count)))


def poisoned(batch: Batch, samples: int) -> Batch:
    """The batch with NaN in the mask of its first samples."""
    bias = batch.bias.copy()
    bias[:samples, :, :, 0] = np.nan
    return replace(batch, bias=bias)


def flipper(bit: int, count: int) -> object:
    """Sets a bit in the largest weights that have it clear: in the exponent they grow."""

    def flip(w: Weights) -> Weights:
        flat = np.ascontiguousarray(w, np.float32).reshape(-1)
        words = flat.view(np.uint32)
        mask = np.uint32(1 << bit)
        clear = np.flatnonzero((words & mask) == 0)
        chosen = clear[np.argsort(-np.abs(flat[clear]))[:count]]
        words[chosen] |= mask
        return flat.reshape(w.shape)

    return flip
