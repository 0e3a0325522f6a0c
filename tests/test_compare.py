"""Comparisons of curves whose truth is known: seeds, slower, shifted, stretched, diverged, NaN."""

from __future__ import annotations

import doctest
import json
import pkgutil
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import mindpulse.compare
from mindpulse.cli.comparison.page import render
from mindpulse.cli.comparison.words import tell
from mindpulse.compare import Comparison, Curve, Settings, Side, compare, curve_of, warped_cost
from mindpulse.compare.as_json import comparison_object, ratios
from mindpulse.compare.differences import Differences
from mindpulse.compare.facts import clock_step_time, training_seconds
from mindpulse.compare.grid import POINTS, common_axis, course
from mindpulse.compare.noise import bound_by_seeds, own_noise, prediction_factor
from mindpulse.compare.parting import find_parting
from mindpulse.compare.result import Courses
from mindpulse.compare.scale import goal_of
from mindpulse.jsonlines import plain

NOTHING = Differences((), 0, (), ())
MODULES = [f"mindpulse.compare.{m.name}" for m in pkgutil.iter_modules(mindpulse.compare.__path__)]
WORDS = ["mindpulse.cli.comparison.words", "mindpulse.cli.comparison.page"]


@pytest.mark.parametrize("name", [*MODULES, *WORDS])
def test_examples_run(name: str) -> None:
    module = import_module(name)
    names = {**vars(module), "np": np}
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder().find(module, globs=names):
        runner.run(example)
    assert runner.failures == 0


def test_the_page_of_the_documentation_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parent.parent / "docs" / "compare.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/compare.md", "exec"), {})
    assert capsys.readouterr().out.startswith("worse B ends worse than A: higher by 1")


def loss(
    steps: NDArray[Any], half_life: float = 120.0, floor: float = 2.0, start: float = 10.0
) -> NDArray[np.float64]:
    """A loss that halves its way to `floor` every `half_life` steps."""
    return floor + (start - floor) * 0.5 ** (steps / half_life)


def noisy(values: NDArray[np.float64], seed: int, sigma: float = 0.2) -> NDArray[np.float64]:
    return values + np.random.default_rng(seed).normal(0, sigma, len(values))


def side(values: Any, steps: Any = None, name: str = "a", step_time: float = 0.5) -> Side:
    values = np.asarray(values, np.float64)
    steps = np.arange(1, len(values) + 1) if steps is None else np.asarray(steps)
    return Side(curve_of(name, steps, 1.7e9 + steps * step_time, values))


STEPS = np.arange(1, 1501)
A = noisy(loss(STEPS), 0)


def against(b: Any, a: Any = A, seeds: tuple[Any, ...] = (), **options: Any) -> Comparison:
    family = [side(values, name="seed").curve for values in seeds]
    return compare(side(a), side(b, name="b"), Settings(**options), family)


def courses(found: Comparison) -> Courses:
    assert found.courses is not None
    return found.courses


# The verdict, for each kind of pair.


@pytest.mark.parametrize("seed", range(1, 9))
def test_another_seed_is_the_same(seed: int) -> None:
    found = against(noisy(loss(STEPS), seed))
    assert found.verdict.state == "same"
    assert courses(found).distance < 0.01
    assert courses(found).parting.spans == ()


def test_a_run_compared_with_itself_has_distance_zero() -> None:
    found = against(A)
    assert (found.verdict.state, courses(found).distance, courses(found).lag) == ("same", 0.0, 0.0)


def test_a_higher_end_is_worse_and_a_lower_end_better() -> None:
    higher = noisy(loss(STEPS, floor=2.5), 1)
    worse, better = against(higher), against(A, a=higher)
    assert (worse.verdict.state, better.verdict.state) == ("worse", "better")
    assert courses(worse).end_difference == pytest.approx(0.5, abs=0.07)
    assert courses(worse).distance == courses(better).distance
    assert worse.verdict.sentence().startswith("B ends worse than A: higher by 0.")


def test_where_more_is_better_the_same_curves_are_judged_the_other_way_round() -> None:
    up, higher = 1 - A / 20, 1 - noisy(loss(STEPS, floor=1.0), 1) / 20
    assert against(higher, a=up, goal="max").verdict.state == "better"
    assert against(higher, a=up, goal="min").verdict.state == "worse"
    assert against(higher, a=up, goal="none").verdict.state == "different"


