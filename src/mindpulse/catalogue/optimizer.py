"""Measures of what the optimizer keeps between steps."""

from __future__ import annotations

from mindpulse.catalogue.gradient import param_norms
from mindpulse.catalogue.measure import Measure

MEASURES = (
    Measure(
        tag="adam_m_norm",
        formula="sqrt of the sum of squares of Adam's first moment m of one parameter",
        unit="",
        axes=("param",),
        reduction="mean",
        source="Kingma, Ba 2015, Adam (arXiv 1412.6980)",
        reference=param_norms,
        family="optimizer",
        place="optimizer",
        within="last",
        level="all",
    ),
    Measure(
        tag="adam_v_norm",
        formula="sqrt of the sum of squares of Adam's second moment v of one parameter",
        unit="",
        axes=("param",),
        reduction="mean",
        source="Kingma, Ba 2015, Adam (arXiv 1412.6980)",
        reference=param_norms,
        family="optimizer",
        place="optimizer",
        within="last",
        level="all",
    ),
)
