"""The rule language: what it says, and how it points at a mistake."""

from __future__ import annotations

import numpy as np
import pytest

from mindpulse.errors import RuleError
from mindpulse.rules.compiler import compile_expression
from mindpulse.rules.functions import REDUCERS
from mindpulse.testing import view

NAN, INF = float("nan"), float("inf")


def state(text: str, **series: object) -> str:
    return compile_expression(text).evaluate(view(**series)).state


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        ("last(x) > 3", True),
        ("last(x[4]) == 4 and first(x[4]) == 1", True),
        ("mean(x[4]) == 2.5", True),
        ("mean(x[2]) == 3.5", True),
        ("mean(x[2:4]) == 1.5", True),
        ("median(x[3]) == 3 and median(x[4]) == 2.5", True),
        ("sum(x[4]) == 10", True),
        ("min(x[4]) == 1 and max(x[4]) == 4 and span(x[4]) == 3", True),
        ("abs(std(x[4]) - 1.1180339887) < 1e-9", True),
        ("mad(x[4]) == 1", True),
        ("abs(cv(x[4]) - 0.4472135955) < 1e-9", True),
        ("slope(x[4]) == 1", True),
        ("quantile(x[4], 0.5) == 2.5 and quantile(x[4], 1) == 4", True),
        ("ratio(x[4]) == 2", True),
        ("abs(noise(x[4]) - 1.0483565) < 1e-6", True),
        ("zscore(x[4]) > 1.3", True),
        ("count(x[4]) == 4 and nonfinite(x[4]) == 0", True),
        ("max(last(x), 7) == 7 and min(last(x), 7, 1) == 1", True),
        ("step == 4", True),
        ("sqrt(last(x)) == 2 and log(1) == 0 and abs(-2) == 2", True),
        ("1 < last(x) < 4", False),
        ("1 < last(x) <= 4", True),
        ("not last(x) > 3", False),
        ("last(x) > 9 or last(x) > 3", True),
        ("-last(x) + 2 * 3 / 1 - 1 == 1", True),
        ("mean(upto(x[100])) == 2.5", True),
    ],
)
def test_it_calculates(text: str, fires: bool) -> None:
    assert state(text, x=[1.0, 2.0, 3.0, 4.0]) == ("fired" if fires else "quiet")


@pytest.mark.parametrize("name", sorted(REDUCERS))
def test_reducers_agree_with_numpy_and_treat_each_column_alone(name: str) -> None:
    values = np.random.default_rng(3).normal(2.0, 1.0, (30, 5))
    reducer = REDUCERS[name]
    numbers = (0.3,) if reducer.numbers else ()
    steps = np.arange(1, 31)
    together = reducer(values, steps, *numbers)
    alone = [reducer(values[:, [i]], steps, *numbers)[0] for i in range(5)]
    np.testing.assert_allclose(together, alone)
    oracle = {
        "mean": np.mean, "std": np.std, "median": np.median, "min": np.min, "max": np.max,
        "sum": np.sum, "span": np.ptp,
    }.get(name)  # fmt: skip
    if oracle is not None:
        np.testing.assert_allclose(together, oracle(values, axis=0))
    if name == "quantile":
        np.testing.assert_allclose(together, np.quantile(values, 0.3, axis=0))
    if name == "slope":
        np.testing.assert_allclose(together, np.polyfit(steps, values, 1)[0])


def test_columns_that_fire_are_named_with_the_evidence_of_the_first() -> None:
    heads = np.ones((5, 3)) * [1.0, 70.0, 80.0]
    verdict = compile_expression("max(g[3]) > 50").evaluate(view(g=heads))
    assert (verdict.state, verdict.columns, verdict.whole) == ("fired", (1, 2), False)
    assert verdict.evidence == {"max(g[3])": 70.0}


def test_a_condition_over_columns_remembers_the_columns_inside() -> None:
    entropy = np.array([[0.9, 0.01, 0.02, 0.03]])
    verdict = compile_expression("share_columns(last(e) < 0.05) > 0.5").evaluate(view(e=entropy))
    assert (verdict.state, verdict.columns, verdict.whole) == ("fired", (1, 2, 3), True)
    assert verdict.evidence["share_columns(last(e) < 0.05)"] == 0.75