def test_of_two_runs_that_get_worse_the_one_that_rises_more_is_worse() -> None:
    found = against(noisy(2 + STEPS / 1500, 1, 0.02), a=noisy(2 + STEPS / 3000, 0, 0.02))
    assert found.verdict.state == "worse"


def test_another_way_to_the_same_end_is_different() -> None:
    """A long plateau at the beginning, then as low as A."""
    late = np.where(STEPS < 800, 10.0, loss(STEPS - 800, half_life=60))
    found = against(noisy(late, 1))
    assert found.verdict.state == "different"
    assert courses(found).distance > 0.15
    parting = courses(found).parting
    assert parting.since is None
    assert len(parting.spans) == 1


def test_a_run_that_diverges_is_worse_and_parts_where_it_diverged() -> None:
    broken = np.where(STEPS < 900, A, 40.0)
    found = against(broken)
    assert found.verdict.state == "worse"
    since = courses(found).parting.since
    assert since is not None
    assert courses(found).axis.centres[since] == pytest.approx(900, abs=20)
    assert courses(found).distance < 2  # bounded, whatever the exploding rows are


def test_the_noise_of_a_run_that_explodes_does_not_excuse_it() -> None:
    """Rows between 40 and 400 from step 900 on: their spread is as large as the difference."""
    wild = np.where(STEPS < 900, A, np.random.default_rng(1).uniform(40, 400, len(STEPS)))
    found = against(wild)
    assert found.verdict.state == "worse"
    assert courses(found).scale.unit == pytest.approx(7.4, abs=0.5)
    since = courses(found).parting.since
    assert since is not None
    assert courses(found).axis.centres[since] == pytest.approx(900, abs=20)


def test_a_calm_flat_run_and_a_noisy_one_are_the_same() -> None:
    rng = np.random.default_rng(2)
    found = against(rng.normal(0, 1, 1500), a=rng.normal(0, 0.001, 1500))
    assert (found.verdict.state, found.verdict.reason) == ("same", "same.noise")
    assert courses(found).distance > 0.15


def test_noise_larger_than_the_fall_does_not_hide_a_difference() -> None:
    """As in a fine-tuning: rows of sigma 0.3, a fall of 0.1; B ends 0.06 higher."""
    steps = np.arange(1, 20_001)
    a = noisy(2 - 0.1 * (1 - 0.5 ** (steps / 2000)), 0, 0.3)
    b = noisy(2 - 0.04 * (1 - 0.5 ** (steps / 2000)), 1, 0.3)
    found = against(b, a=a)
    assert found.verdict.state == "worse"
    assert courses(found).end_difference == pytest.approx(0.06, abs=0.02)


def test_one_exploding_row_does_not_decide() -> None:
    spike = noisy(loss(STEPS), 1)
    spike[700] = 1e30
    assert against(spike).verdict.state == "same"
    spike[700] = -1e30
    assert against(spike).verdict.state == "same"


def test_a_run_that_ends_in_nan_is_worse() -> None:
    dead = noisy(loss(STEPS), 1)
    dead[1000:] = np.nan
    found = against(dead)
    assert found.verdict.state == "worse"
    assert (found.b.bad_rows, found.b.first_bad_step, found.b.broken_since) == (500, 1001, 1001)
    assert found.verdict.sentence().startswith(
        "B ends in values that are not finite, from step 1001"
    )
    assert against(A, a=dead).verdict.state == "better"


def test_single_nans_are_counted_and_left_out() -> None:
    holes = noisy(loss(STEPS), 1)
    holes[[3, 700]] = np.nan, np.inf
    found = against(holes)
    assert found.verdict.state == "same"
    assert (found.b.bad_rows, found.b.first_bad_step, found.b.broken_since) == (2, 4, None)


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ((STEPS, A), (STEPS + 5000, A), "unknown.range"),
        ((STEPS, A), (STEPS[:4], A[:4]), "unknown.rows"),
        ((STEPS, A), (STEPS[:0], A[:0]), "unknown.rows"),
        ((STEPS, A), (STEPS, A * np.nan), "unknown.rows"),
        ((STEPS, A), (STEPS + 1498, A), "unknown.range"),
    ],
)
def test_too_little_in_common_is_unknown(a: Any, b: Any, reason: str) -> None:
    found = compare(side(a[1], a[0]), side(b[1], b[0], name="b"), Settings())
    assert (found.verdict.state, found.verdict.reason) == ("unknown", reason)
    assert found.courses is None
    json.dumps(plain(comparison_object(found, None)), allow_nan=False)


