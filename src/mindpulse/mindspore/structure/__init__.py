"""Finds the places worth measuring in a model, by structure and not by one model's names.

A model is first laid out as a `tree` of cells; `softmaxes`, `norms`, `feedforward` and `outputs`
each find one kind of place in it, `roles` tells attention from routers, `calls` finds functions
that a construct calls, and `find` puts all of it together.
"""

from mindpulse.mindspore.structure.find import find_places
from mindpulse.mindspore.structure.optimizers import (
    find_optimizers,
    parameter_names,
)
from mindpulse.mindspore.structure.place import Place
from mindpulse.mindspore.structure.text import table

__all__ = [
    "Place",
    "find_optimizers",
    "find_places",
    "parameter_names",
    "table",
]
