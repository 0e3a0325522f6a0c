"""All recipes: what is done to a training, in which severities, and what it is called."""

from __future__ import annotations

from benchmarks.faults import hard_negatives
from benchmarks.faults.recipes import attention, gradient, loss, numerics, system
from benchmarks.faults.recipes.recipe import RECIPES, Recipe

__all__ = ["RECIPES", "Recipe", "attention", "gradient", "hard_negatives", "loss", "numerics"]
__all__ += ["system"]
