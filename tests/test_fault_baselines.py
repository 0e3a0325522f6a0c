"""The rules of others: by hand, and against their own bookkeeping written anew."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.faults.baselines import BASELINES, moving
from benchmarks.faults.baselines import model_debuggers as debuggers
from benchmarks.faults.baselines import training_loops as loops
from benchmarks.faults.baselines.curves import Baseline, Bell, Curve, Curves, beginnings, curve_of
from mindpulse.alerts import FIRING
from mindpulse.alerts.judge import Judge
from mindpulse.rules.rule import make_rule
from mindpulse.series import Rows, SeriesSpec
from mindpulse.testing import chunk

DOCS = Path(__file__).parent.parent / "docs" / "fault-scores.md"
SEEDS = range(20)
nan, inf = math.nan, math.inf


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """As `Baseline.alarms` calls them: infinities may meet."""
    with np.errstate(all="ignore"):
        yield


def curve(values: object, every: int = 1, names: tuple[str, ...] = ("",)) -> Curve:
    table = np.asarray(values, np.float64)
    table = table[:, None] if table.ndim == 1 else table
    steps = 1 + every * np.arange(len(table), dtype=np.int64)
    spec = SeriesSpec("x")
    if names != ("",):
        spec = SeriesSpec("x", "vector", axes=("param",), columns=tuple((n,) for n in names))
    return curve_of(spec, Rows(steps, steps * 1.0, table))


def rough(seed: int, steps: int = 260) -> NDArray[np.float64]:
    """A loss that falls, with spikes, plateaus and, in every second one, values not finite."""
    random = np.random.default_rng(seed)
    values = 1 + 4 * np.exp(-np.arange(steps) / 80) + random.normal(0, 0.3, steps)
    for begin in random.integers(0, steps, 6):
        values[begin : begin + random.integers(1, 12)] *= random.uniform(0.2, 15)
    if seed % 2:
        values[random.integers(0, steps, 4)] = random.choice([nan, inf, -inf], 4)
    return values


def places(rings: NDArray[np.bool_]) -> list[int]:
    return np.flatnonzero(rings).tolist()


# What they do, written from their descriptions as they run: a value at a time.


def lightning_one_by_one(losses: list[float]) -> list[int]:
    window: list[float] = []
    last, found = 0.0, []
    for batch, loss in enumerate(losses):
        spike = False
        if batch >= 1:
            mean = math.fsum(window[-10:]) / len(window[-10:]) if window else nan
            if not math.isfinite(loss):
                spike = True
            elif not loss - last <= 0.0:
                spike = abs(loss - mean) >= abs(2.0 * mean)
        if spike:
            found.append(batch)
        else:
            window.append(loss)
            last = loss
    return found


def foundry_one_by_one(losses: list[float]) -> tuple[list[int], list[int]]:
    size = max(100, round(len(losses) / 20))
    cap, counter = inf, 0
    window: list[float] = []
    spikes, high = [], []
    for place, loss in enumerate(losses):
        if len(window) == size:
            if cap == inf:
                cap = min(float(np.max(window)), 10.0)
            if loss >= np.mean(window) * 2:
                counter += 1
            else:
                counter = 0
            if counter > 4:
                spikes.append(place)
            elif place + 1 >= size * 2 and sum(one > cap for one in window) >= size / 2:
                high.append(place)
            window.pop(0)
        window.append(loss)
    return spikes, high


def megatron_one_by_one(losses: list[float]) -> list[int]:
    count, largest, found = 0, 0.0, []
    for place, loss in enumerate(losses):
        if not math.isfinite(loss):
            continue
        if count < 100:
            count, largest = count + 1, max(largest, abs(loss))
        elif abs(loss) >= 10 * largest:
            found.append(place)
    return found


def zclip_one_by_one(norms: list[float]) -> list[int]:
    begin, mean, var, found = [], 0.0, 0.0, []
    for place, norm in enumerate(norms):
        if place < 25:
            begin.append(norm)
            mean = sum(begin) / len(begin)
            var = sum((one - mean) ** 2 for one in begin) / len(begin)
            continue
        std = var**0.5
        z = (norm - mean) / (std + 1e-6)
        used = norm
        if z > 2.5:
            found.append(place)
            eta = z / 2.5
            used = mean + (2.5 * std) / eta
        mean = 0.97 * mean + 0.03 * used
        var = 0.97 * var + 0.03 * (used - mean) ** 2
    return found


def msprobe_one_by_one(values: list[float]) -> list[int]:
    average, count, found = values[0], 0, []
    for place, value in enumerate(values):
        before = average
        average, count = (average * count + value) / (count + 1), count + 1
        if abs(value) > before * 1.5:
            found.append(place)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_lightning_is_what_its_callback_does(seed: int) -> None:
    assert places(loops.loss_spike(rough(seed))) == lightning_one_by_one(rough(seed).tolist())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("steps", [90, 260, 2600])
def test_foundry_is_what_its_callback_does(seed: int, steps: int) -> None:
    losses = rough(seed, steps)
    losses[steps // 2 :] += 12 * (seed % 3)
    spikes, high = loops.kill_loss_spike(losses)
    assert (places(spikes), places(high)) == foundry_one_by_one(losses.tolist())


@pytest.mark.parametrize("seed", SEEDS)
def test_megatron_is_what_its_state_machine_does(seed: int) -> None:
    losses = rough(seed)
    losses[150::30] *= 20
    assert places(loops.unexpectedly_large(losses)) == megatron_one_by_one(losses.tolist())


@pytest.mark.parametrize("seed", SEEDS)
def test_zclip_is_what_its_step_does(seed: int) -> None:
    norms = np.abs(rough(2 * seed))
    assert places(moving.zclip_spikes(norms)) == zclip_one_by_one(norms.tolist())


@pytest.mark.parametrize("seed", SEEDS)
def test_msprobe_is_what_its_writer_does(seed: int) -> None:
    values = np.stack([np.abs(rough(2 * seed)), np.abs(rough(2 * seed + 2))], axis=1)
    rings = moving.turbulent(values)
    for column in range(2):
        assert places(rings[:, column]) == msprobe_one_by_one(values[:, column].tolist())


def test_some_of_the_rough_losses_ring_everywhere() -> None:
    """Else the comparisons above would compare nothing with nothing."""
    rung = [
        sum(len(lightning_one_by_one(rough(seed).tolist())) for seed in SEEDS),
        sum(len(foundry_one_by_one((rough(seed, 2600) + 0).tolist())[0]) for seed in SEEDS),
        sum(len(zclip_one_by_one(np.abs(rough(2 * seed)).tolist())) for seed in SEEDS),
        sum(len(msprobe_one_by_one(np.abs(rough(2 * seed)).tolist())) for seed in SEEDS),
    ]
    assert min(rung) > 10


# By hand.


def test_lightning_by_hand() -> None:
    # mean 1: 2.9 is 1.9 away, 3.0 is 2.0 away; what rang is not learnt, what does not rise is fine
    losses = np.array([1.0, 1.0, 2.9, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3.0, nan])
    assert places(loops.loss_spike(losses)) == [13, 14]
    assert places(loops.loss_spike(np.array([9.0, 1.0, 9.0]))) == []  # mean 5: 4 < 10
    assert places(loops.loss_spike(np.zeros(5))) == []  # 0 is 2.0 x 0 away, but no worse


def test_foundry_by_hand() -> None:
    losses = np.ones(300)
    losses[150:154] = 2.5  # four in a row are tolerated
    losses[200:207] = 2.5  # the fifth is not, nor those after it
    assert places(loops.kill_loss_spike(losses)[0]) == [204, 205, 206]
    losses = np.concatenate([np.full(200, 1.0), np.full(100, 1.5)])
    # Half the window of 100 is above 1.0 once 50 are in it: at 250 the window holds 200 to 249.
    assert places(loops.kill_loss_spike(losses)[1]) == list(range(250, 300))


def test_megatron_by_hand() -> None:
    losses = np.concatenate([np.full(99, 1.0), [2.0], [19.9, 20.0, -20.0, nan, inf]])
    assert places(loops.unexpectedly_large(losses)) == [101, 102]
    told = list(loops.megatron({"train_loss": curve(losses), "grad_norm": curve([1.0, inf])}))
    assert [(bell.name, places(bell.rings)) for bell in told] == [
        ("not finite", [103, 104]),
        ("spiky loss", [101, 102]),
        ("not finite", [1]),
    ]


def test_mindformers_by_hand() -> None:
    norms = np.concatenate([[1.0, 3.0, 3.1, 1.0], np.full(12, 4.0), [nan, 4.0]])
    assert places(loops.above_norm(norms, 1)) == [2, *range(4, 16), 17]
    assert places(loops.above_norm(norms, 10)) == [13, 14, 15]


def test_msprobe_by_hand() -> None:
    # 1.5 x the mean before: 1.5 (its own), 1.5, 1.5, 1.75, 1.9875
    table = np.array([[1.0], [1.0], [1.5], [1.8], [1.9], [nan]])
    assert places(moving.turbulent(table)[:, 0]) == [3]
    bells = list(moving.msprobe({"grad_norm_param": curve(table, names=("layers.3.q",))}))
    assert [(bell.name, places(bell.rings[:, 0])) for bell in bells] == [
        ("AnomalyNan", [5]),
        ("AnomalyTurbulence", [3]),
    ]


def test_moving_z_by_hand() -> None:
    values = np.array([1.0, 3.0] * 12 + [2.0, nan, 4.0, 2.0])
    scores = moving.moving_z(values)
    assert np.isnan(scores[:26]).all()  # 25 finite values come first; NaN has no score
    deviation = math.sqrt(24 / 25)  # mean 2, 24 values 1 away from it
    assert scores[26] == pytest.approx(2 / (deviation + 1e-6))
    mean = 0.97 * 2 + 0.03 * 4
    variance = 0.97 * 24 / 25 + 0.03 * (4 - mean) ** 2
    assert scores[27] == pytest.approx((2 - mean) / (math.sqrt(variance) + 1e-6))


def test_cusum_by_hand() -> None:
    # 0 -> 1.5 -> 3 -> 4.5 -> 6: over, begins anew; a low value takes it back to 0, no lower
    scores = np.array([nan, 2.0, 2.0, 2.0, 2.0, -9.0, 2.0, nan, 4.1, 0.4])
    assert places(moving.shifted(scores)) == [4, 8]


def test_smdebug_by_hand() -> None:
    norms = curve([[1.0, 1e-8], [0.0, 1.0], [nan, 1.0]], names=("layers.0.w", "layers.1.w"))
    ratios = curve([[11.0, 1e-3], [1e-9, 1e-6], [0.5, 1e-6]], names=("layers.0.w", "layers.1.w"))
    told = {
        bell.name: np.argwhere(bell.rings.reshape(len(bell.rings), -1)).tolist()
        for bell in debuggers.smdebug(
            {
                "grad_norm_param": norms,
                "weight_update_ratio": ratios,
                "ffn_dead_share": curve([[0.5, 0.51]], names=("layers.0.f", "layers.1.f")),
            }
        )
    }
    assert told == {
        "not finite": [[2, 0]],
        "AllZero": [[1, 0]],
        "VanishingGradient": [[0, 1]],
        "DeadRelu": [[0, 1]],
        "WeightUpdateRatio": [[0, 0], [1, 0]],
        "UnchangedTensor": [[2, 1]],
    }


def test_nothing_is_unchanged_before_three_steps() -> None:
    assert places(debuggers.unchanged(np.full((4, 1), 1e-6))[:, 0]) == [1, 2, 3]


def test_smdebug_looks_at_the_loss_every_ten_steps() -> None:
    losses = np.full(32, 3.0)
    losses[10], losses[20] = 2.0, 2.0  # 3 -> 2 fell, 2 -> 2 did not, 2 -> 3 rose
    assert places(debuggers.not_decreasing(curve(losses))) == [20, 30]


def test_smdebug_overfit_by_hand() -> None:
    train, test = curve(np.full(20, 2.0)), curve([2.1, 2.19, 2.3], every=9)
    assert places(debuggers.overfit(train, test)) == [2]  # 0.05, 0.095, 0.15


def test_autotrainer_by_hand() -> None:
    names = ("embed.weight", "layers.0.bias", "head.weight", "head.bias")
    rows = [[1e-5, 0, 1.0, 0], [1e-5, 0, 1e-3, 0], [71.0, 0, 1.0, 0], [1e-3, 0, 2.0, 0]]
    norms = curve(rows, names=names)
    vanishing, exploding = debuggers.vanishing_exploding(norms)
    assert (places(vanishing), places(exploding)) == ([0], [2])
    told = {
        bell.name: places(bell.rings.reshape(len(bell.rings), -1).any(axis=1))
        for bell in debuggers.autotrainer(
            {
                "grad_norm_param": norms,
                "train_loss": curve([2e3, nan, 2e3, -1.0]),
                "grad_zero_share": curve([0.7, 0.75, 0.65, 0.7]),
            }
        )
        if bell.rings.any()
    }
    # 30 % of 4 steps: the first is too early for all but what is not finite.
    assert told == {
        "not finite": [1],
        "abnormal loss": [2, 3],
        "gradient explode": [2],
        "dying ReLU": [1, 3],
    }


# From bells to alarms.


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bell_begins_when_an_alert_of_ours_would(seed: int) -> None:
    random = np.random.default_rng(seed)
    rings = random.random(400) < random.choice([0.01, 0.05, 0.5])
    steps = np.cumsum(random.integers(1, 4, 400))
    rule = make_rule({"name": "bell", "expr": "last(x) > 0"})
    block = chunk("x", rings.astype(float))
    block = type(block)(0, 1, block.spec, Rows(steps, steps * 1.0, block.rows.values))
    judge = Judge([rule])
    events = judge.feed([block]) + judge.finish()
    begun = [event.step for event in events if event.state == FIRING]
    assert steps[beginnings(steps, rings)].tolist() == begun


def test_columns_are_bells_of_their_own_and_name_their_layers() -> None:
    norms = curve(np.ones((100, 3)), names=("layers.0.w", "layers.1.w", "head.w"))
    rings = np.zeros((100, 3), np.bool_)
    rings[10:90, 0] = True
    rings[50, 1:] = True
    rule = Baseline("x", "", "", lambda _: [Bell("b", "gradient", norms, rings)])
    found = rule.alarms({}, since=40)
    assert [(alarm.step, alarm.layers, alarm.rows) for alarm in found] == [
        (11, (0,), 0),
        (51, (1,), 11),
    ]
    assert found[1].category == "gradient"


def test_bells_at_the_same_step_are_one_alarm() -> None:
    losses = curve([1.0, nan])
    both = [Bell(n, c, losses, ~np.isfinite(losses.scalar)) for n, c in (("a", "loss"), ("b", "x"))]
    found = Baseline("x", "", "", lambda _: both).alarms({}, since=1)
    assert [(alarm.name, alarm.step) for alarm in found] == [("a", 2)]


@pytest.mark.parametrize("baseline", BASELINES, ids=lambda b: b.name)
def test_a_baseline_is_pure_bears_missing_series_and_is_in_the_docs(baseline: Baseline) -> None:
    assert baseline.alarms({}, since=1) == ()
    names = ("embed.weight", "layers.0.w", "head.weight")
    tables: dict[str, Callable[[], Curve]] = {
        "train_loss": lambda: curve(rough(1)),
        "grad_norm": lambda: curve(np.abs(rough(3))),
        "grad_norm_param": lambda: curve([[v] * 3 for v in np.abs(rough(5))], 1, names),
    }
    curves: Curves = {tag: make() for tag, make in tables.items()}
    first, again = baseline.alarms(curves, since=1), baseline.alarms(curves, since=1)
    assert first == again
    assert len(first) > 0
    for tag, make in tables.items():
        np.testing.assert_array_equal(curves[tag].values, make().values)
    text = DOCS.read_text(encoding="utf-8")
    assert baseline.name in text
    assert baseline.constants in text
