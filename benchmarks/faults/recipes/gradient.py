"""Faults of what the optimizer gets and does: gradients, updates, weights and units."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.data import CHARACTERS, SPECIAL, train_part
from benchmarks.faults.recipes.recipe import MIDDLE, fault
from benchmarks.faults.script import Script, Weights

BOTH = ("decoder", "encoder")


@fault("residual-gain", "gradient", (1.5, 3, 8))
def residual_gain(script: Script, factor: float) -> None:
    """The residual path is multiplied by {level} in each block, and nothing is clipped."""
    script.controls |= {"residual": float(factor), "clip": 1e9}


@fault("residual-lost", "gradient", (0.5, 0.2, 0.0), variants=("decoder", "decoder-post-norm"))
def residual_lost(script: Script, factor: float) -> None:
    """The residual path is multiplied by {level} in each block: gradients vanish on their way."""
    script.controls["residual"] = factor


@fault("exploding", "gradient", (3, 6, 12), when=MIDDLE)
def exploding(script: Script, factor: float) -> None:
    """At the label all weights of the layers times {level}, without clipping, rate times 3."""
    script.controls["clip"] = 1e9
    script.scale_rate(script.label, 3)
    script.at(script.label, lambda live: live.edit("layers.*.weight", lambda w: w * factor))


@fault("no-clip", "gradient", (5, 10, 20))
def no_clip(script: Script, factor: float) -> None:
    """No clipping at a learning rate that needs it: times {level}."""
    script.controls["clip"] = 1e9
    script.scale_rate(1, factor)


@fault("clip-always", "gradient", (1e-4, 1e-6, 1e-8))
def clip_always(script: Script, limit: float) -> None:
    """Gradients are clipped to a norm of {level} (healthy: 1), with Adam's eps at 1e-8."""
    script.controls["clip"] = limit


@fault("large-eps", "gradient", (1e-3, 1e-1, 10.0))
def large_eps(script: Script, eps: float) -> None:
    """Adam's eps is {level} (healthy: 1e-8)."""
    script.controls["eps"] = eps


@fault("beta2-small", "gradient", (0.3, 0.1, 0.0))
def beta2_small(script: Script, beta2: float) -> None:
    """Adam's beta2 is {level} (healthy: 0.98), at three times the rate."""
    script.controls["beta2"] = beta2
    script.scale_rate(1, 3)


@fault("weight-decay", "gradient", (3, 10, 100))
def weight_decay(script: Script, decay: float) -> None:
    """Weight decay {level} (healthy: 0.01)."""
    script.controls["weight_decay"] = float(decay)


@fault(
    "no-zero-grad", "gradient", (0.9, 0.98, 1.0), variants=("decoder-accumulating",), when=MIDDLE
)
def no_zero_grad(script: Script, keep: float) -> None:
    """From the label on a share {level} of the gradients stays for the next step."""
    script.set_at(script.label, keep=keep)


@fault("frozen-layer", "gradient", (2, 1, 0), variants=BOTH, layer=(2, 1, 0))
def frozen_layer(script: Script, layer: int) -> None:
    """Layer {level} gets no gradient, from the start."""
    script.at(1, lambda live: live.gate(f"layers.{layer}.*", 0.0))


@fault("frozen-late", "gradient", ("layers.1.*", "layers.*", "*"), when=MIDDLE,
       layer=(1, None, None))  # fmt: skip
def frozen_late(script: Script, pattern: str) -> None:
    """From the label on the weights {level} get no gradient."""
    script.at(script.label, lambda live: live.gate(pattern, 0.0))


@fault("weights-held", "gradient", ("layers.2.*", "layers.*", "*"),
       layer=(2, None, None))  # fmt: skip
def weights_held(script: Script, pattern: str) -> None:
    """The optimizer does not change the weights {level}, though they get gradients."""
    script.at(1, lambda live: live.hold(pattern, 0.0))


@fault("init-large", "gradient", (5, 12, 25), variants=BOTH)
def init_large(script: Script, factor: float) -> None:
    """All matrices begin {level} times as large (25: standard deviation 1)."""
    script.initial.append(lambda name, w, rng: w * factor if w.ndim > 1 else w)


@fault("init-zero", "gradient", ("layers.1.", "layers.", ""), layer=(1, None, None))
def init_zero(script: Script, prefix: str) -> None:
    """All weights whose names begin with "{level}" begin at 0, gammas too."""
    script.initial.append(lambda name, w, rng: w * 0 if name.startswith(prefix) else w)


@fault("dying-relu", "gradient", (1, 3, 10), variants=("decoder-relu",), when=MIDDLE)
def dying_relu(script: Script, shift: float) -> None:
    """At the label {level} is taken from the biases before each ReLU."""
    script.at(script.label, lambda live: live.edit("*.ffn.inner.bias", lambda b: b - shift))


@fault("dead-units", "gradient", (0.5, 0.9, 1.0), variants=("decoder-relu",), layer=1)
def dead_units(script: Script, share: float) -> None:
    """A share {level} of the units of layer 1 begins dead: a bias of -20 before the ReLU."""

    def dead(name: str, w: Weights, rng: np.random.Generator) -> Weights:
        if name == "layers.1.ffn.inner.bias":
            return np.where(rng.random(w.shape) < share, -20.0, w).astype(np.float32)
        return w

    script.initial.append(dead)


@fault("embedding-rows", "gradient", (10, 30, 100), when=MIDDLE)
def embedding_rows(script: Script, factor: float) -> None:
    """At the label the embeddings of the 20 rarest characters are multiplied by {level}."""
    counts = np.bincount(train_part("reference"), minlength=SPECIAL + len(CHARACTERS))
    rare = np.argsort(counts[SPECIAL:])[:20] + SPECIAL

    def blow_up(table: Weights) -> Weights:
        table[rare] *= factor
        return table

    script.at(script.label, lambda live: live.edit("words.embedding_table", blow_up))


@fault("experts-collapse", "gradient", (3, 10, 30), variants=("decoder-experts",), when=MIDDLE)
def experts_collapse(script: Script, shift: float) -> None:
    """At the label the router's bias of one expert grows by {level}, unbalanced from then on."""

    def prefer(bias: Weights) -> Weights:
        bias[0] += shift
        return bias

    script.set_at(script.label, balance=0.0)
    script.at(script.label, lambda live: live.edit("*.ffn.gate.bias", prefer))


@fault("experts-alike", "gradient", (0.3, 0.1, 0.0), variants=("decoder-experts",))
def experts_alike(script: Script, factor: float) -> None:
    """The router begins with one expert preferred by 20 and learns at {level} times the rate."""

    def prefer(name: str, w: Weights, rng: np.random.Generator) -> Weights:
        if name.endswith("ffn.gate.bias"):
            w = w.copy()
            w[0] = 20.0
        return w

    script.controls["balance"] = 0.0
    script.initial.append(prefer)
    script.at(1, lambda live: live.hold("*.ffn.gate.*", factor))
