"""What acting brought: steps to a target loss, final loss, and whether a healthy run was harmed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

SMOOTH = 10  # steps in the running median of the training loss
TARGET_SHARE = 0.8  # the target is what the healthy runs have reached at this share of their steps
MOST_DRAWS = 20_000
SURE = 0.05


@dataclass(frozen=True)
class Trial:
    """One training.

    Attributes:
        case: name of the fault or of the control.
        losses: training loss of each step that was made.
        final_loss: clean held-out loss at the end, NaN where it is none.
        actions: verbs that all ranks carried out, undone ones included.
    """

    case: str
    fault: bool
    seed: int
    act: bool
    losses: tuple[float, ...]
    final_loss: float
    actions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Healing:
    """A fault with and without acting, over its seeds.

    Attributes:
        saved: share of the steps to the target that acting saves, the median over seeds; 1.0 where
            a run got there, or ended with a loss at all, with it and not without.
        reached: runs that got there, (without, with).
    """

    case: str
    seeds: int
    saved: float
    reached: tuple[int, int]
    steps: tuple[float, float]
    final_losses: tuple[float, float]
    actions: Mapping[str, int]


@dataclass(frozen=True)
class Harm:
    """Healthy runs with and without acting.

    Attributes:
        touched: runs in which anything was changed.
        worse: controls whose runs are significantly worse with acting.
        p_value: one-sided, that acting does no harm, over all pairs.
    """

    pairs: int
    touched: int
    mean_difference: float
    p_value: float
    worse: tuple[str, ...]


def smoothed(losses: Sequence[float], width: int = SMOOTH) -> np.ndarray:
    """Median of the last `width` losses at each step; what is not finite counts as infinite."""
    values = np.array(losses, np.float64)
    values[~np.isfinite(values)] = np.inf
    return np.array([np.median(values[max(0, i - width + 1) : i + 1]) for i in range(len(values))])


def steps_to(losses: Sequence[float], target: float, since: int = 1) -> int | None:
    """The first step (1-based, from `since` on) at which the smoothed loss is at the target.

    Example:
        >>> steps_to([3.0, 2.0, 1.0, 1.0, 1.0], 1.0)
        5
    """
    found = np.flatnonzero(smoothed(losses)[since - 1 :] <= target)
    return since + int(found[0]) if len(found) else None


def target_of(healthy: Iterable[Trial]) -> float:
    """The loss that half of the healthy runs have reached at four fifths of their steps."""
    reached = [
        float(smoothed(trial.losses)[int(TARGET_SHARE * len(trial.losses)) - 1])
        for trial in healthy
    ]
    return median(reached)


def healing(trials: Sequence[Trial], target: float, steps: int) -> list[Healing]:
    """Each fault; a run that did not get there counts with one step more than it had.

    Args:
        steps: that a run may make.
    """
    found = []
    for case, pairs in _pairs(trials, fault=True).items():
        without = [_steps(off, target) for off, _ in pairs]
        with_it = [_steps(on, target) for _, on in pairs]
        counts: dict[str, int] = defaultdict(int)
        for _, on in pairs:
            for verb in on.actions:
                counts[verb] += 1
        found.append(
            Healing(
                case,
                len(pairs),
                median(_saved(off, on, target, steps) for off, on in pairs),
                (_reached(without), _reached(with_it)),
                (median(_or(without, steps)), median(_or(with_it, steps))),
                (_middle(off.final_loss for off, _ in pairs),
                 _middle(on.final_loss for _, on in pairs)),
                dict(counts),
            )
        )  # fmt: skip
    return found


def _steps(trial: Trial, target: float) -> int | None:
    """Steps to the target; None for a run that ended without a loss, whatever it had before."""
    return steps_to(trial.losses, target) if math.isfinite(trial.final_loss) else None


def _saved(off: Trial, on: Trial, target: float, steps: int) -> float:
    if math.isfinite(on.final_loss) > math.isfinite(off.final_loss):
        return 1.0
    without, with_it = _steps(off, target), _steps(on, target)
    if without is None and with_it is not None:
        return 1.0
    if with_it is None:
        return 0.0 if without is None else 1.0 - (steps + 1) / without
    return 1.0 - with_it / (without or steps + 1)


def _or(found: Sequence[int | None], steps: int) -> list[int]:
    return [steps + 1 if step is None else step for step in found]


def _reached(found: Sequence[int | None]) -> int:
    return sum(step is not None for step in found)


def _middle(losses: Iterable[float]) -> float:
    return median(loss if math.isfinite(loss) else math.inf for loss in losses)


def harm(trials: Sequence[Trial]) -> Harm:
    """Whether acting made healthy runs worse, by final loss; pairs of the same seed."""
    by_case = _pairs(trials, fault=False)
    pairs = [pair for found in by_case.values() for pair in found]
    differences = {case: _differences(found) for case, found in by_case.items()}
    together = [x for found in differences.values() for x in found]
    worse = tuple(c for c, d in differences.items() if sum(d) > 0 and sign_flip_p(d) < SURE)
    return Harm(
        len(pairs),
        sum(bool(on.actions) for _, on in pairs),
        float(np.mean(together)) if together else 0.0,
        sign_flip_p(together) if together else 1.0,
        worse,
    )


def _differences(pairs: Iterable[tuple[Trial, Trial]]) -> list[float]:
    found = []
    for off, on in pairs:
        if math.isfinite(on.final_loss) and math.isfinite(off.final_loss):
            found.append(on.final_loss - off.final_loss)
        else:  # a healthy run that ends without a loss is as bad as losing all that was learnt
            found.append(0.0 if not math.isfinite(off.final_loss) else max(1.0, off.losses[0]))
    return found


def sign_flip_p(differences: Sequence[float]) -> float:
    """One-sided p-value that paired differences are symmetric about 0 and not above it.

    Exact up to 14 pairs that differ, else 20,000 draws with the observed one counted. Pairs without
    a difference say nothing and are left out.

    Example:
        >>> sign_flip_p([1.0, 2.0, 1.5]), sign_flip_p([0.0, 0.0])
        (0.125, 1.0)
    """
    values = np.array([x for x in differences if x != 0.0])
    count = len(values)
    if not count:
        return 1.0
    if 2**count <= MOST_DRAWS:
        signs = 1 - 2 * ((np.arange(2**count)[:, None] >> np.arange(count)) & 1)
        return float(((signs * values).sum(1) >= values.sum() - 1e-12).mean())
    signs = np.random.default_rng(0).choice((-1, 1), (MOST_DRAWS, count))
    beyond = ((signs * values).sum(1) >= values.sum() - 1e-12).sum()
    return float((1 + beyond) / (1 + MOST_DRAWS))


def _pairs(trials: Sequence[Trial], *, fault: bool) -> dict[str, list[tuple[Trial, Trial]]]:
    """(without, with) of each seed, by case."""
    found: dict[str, dict[int, dict[bool, Trial]]] = defaultdict(lambda: defaultdict(dict))
    for trial in trials:
        if trial.fault == fault:
            found[trial.case][trial.seed][trial.act] = trial
    pairs = {
        case: [(both[False], both[True]) for both in seeds.values() if len(both) == 2]
        for case, seeds in found.items()
    }
    return {case: both for case, both in pairs.items() if both}
