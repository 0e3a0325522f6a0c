"""Sizes, variants and the numbers that go into each step: what needs no MindSpore."""

from __future__ import annotations

from dataclasses import dataclass

LAYERS, HIDDEN, HEADS, LENGTH, BATCH, EXPERTS = 3, 64, 4, 32, 8, 4

# One float32 vector goes into each step; these are the places of its numbers and what is healthy.
HEALTHY: dict[str, float] = {
    "rate": 3e-3,  # learning rate of the step
    "clip": 1.0,  # largest global gradient norm
    "loss_scale": 1.0,
    "beta1": 0.9,
    "beta2": 0.98,
    "eps": 1e-8,
    "weight_decay": 0.01,
    "keep": 0.0,  # share of the gradients of the step before that is added (accumulating cells)
    "apply": 1.0,  # whether the optimizer is called (accumulating cells)
    "positions": 1.0,  # multiplies the position table
    "residual": 1.0,  # multiplies the residual path of each block
    "output": 1.0,  # multiplies the logits
    "z_loss": 1e-4,  # weight of the squared log-partition
    "balance": 1e-2,  # weight of the loss that balances experts
    "reduce": 1.0,  # 1: gradients are averaged over ranks; 0: each rank keeps its own
    "reduced": 1.0,  # multiplies what the all-reduce brought
    **{f"attention_{layer}": 1.0 for layer in range(LAYERS)},  # multiplies the logits of a layer
}
CONTROLS = {name: place for place, name in enumerate(HEALTHY)}


@dataclass(frozen=True)
class Variant:
    """A structure that is compiled by itself.

    Attributes:
        name: as in the index of the recordings.
        kind: "decoder" or "encoder".
        post_norm: LayerNorm after each block, not before it.
        activation: of the feed-forward networks, "gelu" or "relu".
        half: activations and gradients pass through float16; overflowing steps are skipped.
        experts: the feed-forward networks are mixtures.
        accumulates: gradients are kept between steps.
        ranks: copies of the model that train in step.
        qk_norm: LayerNorm on queries and keys.
        frozen: beginnings of the names of weights that are not trained, by intent.
    """

    name: str
    kind: str = "decoder"
    post_norm: bool = False
    activation: str = "gelu"
    half: bool = False
    experts: bool = False
    accumulates: bool = False
    ranks: int = 1
    qk_norm: bool = False
    frozen: tuple[str, ...] = ()


VARIANTS: dict[str, Variant] = {
    variant.name: variant
    for variant in (
        Variant("decoder"),
        Variant("encoder", "encoder"),
        Variant("decoder-post-norm", post_norm=True),
        Variant("encoder-post-norm", "encoder", post_norm=True),
        Variant("decoder-relu", activation="relu"),
        Variant("decoder-half", half=True),
        Variant("decoder-experts", experts=True),
        Variant("decoder-accumulating", accumulates=True),
        Variant("decoder-ranks", ranks=2),
        Variant("decoder-qk-norm", qk_norm=True),
        Variant("decoder-frozen", frozen=("layers.0.", "places.")),
    )
}
