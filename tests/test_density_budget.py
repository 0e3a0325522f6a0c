"""The budget: simulated trainings with a known cost, noisy as real machines are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from mindpulse.errors import UsageError
from mindpulse.schedule import Budget, Density
from mindpulse.schedule.budget import MAX_FACTOR

BASE_S = 0.1


@dataclass
class Training:
    """Feeds a budget with steps of a training that obeys it; notes each change of the factor."""

    budget: Budget
    interval: int = 10
    excess: float = 0.5
    noise: float = 0.05
    host_s: float = 0.0
    seed: int = 0
    base: Callable[[int], float] = lambda step: BASE_S
    changes: list[tuple[int, int]] = field(default_factory=list)

    def run(self, steps: int, first: int = 1) -> Training:
        rng = np.random.default_rng(self.seed)
        slots = {"cheap": ["norm"], "dear": ["focus"]}
        density = Density(slots, {"norm": 1, "focus": 10})
        density.set("focus", self.interval, first)
        density.stretch(self.budget.factor, first)
        for step in range(first, first + steps):
            tier = density.choose(step)
            seconds = self.base(step) * (1 + tier * self.excess)
            seconds *= rng.lognormal(0.0, self.noise) * (rng.choice([1.0, 8.0], p=[0.98, 0.02]))
            host = self.host_s * rng.uniform(0.5, 1.5)
            if self.budget.add(tier, seconds + host, host):
                density.stretch(self.budget.factor, step + 1)
                self.changes.append((step, self.budget.factor))
        return self


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("excess", "bound", "factors"),
    [
        (0.05, 0.02, {1}),  # 0.5 %
        (0.5, 0.02, {4}),  # 5 %
        (0.5, 0.03, {2}),
        (3.0, 0.02, {16}),  # 30 %
        (0.2, 0.02, {1, 2}),  # just at the bound: either will do
    ],
)
def test_intervals_grow_as_far_as_needed_and_no_further(seed, excess, bound, factors) -> None:
    training = Training(Budget(bound), excess=excess, seed=seed).run(6000)
    assert training.budget.factor in factors
    assert len(training.changes) <= 3
    share = training.budget.share
    assert share is not None
    assert share == pytest.approx(excess / 10 / training.budget.factor, abs=0.006)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("noise", [0.05, 0.2, 0.4])
def test_noise_alone_changes_nothing_for_long(seed: int, noise: float) -> None:
    training = Training(Budget(0.02), excess=0.0, noise=noise, seed=seed).run(20_000)
    assert training.budget.factor == 1
    assert len(training.changes) <= 2


@pytest.mark.parametrize("seed", range(6))
def test_it_does_not_flap(seed: int) -> None:
    training = Training(Budget(0.02), excess=0.45, noise=0.2, seed=seed).run(40_000)
    assert training.budget.factor in (2, 4)
    assert len(training.changes) <= 4


def test_nothing_is_judged_before_eight_dear_steps() -> None:
    training = Training(Budget(0.001), excess=5.0, noise=0.0).run(80)
    assert training.changes == []
    assert training.budget.share is None
    training = Training(Budget(0.001), excess=5.0, noise=0.0).run(120)
    assert [step for step, _ in training.changes] == [81]  # the first dear step begins the count


def test_intervals_shrink_again_but_never_below_the_users() -> None:
    training = Training(Budget(0.02), excess=0.5).run(3000)
    assert training.budget.factor == 4
    training.excess = 0.02
    training.changes.clear()
    training.run(30_000, first=3001)
    assert [factor for _, factor in training.changes] == [2, 1]
    assert training.changes[0][0] > 3000 + 32 * 40
    assert training.changes[1][0] > training.changes[0][0] + 32 * 20


def test_a_drift_of_the_step_time_is_no_cost() -> None:
    for slope in (1e-3, -2e-4):
        training = Training(
            Budget(0.02),
            excess=0.05,
            noise=0.02,
            base=lambda step, k=slope: BASE_S * (1 + k * step),
        )
        assert training.run(4000).changes == []


def test_the_factor_ends_at_its_limit() -> None:
    training = Training(Budget(0.001), interval=2, excess=9.0, noise=0.01).run(4000)
    assert training.budget.factor == MAX_FACTOR


def test_where_every_step_is_dear_it_makes_room_for_a_comparison() -> None:
    dear = Training(Budget(0.02), interval=1, excess=0.3, noise=0.02).run(8000)
    assert dear.changes[0][1] == 2
    assert dear.budget.factor == 16
    light = Training(Budget(0.02), interval=1, excess=0.002, noise=0.01).run(20_000)
    assert [factor for _, factor in light.changes] == [2, 1]


def test_the_host_part_counts_and_thinning_is_not_blamed_for_it() -> None:
    part = Training(Budget(0.02), excess=0.1, host_s=0.0015, noise=0.02).run(4000)
    assert part.budget.host_share == pytest.approx(0.0015 / (0.1 * 1.14), rel=0.15)
    assert part.budget.factor == 2  # 1 % + 1.3 % is too much, 0.5 % + 1.3 % is not
    alone = Training(Budget(0.02), excess=0.04, host_s=0.01, noise=0.02).run(4000)
    assert alone.budget.host_share > 0.05
    assert alone.budget.factor == 1


def test_one_long_stall_of_the_host_is_forgiven() -> None:
    budget = Budget(0.02)
    for step in range(1, 3000):
        dear = step % 10 == 1
        host = 5.0 if step == 700 else 1e-4
        assert not budget.add(int(dear), 0.1 * (1.05 if dear else 1.0) + host, host)
    assert budget.host_share == pytest.approx(1e-3, rel=0.01)


def test_a_burst_tells_the_cost_but_not_how_often_it_comes() -> None:
    budget = Budget(0.02)
    for step in range(1, 400):
        dear = step % 100 == 1
        burst = 150 <= step < 250
        seconds = 0.1 * (1.5 if dear or burst else 1.0)
        assert not budget.add(int(dear or burst), seconds, burst=burst)
    for step in range(400, 2000):
        dear = step % 100 == 1
        assert not budget.add(int(dear), 0.1 * (1.5 if dear else 1.0))
    assert budget.share == pytest.approx(0.005, rel=0.1)


def feed(budget: Budget, tiers: list[int], excess: float, base: float = BASE_S, **more) -> int:
    """Feeds steps without noise; returns how often the factor changed."""
    return sum(budget.add(tier, base * (1 + excess * (tier > 0)), **more) for tier in tiers)


TENTH = [0] * 9 + [1]


def test_a_burst_is_not_a_long_time() -> None:
    budget = Budget(0.02)
    assert feed(budget, TENTH * 9, 0.5) == 1
    assert budget.factor == 4
    assert budget.share == pytest.approx(0.05)  # what led to it
    assert feed(budget, [1] * 60, 0.01, burst=True) == 0
    feed(budget, [0] * 20, 0.01)
    assert feed(budget, ([0] * 39 + [1]) * 20, 0.01) == 0
    feed(budget, [1] * 200, 0.01, burst=True)
    assert budget.factor == 4
    assert feed(budget, ([0] * 39 + [1]) * 40, 0.01) == 1


def test_dear_steps_far_from_any_cheap_one_are_not_compared() -> None:
    budget = Budget(0.02)
    feed(budget, TENTH * 9, 0.1)
    feed(budget, [1] * 64, 0.1, burst=True)
    feed(budget, [1] * 300, 0.1, base=2 * BASE_S, burst=True)
    feed(budget, TENTH * 9, 0.1, base=2 * BASE_S)
    assert budget.factor == 1
    assert budget.share == pytest.approx(0.01)


def test_how_often_dear_steps_come_is_counted_from_one_to_the_next() -> None:
    budget = Budget(0.02)
    feed(budget, [0] * 37 + TENTH * 8, 0.1)
    assert budget.share is None
    feed(budget, TENTH, 0.1)
    assert budget.share == pytest.approx(0.01)


def dear_steps_to_change(budget: Budget, excess: float) -> int:
    """Feeds dear steps as the factor wants them until it changes; returns how many."""
    for count in range(1, 2000):
        if feed(budget, [0] * (10 * budget.factor - 1) + [1], excess):
            return count
    raise AssertionError("the factor never changed")


def test_a_shrinking_that_had_to_be_undone_needs_more_patience_the_next_time() -> None:
    budget, calm = Budget(0.02), []
    for _ in range(4):
        dear_steps_to_change(budget, 0.25)
        assert budget.factor == 2
        calm.append(dear_steps_to_change(budget, 0.01))
        assert budget.factor == 1
    assert calm[1] > 1.5 * calm[0]
    assert calm[3] > 1.5 * calm[2] > 2.25 * calm[1]


def test_calm_has_to_last_without_a_break() -> None:
    budget, busy_s = Budget(0.02), 0.0015
    feed(budget, TENTH * 9, 0.25, host_s=busy_s)
    assert budget.factor == 8
    eightieth = [0] * 79 + [1]
    assert feed(budget, eightieth * 70, 0.01, host_s=busy_s) == 0
    for _ in range(6):
        assert feed(budget, eightieth * 20, 0.01) == 0
        assert feed(budget, eightieth * 20, 0.01, host_s=busy_s) == 0
    assert feed(budget, eightieth * 45, 0.01) == 1


def test_three_tiers_are_added_up() -> None:
    budget = Budget(0.5)
    for step in range(1, 3000):
        tier = 2 if step % 50 == 1 else int(step % 10 == 1)
        budget.add(tier, 0.1 * (1.0, 1.2, 2.0)[tier])
    assert budget.share == pytest.approx((4 * 0.2 + 1.0) / 50, rel=0.05)


def test_clocks_that_go_wrong_are_passed_over() -> None:
    budget = Budget(0.02)
    for seconds, host in [(0.0, 0.0), (-1.0, 0.0), (float("nan"), 0.0), (1.0, -1.0), (1.0, 2.0)]:
        assert not budget.add(1, seconds, host)
    assert (budget.share, budget.host_share, budget.factor) == (None, 0.0, 1)


@pytest.mark.parametrize("wrong", [0, 0.0, -0.1, 1.01, 2, "0.02", None, True, float("nan")])
def test_a_bound_that_is_no_share_is_refused(wrong: object) -> None:
    with pytest.raises(UsageError, match=f"max_overhead {wrong!r}: use a"):
        Budget(wrong)  # type: ignore[arg-type]
    assert Budget(1).max_overhead == 1.0
