"""Faults of attention: saturated or uniform heads, masks and positions that are wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.faults.data import HIDDEN_LOGIT, Batch, causal_bias, from_step
from benchmarks.faults.recipes.recipe import MIDDLE, fault
from benchmarks.faults.script import Script
from benchmarks.faults.settings import LAYERS, LENGTH

BOTH = ("decoder", "encoder")


@fault("attention-collapse", "attention", (4, 8, 32), variants=BOTH, when=MIDDLE)
def attention_collapse(script: Script, factor: float) -> None:
    """At the label all query and key weights are multiplied by {level}, once."""
    for name in ("query", "key"):
        script.at(
            script.label,
            lambda live, name=name: live.edit(f"*.attention.{name}.weight", lambda w: w * factor),
        )


@fault("attention-collapse-layer", "attention", (8, 16, 64), when=MIDDLE, layer=1)
def attention_collapse_layer(script: Script, factor: float) -> None:
    """At the label the query and key weights of layer 1 are multiplied by {level}, once."""
    for name in ("query", "key"):
        script.at(
            script.label,
            lambda live, name=name: live.edit(
                f"layers.1.attention.{name}.weight", lambda w: w * factor
            ),
        )


@fault("attention-scale", "attention", (4, 16, 64))
def attention_scale(script: Script, factor: float) -> None:
    """The logits of attention are {level} times too large (4: the division by sqrt(d) left out)."""
    script.controls |= {f"attention_{layer}": float(factor) for layer in range(LAYERS)}


@fault("attention-uniform", "attention", (1, 2, 3), when=MIDDLE, layer=(0, None, None))
def attention_uniform(script: Script, layers: int) -> None:
    """From the label on the first {level} layers look at all keys alike (logits times 0)."""
    script.set_at(script.label, **{f"attention_{layer}": 0.0 for layer in range(layers)})


@fault("mask-leak", "attention", (0.1, 0.3, 0.5))
def mask_leak(script: Script, share: float) -> None:
    """A share {level} of the future keys is visible."""
    leak = script.rng.random((LENGTH, LENGTH)) < share
    _mask(script, lambda bias: np.where(leak, 0.0, bias))


@fault("mask-leak-late", "attention", (1, 2, 8), when=MIDDLE)
def mask_leak_late(script: Script, keys: int) -> None:
    """From the label on each query also sees the next {level} keys."""
    near = np.tril(np.ones((LENGTH, LENGTH), bool), keys)
    _mask(script, lambda bias: np.where(near, 0.0, bias), script.label)


@fault("mask-inverted", "attention", (0.25, 0.5, 1.0))
def mask_inverted(script: Script, share: float) -> None:
    """A share {level} of the samples has the causal mask the wrong way round."""
    rows = script.rng.random(64) < share

    def inverted(batch: Batch, index: int) -> Batch:
        chosen = rows[: len(batch.ids)][:, None, None, None]
        bias = np.where(chosen, HIDDEN_LOGIT - batch.bias, batch.bias)
        return replace(batch, bias=bias.astype(np.float32))

    script.change_data(inverted, since=1)


@fault("padding-visible", "attention", (0.3, 0.6, 1.0), variants=("encoder",))
def padding_visible(script: Script, share: float) -> None:
    """A share {level} of the padding is visible to attention."""
    kept = script.rng.random(LENGTH) >= share
    _mask(script, lambda bias: np.where(kept, bias, 0.0))


@fault("mask-causal", "attention", (0.3, 0.6, 1.0), variants=("encoder",))
def mask_causal(script: Script, share: float) -> None:
    """An encoder of which a share {level} of the samples gets a causal mask."""
    rows = script.rng.random(64) < share
    causal = causal_bias(LENGTH)

    def one_sided(batch: Batch, index: int) -> Batch:
        chosen = rows[: len(batch.ids)][:, None, None, None]
        bias = np.where(chosen, np.minimum(batch.bias, causal), batch.bias)
        return replace(batch, bias=bias.astype(np.float32))

    script.change_data(one_sided, since=1)


@fault("no-positions", "attention", (0.3, 0.1, 0.0), variants=BOTH)
def no_positions(script: Script, factor: float) -> None:
    """The position table is multiplied by {level} (0: left out)."""
    script.controls["positions"] = factor


@fault("positions-shifted", "attention", (1, 4, 16), when=MIDDLE)
def positions_shifted(script: Script, places: int) -> None:
    """From the label on the positions are {level} too high, those at the end begin anew."""
    script.change_data(lambda batch, index: replace(batch, places=np.roll(batch.places, -places)))


def _mask(script: Script, change: object, since: int = 1) -> None:
    """Changes the mask of the data from a step on, and that of the evaluation in the run too."""

    def changed(batch: Batch, index: int) -> Batch:
        return replace(batch, bias=change(batch.bias).astype(np.float32))  # type: ignore[operator]

    script.change_data(changed, since)
    assert script.judged_on is not None
    if since == 1:
        script.judged_on = from_step(script.judged_on, 1, changed)
