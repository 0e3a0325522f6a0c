"""Adaptive baselines, counters, windows in steps, layers, guards, ages: what each of them says."""

from __future__ import annotations

import doctest
import importlib
from collections.abc import Sequence

import numpy as np
import pytest

from mindpulse.rules.compiler import compile_expression
from mindpulse.rules.robust import FLOOR, WARM_UP, baseline, spread
from mindpulse.series import SeriesSpec
from mindpulse.store.reader import Chunk
from mindpulse.testing import chunk, rows, view
from mindpulse.window import Window


def state(text: str, **series: object) -> str:
    return compile_expression(text).evaluate(view(**series)).state


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        ("rate(x[4]) == 1", True),
        ("rate(c[5]) == 2", True),  # 10 13 [0] 2 4: 3 + 0 + 2 + 2, one fall
        ("rising(x[4]) == 1 and rising(down[4]) == 0", True),
        ("rising(c[5]) == 0.75", True),
        ("turns(zigzag[6]) == 1 and turns(x[4]) == 0", True),
        ("turns(c[5]) > 0.6 and turns(c[5]) < 0.7", True),
        ("age(x) == 0", True),
        ("when(last(x) > 1, last(x)) == 4", True),
        ("when(last(x) > 9, last(x)) == 4", False),
    ],
)
def test_it_calculates(text: str, fires: bool) -> None:
    series = {
        "x": [1.0, 2.0, 3.0, 4.0, 4.0][:4],
        "down": [4.0, 3.0, 2.0, 1.0],
        "c": [10.0, 13.0, 0.0, 2.0, 5.0],
        "zigzag": [0.0, 1.0, 0.0, 1.0, 0.0, 1.0],
    }
    series = {tag: [values[0]] * (6 - len(values)) + values for tag, values in series.items()}
    assert (state(text, **series) == "fired") == fires


def test_a_guard_that_does_not_hold_is_unknown_with_its_reason() -> None:
    verdict = compile_expression("when(last(x) > 9, last(x)) > 1").evaluate(view(x=[4.0]))
    assert verdict.state == "unknown"
    assert verdict.reason == "the condition of when(last(x) > 9, last(x)) does not hold"
    assert state("when(last(nobody) > 1, last(x)) > 1", x=[4.0]) == "unknown"
    assert state("when(last(x) > last(nan), last(x)) > 1", x=[4.0], nan=[np.nan]) == "unknown"


def test_an_age_counts_steps() -> None:
    window = Window({})
    window.extend(chunk("train_loss", np.ones(30)))
    window.extend(chunk("eval_loss", [1.0, 2.0], every=10))
    for step, age in ((1, 0), (9, 8), (11, 0), (30, 19)):
        assert compile_expression(f"age(eval_loss) == {age}").evaluate(window.view(step)).columns
    missing = compile_expression("age(nothing) > 1").evaluate(window.view(3))
    assert (missing.state, missing.reason) == ("unknown", "nothing has no rows yet")


def test_windows_in_steps_see_the_same_stretch_of_sparse_and_dense_series() -> None:
    window = Window({})
    window.extend(chunk("dense", np.arange(1.0, 101.0)))
    window.extend(chunk("sparse", np.arange(1.0, 101.0, 10.0), every=10))
    seen = window.view(100)
    for text in (
        "min(steps(dense[20])) == 81 and count(steps(dense[20])) == 20",
        "min(steps(sparse[20])) == 81 and count(steps(sparse[20])) == 2",
        "max(steps(dense[10:20])) == 90 and max(steps(sparse[10:20])) == 81",
        "min(sparse[10]) == 1",
    ):
        assert compile_expression(text).evaluate(seen).state == "fired", text
    few = compile_expression("std(steps(sparse[9])) > 1").evaluate(seen)
    assert few.reason == "sparse has 0 rows in the last 9 steps, 2 needed"


# A baseline, beside what others take.


def running_mean(values: Sequence[float], alpha: float) -> float:
    """The exponential mean that learns everything, for comparison (ZClip has alpha 0.97)."""
    level = values[0]
    for value in values[1:]:
        level = alpha * level + (1 - alpha) * value
    return level


def test_a_spike_does_not_teach_the_baseline() -> None:
    random = np.random.default_rng(0)
    calm = random.normal(1.0, 0.05, 100)
    spiky = calm.copy()
    spiky[90:95] = 50.0
    assert abs(baseline(spiky) - baseline(calm)) < 0.01
    assert running_mean(spiky.tolist(), 0.97) > 5
    assert spread(spiky) < 1.3 * spread(calm)
    text = "last(x) > baseline(x[1:101]) + 6 * spread(x[1:101])"
    for count in (90, 92, 94):  # the third and fifth row of a spike are still seen as one
        seen = view(x=[*calm[:10], *spiky[:count], 50.0])
        assert compile_expression(text).evaluate(seen).state == "fired", count
    quiet = [
        compile_expression(text).evaluate(view(x=[*calm[:5], *calm[:end]])).state
        for end in range(96, 100)
    ]
    assert quiet == ["quiet"] * 4