def test_two_runs_that_do_not_learn_are_the_same() -> None:
    """Their noise must not be blown up to the whole scale."""
    flat = [noisy(np.full(1500, 1.386), seed, 0.01) for seed in (1, 2)]
    found = against(flat[1], a=flat[0])
    assert found.verdict.state == "same"
    assert courses(found).scale.source == "level"


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_stays_below_the_limit(seed: int) -> None:
    a, b = np.random.default_rng(seed).normal(0, 1, (2, 1500))
    found = against(b, a=a)
    assert courses(found).scale.source == "noise"
    assert courses(found).distance < 0.15
    assert found.verdict.state == "same"


@pytest.mark.parametrize("value", [0.0, 3.0, -2.0])
def test_constant_curves(value: float) -> None:
    found = against(np.full(100, value), a=np.full(100, value))
    assert (found.verdict.state, courses(found).distance) == ("same", 0.0)


ROWS = st.lists(
    st.tuples(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 60), st.floats(width=64)),
    max_size=60,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(ROWS, min_size=2, max_size=4),
    st.sampled_from(["min", "max", "none"]),
    st.sampled_from(["step", "progress"]),
)
def test_any_rows_whatever_give_a_verdict(runs: Any, goal: Any, align: Any) -> None:
    """NaN, infinities, denormals, 1e308, steps twice and out of order; warnings are errors."""
    sides = []
    for rows in runs:
        steps, values = (list(part) for part in zip(*rows, strict=True)) if rows else ([], [])
        times = np.zeros(len(steps))
        sides.append(Side(curve_of("x", np.array(steps, np.int64), times, np.array(values, float))))
    first, second, *seeds = sides
    found = compare(first, second, Settings(align, goal), [seed.curve for seed in seeds])
    told = json.dumps(plain(comparison_object(found, None)), allow_nan=False)
    for word in ('"nan"', '"inf"', '"-inf"'):
        assert word not in told
    for name in ("en", "zh"):
        assert tell(found, NOTHING, ("x", "x"), name).sentence
    for format_ in ("html", "md") if found.courses is None else ("html", "md", "svg"):
        assert render(found, tell(found, NOTHING, ("x", "x"), "en"), format_)


# The number means the same for any pair.

SLOW = noisy(loss(STEPS, half_life=300), 1)


def true_distance() -> tuple[float, float]:
    """Half-lives of 120 and 300 out of 1,500 steps, without any averaging: warped and not.

    On 6,000 points of the formula; start and best level by their definitions.
    """
    where = (np.arange(6000) + 0.5) / 4
    a, b = loss(where, 120), loss(where, 300)
    unit = max(np.median(c[:120]) - np.quantile(c, 0.05) for c in (a, b))
    return warped_cost(a, b, 600) / 6000 / unit, float(np.abs(a - b).mean() / unit)


TRUE_DISTANCE, TRUE_UNWARPED = true_distance()


@settings(max_examples=25, deadline=None)
@given(st.floats(1e-6, 1e6))
def test_the_unit_of_the_values_does_not_matter(factor: float) -> None:
    plain_one, scaled = against(SLOW), against(SLOW * factor, a=A * factor)
    assert courses(scaled).distance == pytest.approx(courses(plain_one).distance, rel=1e-6)
    assert scaled.verdict.state == plain_one.verdict.state


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(50, 400), st.floats(1, 4))
def test_order_of_the_runs_does_not_matter(seed: int, half_life: float, floor: float) -> None:
    b = noisy(loss(STEPS, half_life, floor), seed)
    one, other = courses(against(b)), courses(against(A, a=b))
    assert one.distance == pytest.approx(other.distance, rel=1e-9)
    assert one.parting == other.parting
    assert one.end_difference == pytest.approx(-other.end_difference)


@pytest.mark.parametrize("length", [300, 3000, 30_000, 300_000])
def test_length_does_not_matter(length: int) -> None:
    """The same courses on more steps, the half-life a fixed share of the run."""
    steps = np.arange(1, length + 1)
    a, b = loss(steps, length / 12.5), loss(steps, length / 5)
    assert courses(against(b, a=a)).distance == pytest.approx(TRUE_DISTANCE, abs=0.005)


