"""What a comparison is asked and what it answers, as data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindpulse.compare.curve import Curve
from mindpulse.compare.facts import RunFacts
from mindpulse.compare.grid import Align, Axis
from mindpulse.compare.parting import Parting
from mindpulse.compare.scale import Goal, Scale
from mindpulse.compare.verdict import Verdict

LIMIT = 0.15
TOLERANCE = 0.02
BAND_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Settings:
    """How runs are compared.

    Attributes:
        align: by step, or by the share of each run's own steps.
        goal: which way is better.
        limit: a distance below it is the same convergence behaviour.
        tolerance: a difference of levels that does not matter, as a share of the unit.
        band: how far warping may shift, as a share of the axis.
        target: the level whose first reach is told; None takes the best that both reached.
    """

    align: Align = "step"
    goal: Goal = "min"
    limit: float = LIMIT
    tolerance: float = TOLERANCE
    band: float = BAND_SHARE
    target: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """A run as it comes into a comparison: its curve, and what else it recorded about itself."""

    curve: Curve
    step_time_s: float | None = None
    tokens: Curve | None = None


@dataclass(frozen=True, slots=True)
class SeedNoise:
    """How B lies among the seeds of A.

    Attributes:
        distances: of each seed to the mean of the other seeds.
        rank_p: (1 + seeds that lie at least as far out as B) / (seeds + 1), each of them and B
            measured against the mean of all others.
        least_p: the smallest value that `rank_p` can have with so many seeds.
    """

    distances: tuple[float, ...]
    rank_p: float
    least_p: float


@dataclass(frozen=True, slots=True, eq=False)
class Courses:
    """What was compared, point by point; all arrays (POINTS,) in the unit of the values.

    Attributes:
        a: the course of A, or the mean of its seeds.
        seeds: (K, POINTS) the courses of A and its seeds; K = 1 without seeds.
        difference: b - a.
        bound: what a difference may be by chance, or without mattering.
        distance: warped, as a share of the unit; `unwarped` the mean absolute difference.
        levels: of A (its seeds) and B over the last tenth, as they are.
        capped: whether rows lie beyond the caps of the scale, and so count as less.
        end_difference: b - a over the last tenth; `end_bound` what it may be by chance.
        apart: whether they lie apart beyond chance anywhere, whatever the tolerance.
        lag: by how much B is later than A for the same value, in units of the axis.
        matches: the position on the axis where B matches each position of A.
        rows: of each curve inside the common range.
    """

    axis: Axis
    scale: Scale
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    seeds: NDArray[np.float64]
    difference: NDArray[np.float64]
    bound: NDArray[np.float64]
    distance: float
    unwarped: float
    levels: tuple[float, float]
    capped: bool
    end_difference: float
    end_bound: float
    parting: Parting
    apart: bool
    lag: float
    matches: NDArray[np.float64]
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """The whole result. `courses` is None where nothing could be compared."""

    settings: Settings
    a: RunFacts
    b: RunFacts
    verdict: Verdict
    target: float | None
    courses: Courses | None = None
    seeds: SeedNoise | None = None
    curves: tuple[Curve, ...] = ()
