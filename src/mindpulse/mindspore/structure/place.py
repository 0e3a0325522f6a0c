"""One place in a model where something can be measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PLANTED, SKIPPED, NEVER_RAN = "planted", "skipped", "never ran"


@dataclass(slots=True)
class Place:
    """One place in the model, and what became of it.

    Attributes:
        path: the name of the cell, primitive or function from the root, as MindSpore counts it.
        kind: "attention", "norm", "ffn", "logits", "router", "embedding"; "optimizer",
            "learning_rate", "clip" and "loss" are not places of the model.
        cell: the cell that the probe is planted on; None when nothing can be planted.
        state: "planted", "skipped" or "never ran".
        reason: why it is skipped, or what is measured.
        heads: number of attention heads where an attribute tells it, else 0.
        size: number of classes, experts or inner units; 0 where nothing tells it.
        top_k: experts that each token goes to.
        how: "cell" (its class is exchanged), "primitive" (an attribute of `cell` is exchanged),
            "function" (a function that `cell.construct` calls is exchanged), "fused" (a fused
            attention's row maxima and sums), "mark" (the model calls a `Mark`).
        side: "output" or "input" of the tapped operator: which one holds the measured node.
        owner: the cell that holds the operator.
        attribute: the operator's name in the owner.
    """

    path: str
    kind: str
    cell: Any = field(repr=False, default=None)
    state: str = PLANTED
    reason: str = ""
    heads: int = 0
    size: int = 0
    top_k: int = 1
    how: str = "cell"
    side: str = "output"
    owner: Any = field(repr=False, default=None)
    attribute: str = ""

    def skip(self, reason: str) -> Place:
        """The same place, not taken, and why."""
        self.state, self.reason, self.cell = SKIPPED, reason, None
        return self