@pytest.mark.parametrize("every_a", [1, 7, 30])
@pytest.mark.parametrize("every_b", [1, 7, 30])
def test_sampling_does_not_matter(every_a: int, every_b: int) -> None:
    a, b = loss(STEPS, 120), loss(STEPS, 300)
    found = compare(
        side(a[::every_a], STEPS[::every_a]), side(b[::every_b], STEPS[::every_b]), Settings()
    )
    assert courses(found).distance == pytest.approx(TRUE_DISTANCE, abs=0.005)
    assert courses(found).unwarped == pytest.approx(TRUE_UNWARPED, abs=0.01)


def test_noise_hardly_changes_the_distance() -> None:
    clean = courses(against(loss(STEPS, 300), a=loss(STEPS, 120))).distance
    for sigma in (0.1, 0.3, 0.6):
        found = against(noisy(loss(STEPS, 300), 2, sigma), a=noisy(loss(STEPS, 120), 1, sigma))
        assert courses(found).distance == pytest.approx(clean, abs=0.01)


def test_unwarped_distance_is_the_mean_difference_as_a_share_of_the_fall() -> None:
    """By hand: both fall from 10 to 0 in straight lines, B lies 1 above A throughout."""
    line = np.linspace(10, 0, 1500)
    found = courses(against(line + 1, a=line, band=0.0))
    assert found.scale.unit == pytest.approx(10 * (0.99 - 0.05), abs=0.02)  # 1 % and 5 % cut off
    assert found.unwarped == pytest.approx(1 / found.scale.unit, rel=1e-9)
    assert found.distance == pytest.approx(found.unwarped, rel=1e-9)


def test_a_shift_within_the_band_costs_little_and_is_told_as_lag() -> None:
    late = loss(np.maximum(STEPS - 90, 0))
    found = courses(against(late, a=loss(STEPS)))
    assert found.distance < 0.15 * found.unwarped
    assert found.lag == pytest.approx(90, abs=8)
    assert courses(against(loss(STEPS), a=late)).lag == pytest.approx(-90, abs=8)


def test_by_progress_a_stretched_run_is_the_same() -> None:
    steps = np.arange(1, 4501)
    stretched = noisy(loss(steps, half_life=360), 1)
    assert against(stretched).verdict.state == "worse"
    found = against(stretched, align="progress")
    assert found.verdict.state == "same"
    assert courses(found).axis.high == 1.0


# The axis.


def test_only_the_common_range_is_compared() -> None:
    found = compare(side(A), side(A[300:1000], STEPS[300:1000], "b"), Settings())
    axis = courses(found).axis
    assert (axis.low, axis.high) == (301.0, 1000.0)
    assert axis.share == pytest.approx(699 / 1499)
    assert courses(found).rows == (700, 700)
    assert courses(found).distance == 0.0


@pytest.mark.parametrize("every", [1, 3, 100, 300])
def test_a_straight_line_stays_one_at_any_sampling(every: int) -> None:
    steps = np.arange(0, 3001, every)
    dense, sparse = side(np.arange(3001.0), np.arange(3001)), side(steps * 1.0, steps)
    axis = common_axis([dense.curve, sparse.curve], "step")
    assert axis is not None
    inner = slice(10, POINTS - 10)  # the window is cut at the ends
    line = course(axis, sparse.curve)
    assert np.abs(line - axis.centres)[inner].max() < 1.5


def test_rows_out_of_order_and_twice_count_once() -> None:
    rng = np.random.default_rng(5)
    order = rng.permutation(len(STEPS))
    steps, values = np.r_[STEPS[::2], STEPS[order]], np.r_[A[::2] + 50, A[order]]
    curve = curve_of("mixed", steps, steps * 1.0, values)
    assert curve.steps.tolist() == STEPS.tolist()
    assert curve.values.tolist() == A.tolist()


def test_steps_up_to_the_largest_do_not_break_anything() -> None:
    steps = np.array([-(2**63), 0, 5, 2**62, 2**63 - 2, 2**63 - 1])
    found = compare(side(np.arange(6.0), steps), side(np.arange(6.0), steps, "b"), Settings())
    assert found.verdict.state == "same"


# Noise.


