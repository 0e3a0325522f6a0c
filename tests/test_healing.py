"""The scores of the healing benchmark, on losses that are known."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

from healing_score import Trial, harm, healing, sign_flip_p, smoothed, steps_to, target_of

STEPS = 100
FALLING = tuple(np.linspace(5.0, 1.0, STEPS))


def trial(case: str, seed: int, act: bool, losses: tuple[float, ...], final: float,
          fault: bool = True) -> Trial:  # fmt: skip
    return Trial(case, fault, seed, act, losses, final, ("scale_lr",) if act and fault else ())


def test_a_single_good_step_is_no_arrival() -> None:
    lucky = (5.0,) * 30 + (0.0,) + (5.0,) * 30
    assert steps_to(lucky, 1.0) is None
    assert smoothed((math.nan, 1.0, 1.0)).tolist() == [math.inf, math.inf, 1.0]
    late = steps_to(FALLING, 3.0)
    assert late is not None
    assert 50 < late < 60
    assert steps_to(FALLING, 3.0, since=70) == 70


def test_the_target_is_that_of_the_healthy_runs() -> None:
    healthy = [trial("plain", seed, False, FALLING, 1.0, fault=False) for seed in range(3)]
    assert target_of(healthy) == pytest.approx(np.median(FALLING[70:80]))


def test_a_finished_run_where_none_finished_and_one_that_is_quicker() -> None:
    stuck, quick = (5.0,) * STEPS, tuple(np.linspace(5.0, 1.0, 50)) + (1.0,) * 50
    trials = [
        trial("exploded", 0, False, stuck, 5.0), trial("exploded", 0, True, FALLING, 1.0),
        trial("slow", 0, False, FALLING, 1.0), trial("slow", 0, True, quick, 1.0),
        trial("hopeless", 0, False, stuck, 5.0), trial("hopeless", 0, True, stuck, 5.0),
        trial("finished", 0, False, FALLING, math.nan), trial("finished", 0, True, stuck, 5.0),
        trial("worse", 0, False, FALLING, 1.0), trial("worse", 0, True, stuck, 5.0),
    ]  # fmt: skip
    found = {each.case: each for each in healing(trials, 2.0, STEPS)}
    assert found["exploded"].saved == 1.0
    assert found["exploded"].reached == (0, 1)
    assert found["exploded"].actions == {"scale_lr": 1}
    assert found["slow"].saved == pytest.approx(1 - found["slow"].steps[1] / found["slow"].steps[0])
    assert 0.4 < found["slow"].saved < 0.5
    assert found["hopeless"].saved == 0.0
    assert found["finished"].final_losses == (math.inf, 5.0)
    assert (found["finished"].saved, found["finished"].reached) == (1.0, (0, 0))
    assert found["worse"].saved < 0


def test_a_run_without_its_twin_does_not_count() -> None:
    assert healing([trial("x", 0, False, FALLING, 1.0)], 2.0, STEPS) == []


def pairs(case: str, differences: list[float]) -> list[Trial]:
    return [
        trial(case, seed, act, FALLING, 1.0 + (difference if act else 0.0), fault=False)
        for seed, difference in enumerate(differences)
        for act in (False, True)
    ]


def test_harm_is_seen_where_it_is_and_not_where_it_is_not() -> None:
    same = harm(pairs("plain", [0.0] * 20))
    assert (same.p_value, same.worse, same.pairs) == (1.0, (), 20)
    hurt = harm(pairs("warm-up", [0.1, 0.2, 0.1, 0.3, 0.1, 0.2]) + pairs("plain", [0.0] * 20))
    assert hurt.worse == ("warm-up",)
    assert hurt.p_value == pytest.approx(1 / 64)
    noise = harm(pairs("plain", [0.1, -0.1, 0.2, -0.2, 0.05, -0.05]))
    assert noise.p_value > 0.3
    assert noise.worse == ()


def test_a_healthy_run_that_was_stopped_counts_as_all_lost() -> None:
    lost = [
        trial("plain", seed, act, FALLING, math.nan if act else 1.0, fault=False)
        for seed in range(6)
        for act in (False, True)
    ]
    found = harm(lost)
    assert found.worse == ("plain",)
    assert found.mean_difference == 5.0


def test_many_pairs_are_drawn_at_random() -> None:
    rng = np.random.default_rng(1)
    assert sign_flip_p(list(rng.normal(0.5, 1.0, 50))) < 0.01
    assert sign_flip_p(list(rng.normal(-0.5, 1.0, 50))) > 0.9
