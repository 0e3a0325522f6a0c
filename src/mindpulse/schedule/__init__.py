"""When to sample, and how densely: pure, and shared by the training side and its tests."""

from __future__ import annotations

from mindpulse.schedule.budget import Budget
from mindpulse.schedule.density import Density
from mindpulse.schedule.every import Every, whole_steps

__all__ = ["Budget", "Density", "Every", "whole_steps"]