def test_noise_of_the_rows_is_found_whatever_the_trend() -> None:
    """Rows of sigma 0.3; the window averages 30 of them."""
    curve = side(noisy(loss(STEPS), 3, 0.3)).curve
    axis = common_axis([curve, curve], "step")
    assert axis is not None
    assert np.median(own_noise(axis, curve)) == pytest.approx(0.3 / np.sqrt(30), rel=0.35)


def test_prediction_factors_are_those_of_students_t() -> None:
    t = pytest.importorskip("scipy.stats").t
    for seeds in (2, 3, 5, 10, 15, 40):
        wanted = t.ppf(0.975, seeds - 1) * np.sqrt(1 + 1 / seeds)
        assert prediction_factor(seeds) == pytest.approx(wanted, rel=0.01)


def test_a_further_seed_lies_within_the_bound_of_the_seeds_nineteen_times_in_twenty() -> None:
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(300):
        offsets = rng.normal(0, 1, (4, 1))
        bound = bound_by_seeds(np.repeat(offsets[:3], POINTS, axis=1))
        inside.append(abs(offsets[3, 0] - offsets[:3].mean()) <= bound[0])
    assert 0.92 <= np.mean(inside) <= 0.98


SEEDS = tuple(noisy(loss(STEPS, floor=2.0 + 0.1 * k), 20 + k) for k in (-1, 1, 2))


def test_seeds_that_differ_widely_excuse_a_difference() -> None:
    """0.25 above A is worse by the curves' own noise, but the seeds spread as far."""
    b = noisy(loss(STEPS, floor=2.25), 9)
    assert against(b).verdict.state == "worse"
    found = against(b, seeds=SEEDS)
    assert found.verdict.state == "same"
    assert found.seeds is not None
    assert len(found.seeds.distances) == 4
    assert found.seeds.least_p == pytest.approx(0.2)


def test_beyond_all_seeds_is_told_with_the_least_p_that_so_few_allow() -> None:
    found = against(noisy(loss(STEPS, floor=4.0), 9), seeds=SEEDS)
    assert found.verdict.state == "worse"
    assert found.seeds is not None
    assert found.seeds.rank_p == found.seeds.least_p == pytest.approx(1 / 5)


def test_a_distance_above_the_limit_is_the_same_if_seeds_lie_as_far_apart() -> None:
    """Seeds whose plateau ends anywhere between step 100 and 1,100; all end alike."""

    def late(step: int, seed: int) -> NDArray[np.float64]:
        return noisy(np.where(step > STEPS, 10.0, loss(STEPS - step, half_life=30)), seed)

    first, *rest = (late(step, k) for k, step in enumerate((100, 1100, 200, 1000)))
    found = against(late(600, 9), a=first, seeds=tuple(rest), limit=0.01)
    assert courses(found).distance > 0.01
    assert found.verdict.reason == "same.seeds"


# Where they part.


def test_a_short_return_does_not_end_an_excursion() -> None:
    difference = np.r_[np.zeros(300), np.ones(700)]
    difference[500:510] = 0
    difference[995:] = 0
    found = find_parting(difference, np.full(1000, 0.5))
    assert (found.since, found.spans, found.share) == (300, ((300, 999),), 0.7)


def test_a_short_excursion_is_not_told() -> None:
    difference = np.zeros(1000)
    difference[400:430] = 1
    assert find_parting(difference, np.full(1000, 0.5)).spans == ()


def test_curves_that_come_together_again_have_no_parting() -> None:
    difference = np.zeros(1000)
    difference[100:300] = -1
    found = find_parting(difference, np.full(1000, 0.5))
    assert (found.since, found.spans) == (None, ((100, 299),))


# Facts.


def test_final_best_and_step_time() -> None:
    values = np.array([5.0, 3.0, 1.0, 2.0, np.nan, 2.5, 2.0, np.inf])
    found = compare(side(values), side(values + 1, name="b", step_time=1.0), Settings())
    assert (found.a.final, found.a.best) == (found.a.final.__class__(7, 2.0), found.a.best)
    assert (found.a.best.step, found.a.best.value) == (3, 1.0)  # type: ignore[union-attr]
    assert (found.a.rows, found.a.bad_rows, found.a.broken_since) == (8, 2, 8)
    assert (found.a.step_time_s, found.b.step_time_s) == (0.5, 1.0)
    assert ratios(found)["step_time"] == 2.0


