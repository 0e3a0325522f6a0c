"""The measures as framework operators: differentiable, and the same in every mode.

`mindpulse.catalogue` holds the formulas and the NumPy references that these are tested against.
Each kind has a maker, called once in plain Python with the tags that are wanted; what it returns
runs inside the training step, takes float32 tensors and returns one float32 tensor.
"""

from __future__ import annotations

from mindpulse.mindspore.measures import attention, ffn, norm, output, router, tensors
from mindpulse.mindspore.measures.attention import MAP_HEADS, four_axes

__all__ = [
    "MAP_HEADS",
    "attention",
    "ffn",
    "four_axes",
    "norm",
    "output",
    "router",
    "tensors",
]
