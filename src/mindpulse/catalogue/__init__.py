"""The catalogue of measures: one file per family, each measure with formula, source, reference."""

from __future__ import annotations

from mindpulse.catalogue import (
    activation,
    attention,
    gradient,
    hardware,
    loss,
    memory,
    moe,
    optimizer,
    output,
    weight,
)
from mindpulse.catalogue.measure import Measure, index

MEASURES: dict[str, Measure] = index(
    loss.MEASURES
    + attention.MEASURES
    + gradient.MEASURES
    + weight.MEASURES
    + activation.MEASURES
    + optimizer.MEASURES
    + output.MEASURES
    + moe.MEASURES
    + memory.MEASURES
    + hardware.MEASURES
)
FAMILIES: tuple[str, ...] = tuple(dict.fromkeys(m.family for m in MEASURES.values()))

__all__ = ["FAMILIES", "MEASURES", "Measure", "index"]
