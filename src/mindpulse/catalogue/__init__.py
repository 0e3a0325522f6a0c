"""The catalogue of measures: one file per family, each measure with formula, source, reference."""

from __future__ import annotations

from mindpulse.catalogue import attention, gradient, loss
from mindpulse.catalogue.measure import Measure, index

MEASURES: dict[str, Measure] = index(loss.MEASURES + attention.MEASURES + gradient.MEASURES)

__all__ = ["MEASURES", "Measure", "index"]