def test_of_two_conditions_over_columns_the_one_that_holds_names_them() -> None:
    entropy = np.array([[0.9, 0.2, 0.2, 0.01]])
    text = "share_columns(last(e) < 0.5) > 0.5 or share_columns(last(e) < 0.05) > 0.5"
    assert compile_expression(text).evaluate(view(e=entropy)).columns == (1, 2, 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("any_column(last(g) > 2)", "fired"),
        ("all_columns(last(g) > 2)", "quiet"),
        ("max_columns(last(g)) == 3 and min_columns(last(g)) == 1", "fired"),
        ("mean_columns(last(g)) == 2 and median_columns(last(g)) == 2", "fired"),
        ("sum_columns(last(g)) == 6", "fired"),
        ("last(g) > mean_columns(last(g))", "fired"),
    ],
)
def test_column_functions(text: str, expected: str) -> None:
    assert state(text, g=[[1.0, 2.0, 3.0]]) == expected


def test_too_few_rows_are_unknown_with_the_reason() -> None:
    verdict = compile_expression("std(attn_focus[100]) < 0.01").evaluate(
        view(attn_focus=[1.0] * 40)
    )
    assert verdict.state == "unknown"
    assert verdict.reason == "attn_focus has 40 of the 100 rows needed"
    verdict = compile_expression("last(missing) > 1").evaluate(view(x=[1.0]))
    assert (verdict.state, verdict.reason) == ("unknown", "missing has no rows yet")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("last(missing) > 1 and last(x) > 9", "quiet"),
        ("last(missing) > 1 and last(x) > 1", "unknown"),
        ("last(missing) > 1 or last(x) > 1", "fired"),
        ("last(missing) > 1 or last(x) > 9", "unknown"),
        ("not last(missing) > 1", "unknown"),
    ],
)
def test_unknown_spreads_only_where_it_matters(text: str, expected: str) -> None:
    assert state(text, x=[5.0]) == expected


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("last(x) > 50", [1.0, NAN], "unknown"),
        ("last(x) > 50", [1.0, INF], "fired"),
        ("last(x) < 50", [1.0, -INF], "fired"),
        ("nonfinite(x[3]) == 2", [NAN, 1.0, INF], "fired"),
        ("count(x[3]) == 1", [NAN, 1.0, INF], "fired"),
        ("mean(x[3]) == 1", [NAN, 1.0, INF], "fired"),
        ("max(x[3]) == 1", [NAN, 1.0, INF], "fired"),
        ("std(x[3]) < 1", [NAN, 1.0, INF], "unknown"),
        ("mean(x[2]) > 0", [NAN, NAN], "unknown"),
        ("last(x) / last(x) > 0", [0.0], "unknown"),
        ("1 / last(x) > 9", [0.0], "fired"),
        ("log(last(x)) > 0", [-1.0], "unknown"),
    ],
)
def test_non_finite_values_are_handled_on_purpose(
    text: str, values: list[float], expected: str
) -> None:
    assert state(text, x=values) == expected


def test_series_of_different_widths_are_unknown_not_an_error() -> None:
    verdict = compile_expression("last(a) > last(b)").evaluate(view(a=[[1.0, 2.0]], b=[[1.0] * 3]))
    assert verdict.state == "unknown"
    assert "2 columns" in verdict.reason


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("last(x) > 1 and lsat(x) > 1", "no function 'lsat'; did you mean 'last'?", 16),
        ("1 + x > 2", "has many rows", 4),
        ("last(x) + 1", "a condition is wanted", 0),
        ("mean(x[10]) > 1 > last(x", "was never closed", 22),
        ("std(x) > 1", "std() looks at several rows: write x[100]", 4),
        ("std(x[1]) > 1", "std() needs at least 2 rows", 4),
        ("mean(x[3] + 1) > 1", "wants a window", 5),
        ("last(x, 3) > 1", "last() takes 1 argument, 2 given", 0),
        ("last > 1", "last is a function", 0),
        ("mean(step[3]) > 1", "cannot be a series", 5),
        ("any_column(last(x))", "a condition is wanted", 11),
        ("(last(x) > 1) + 1 > 2", "a number is wanted", 1),
        ("upto(x[3]) > 2", "gives a window", 0),
    ],
)
def test_an_error_says_what_is_wrong_and_points_at_it(text: str, message: str, column: int) -> None:
    with pytest.raises(RuleError) as caught:
        compile_expression(text)
    assert message in caught.value.message
    assert (caught.value.text, caught.value.column) == (text, column)
    assert str(caught.value).splitlines()[-1] == "  " + " " * column + "^"


def test_an_expression_over_several_lines_points_at_the_right_place() -> None:
    with pytest.raises(RuleError) as caught:
        compile_expression("\n  last(x) > 1\n  and nope(x) > 1\n")
    error = caught.value
    assert error.text[error.column :].startswith("nope")