def test_a_baseline_follows_a_level_that_stays() -> None:
    moved = np.concatenate([np.full(40, 1.0), np.full(60, 3.0)])
    assert baseline(moved) == pytest.approx(3.0)
    rising = np.linspace(1.0, 2.0, 101)
    assert 1.5 < baseline(rising) < 1.7  # newer rows count more


def test_a_baseline_warms_up_and_its_spread_has_a_floor() -> None:
    assert state(f"baseline(upto(x[50])) > {0.5}", x=[1.0] * (WARM_UP - 1)) == "unknown"
    assert state(f"baseline(upto(x[50])) > {0.5}", x=[1.0] * WARM_UP) == "fired"
    assert spread(np.full(20, 4.0)) == pytest.approx(FLOOR * 4.0)
    assert spread(np.zeros(20)) > 0


def test_a_baseline_does_not_depend_on_what_was_before_its_window() -> None:
    values = np.random.default_rng(1).normal(2.0, 0.3, 300)
    text = "baseline(x[50]) > 2 and spread(x[50]) > 0.1"
    whole = compile_expression(text).evaluate(view(x=values))
    again = compile_expression(text).evaluate(view(x=values[-50:]))
    assert whole == again


# Layers.


def labelled(axes: tuple[str, ...], columns: Sequence[tuple[str, ...]], values: object) -> Window:
    window = Window({})
    spec = SeriesSpec("g", "vector", axes=axes, columns=tuple(columns))
    window.extend(Chunk(0, 1, spec, rows(np.array([values], np.float64))))
    return window


@pytest.mark.parametrize(
    ("axes", "columns", "values", "first", "last"),
    [
        (("layer", "head"), [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")], [1, 3, 5, 9], 2, 7),
        (("layer",), [("10",), ("9",)], [1, 2], 2, 1),
        (("param",), [("emb.w",), ("h.0.q",), ("h.0.k",), ("h.3.q",), ("ln.w",)],
         [99, 1, 2, 8, 99], 1.5, 8),
        (("cell",), [("m.0.act",), ("m.1.act",)], [4, 6], 4, 6),
    ],
)  # fmt: skip
def test_first_and_last_layer_go_by_the_labels(
    axes: tuple[str, ...], columns: Sequence[tuple[str, ...]], values: object, first: float,
    last: float,
) -> None:  # fmt: skip
    window = labelled(axes, columns, values)
    text = f"first_layer(last(g)) == {first} and last_layer(last(g)) == {last}"
    verdict = compile_expression(text).evaluate(window.view(1))
    assert verdict.state == "fired"
    assert verdict.columns == ()
    assert verdict.evidence["first_layer(last(g))"] == first


def test_the_gradient_that_vanishes_on_its_way_is_a_ratio_of_layers() -> None:
    text = "first_layer(mean(g[1])) < 1e-3 * last_layer(mean(g[1]))"
    names = [("h.0.q",), ("h.1.q",), ("h.2.q",)]
    for values, expected in (([1e-5, 1e-3, 1.0], "fired"), ([0.5, 0.7, 1.0], "quiet")):
        window = labelled(("param",), names, values)
        assert compile_expression(text).evaluate(window.view(1)).state == expected


def test_without_two_layers_it_is_unknown_with_the_reason() -> None:
    for axes, columns in ((("param",), [("a",), ("b",)]), (("layer",), [("0",), ("0",)])):
        window = labelled(axes, columns, [1.0, 2.0])
        verdict = compile_expression("first_layer(last(g)) > 0").evaluate(window.view(1))
        assert verdict.state == "unknown"
        assert verdict.reason == "first_layer(last(g)): the columns name no two layers"
    assert state("last_layer(last(x)) > 0", x=[1.0]) == "unknown"


def test_a_number_of_all_columns_names_none_of_them() -> None:
    verdict = compile_expression("mean_columns(last(g)) > 1").evaluate(view(g=[[1.0, 9.0]]))
    assert (verdict.state, verdict.columns, verdict.whole) == ("fired", (), True)


@pytest.mark.parametrize(
    "name", ["robust", "trends", "columns", "nearest", "references", "fields", "tables", "records",
             "reload", "explain"],
)  # fmt: skip
def test_the_examples_run(name: str) -> None:
    tried = doctest.testmod(importlib.import_module(f"mindpulse.rules.{name}"))
    assert (tried.failed, tried.attempted > 0) == (0, True)