def test_a_target_is_reached_by_the_moving_average() -> None:
    """10 - step / 100 is at 4 at step 600; one lucky row at step 50 does not count."""
    a = 10 - STEPS / 100.0
    b = 10 - STEPS / 200.0
    a[49] = -100.0
    tokens = curve_of("tokens", STEPS, STEPS * 1.0, STEPS * 1000.0)
    one = Side(side(a).curve, tokens=tokens)
    found = compare(one, side(b, name="b", step_time=0.25), Settings(target=4.0))
    assert found.a.reached is not None
    assert found.b.reached is not None
    assert found.a.reached.step == pytest.approx(600, abs=3)
    assert found.a.reached.seconds == pytest.approx(0.5 * 599, abs=2)
    assert found.a.reached.tokens == found.a.reached.step * 1000
    assert found.b.reached.step == pytest.approx(1200, abs=3)
    assert ratios(found)["speedup_steps"] == pytest.approx(0.5, abs=0.01)
    assert ratios(found)["speedup_time"] == pytest.approx(1.0, abs=0.01)


def test_a_level_that_is_never_reached() -> None:
    found = against(noisy(loss(STEPS, floor=3.0), 1), target=2.1)
    assert found.a.reached is not None
    assert found.b.reached is None
    assert ratios(found)["speedup_steps"] is None


def test_pauses_and_jumps_of_the_clock_are_not_training_time() -> None:
    times = np.arange(100.0)
    times[50:] += 7200
    times[80:] -= 10_000
    curve = curve_of("a", np.arange(100), times, np.zeros(100))
    seconds = training_seconds(curve)
    assert seconds is not None
    assert seconds[-1] == 99.0
    assert clock_step_time(curve) == 1.0


@pytest.mark.parametrize("times", [np.full(10, np.nan), np.zeros(10)])
def test_without_a_clock_the_time_is_unknown(times: NDArray[np.float64]) -> None:
    curve: Curve = curve_of("a", np.arange(10), times, np.arange(10.0)[::-1])
    found = compare(Side(curve), Side(curve), Settings(target=5.0))
    assert found.a.step_time_s is None
    assert found.a.reached is not None
    assert found.a.reached.seconds is None


@pytest.mark.parametrize(
    ("tag", "goal"),
    [
        ("train_loss", "min"),
        ("eval/loss", "min"),
        ("eval_accuracy", "max"),
        ("accuracy_loss", "min"),
        ("grad_norm", "none"),
    ],
)
def test_which_way_is_better_goes_by_the_tag(tag: str, goal: str) -> None:
    assert goal_of(tag) == goal


def test_json_is_strict_and_says_it_all() -> None:
    dead = A.copy()
    dead[1400:] = np.nan
    found = against(dead, seeds=SEEDS)
    value = json.loads(json.dumps(plain(comparison_object(found, None)), allow_nan=False))
    assert value["format"] == "mindpulse-compare/1"
    assert value["verdict"]["state"] == "worse"
    assert set(value["verdict"]["sentence"]) == {"en", "zh"}
    assert value["b"]["broken_since"] == 1401
    assert len(value["compared"]["curve"]["a"]) == 200
    assert len(value["seeds"]["distances"]) == 4


def test_a_run_that_explodes_is_told_as_it_is() -> None:
    """Caps bound the distance, never a number that is shown."""
    falling = 1.0 + 3.0 * np.exp(-np.arange(1000) / 100)
    diverged = np.where(np.arange(1000) < 300, falling, 50.0)
    found = compare(side(falling), side(diverged, name="b"), Settings())
    assert found.verdict.state == "worse"
    assert found.b.level == pytest.approx(50.0)
    assert found.verdict.values["difference"] == "49"
    assert courses(found).capped
    assert not courses(compare(side(falling), side(falling), Settings())).capped


@pytest.mark.parametrize("base", [2**53, 2**60, 2**62, 2**63 - 20_000, -(2**63)])
@pytest.mark.parametrize("align", ["step", "progress"])
def test_steps_that_are_equal_as_floats_are_no_error(base: int, align: Any) -> None:
    for count, every in ((300, 1), (300, 50), (5, 1)):
        steps = base + every * np.arange(count, dtype=np.int64)
        values = 2 + 8 * np.exp(-np.arange(count) / count)
        sides = [Side(curve_of("a", steps, np.zeros(count), values + up)) for up in (0.0, 3.0)]
        assert compare(*sides, Settings(align=align)).verdict.state in ("worse", "unknown")
