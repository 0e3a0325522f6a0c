"""Many steps at once say what each says alone: the functions and the expressions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import random_rules
from mindpulse.errors import RuleError
from mindpulse.rules.compiler import compile_expression, compile_record
from mindpulse.rules.derived import Record
from mindpulse.rules.functions import COLUMN_FUNCTIONS, NUMBER_FUNCTIONS, REDUCERS
from mindpulse.rules.sweep import Says, sweep
from mindpulse.testing import chunk
from mindpulse.window import Window

LAYERS = "first_layer(last(attn_focus)) + last_layer(last(attn_focus))"
FIRED, QUIET, UNKNOWN, OPEN = "fired", "quiet", "unknown", "open"


def same_bits(one: NDArray[np.float64], other: NDArray[np.float64]) -> None:
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(np.signbit(one), np.signbit(other))


def odd(random: np.random.Generator, shape: tuple[int, ...], share: float) -> NDArray[np.float64]:
    """Numbers of very different size, so that the order of a sum shows in its last bits."""
    table = random.normal(0, 1, shape) * 10.0 ** random.integers(-8, 9, shape)
    wrong = random.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], shape)
    return np.where(random.random(shape) < share, wrong, table)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("rows", [10, 13, 50, 200, 20_000])
@pytest.mark.parametrize("name", sorted(REDUCERS))
def test_a_reducer_gives_the_same_bits_for_one_step_and_for_many(
    name: str, rows: int, share: float
) -> None:
    random = np.random.default_rng(rows)
    reducer, numbers = REDUCERS[name], (0.3,) * REDUCERS[name].numbers
    for width in (1, 5):
        windows = odd(random, (4, rows, width), share).astype(random.choice(["f4", "f8"]))
        steps = np.cumsum(random.integers(1, 9, (4, rows)), axis=1)
        together = reducer(windows, steps, *numbers)
        assert together.shape == (4, width)
        for one, window, at in zip(together, windows, steps, strict=True):
            same_bits(one, reducer(window, at, *numbers))
            for column in range(width):
                same_bits(one[[column]], reducer(window[:, [column]], at, *numbers))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("width", [1, 2, 7, 73])
@pytest.mark.parametrize("name", sorted({*COLUMN_FUNCTIONS, *NUMBER_FUNCTIONS}))
def test_a_function_of_columns_or_numbers_gives_the_same_bits(name: str, width: int) -> None:
    random = np.random.default_rng(width)
    table = odd(random, (500, width), 0.1)
    if name in COLUMN_FUNCTIONS:
        call = COLUMN_FUNCTIONS[name].call
        if COLUMN_FUNCTIONS[name].truth:
            table = random.choice([0.0, 1.0, np.nan], table.shape, p=[0.45, 0.45, 0.1])
    else:
        call = NUMBER_FUNCTIONS[name][0]
    alone = np.array([call(row) for row in table])
    same_bits(call(table), alone)
    same_bits(call(np.asfortranarray(table)), alone)


def window_of(series: dict[str, tuple[NDArray[np.float64], int, int]]) -> Window:
    window = Window({})
    for tag, (values, first, every) in series.items():
        window.extend(chunk(tag, values, first_step=first, every=every))
    return window


def compared(
    text: str, window: Window, steps: Sequence[int], records: Mapping[str, Record] | None = None
) -> list[str]:
    """What the sweep says, checked against each step that it does not leave open."""
    expression = compile_expression(text, records)
    swept = sweep(expression, window.kept, np.array(steps), window.spec)
    told = [Says(said).name.lower() for said in swept]
    alone = [expression.evaluate(window.view(step)).state for step in steps]
    assert [b if a == OPEN else a for a, b in zip(told, alone, strict=True)] == alone, text
    return told


def random_window(random: np.random.Generator) -> Window:
    return window_of(
        {
            tag: (
                random_rules.values(random, int(random.integers(1, 40)), width),
                int(random.integers(0, 8)),
                int(random.choice([1, 1, 3, 10])),
            )
            for tag, width in random_rules.WIDTHS.items()
        }
    )


@given(random_rules.CONDITIONS, st.integers(0, 2**32 - 1))
@settings(max_examples=400, deadline=None)
def test_any_expression_says_the_same_for_many_steps(text: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    window = random_window(random)
    steps = np.unique(random.integers(-2, 50, 40))
    compared(text, window, steps.tolist(), random_rules.RECORDS)


@given(random_rules.NUMBERS, st.sampled_from(["last(r)", "mean(r[3])", "count(upto(r[4]))"]),
       st.integers(0, 2**32 - 1))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_any_derived_series_has_the_same_rows_for_many_steps(
    text: str, read: str, seed: int
) -> None:
    try:
        record = compile_record("r", text, random_rules.RECORDS)
    except RuleError:  # a number without any series
        assert not set(re.findall(r"\w+", text)) & set(random_rules.TAGS)
        return
    random = np.random.default_rng(seed)
    window = random_window(random)
    steps = np.unique(random.integers(-2, 50, 30)).tolist()
    for limit in ("0.5", "1"):
        compared(f"{read} > {limit}", window, steps, {"r": record})


def test_only_partial_windows_that_are_not_full_are_left_open() -> None:
    window = window_of({"x": (np.ones(20), 1, 1)})
    assert compared("mean(upto(x[5])) > 0", window, range(12)) == [
        UNKNOWN, *[OPEN] * 4, *[FIRED] * 7
    ]  # fmt: skip
    assert compared("mean(x[5]) > 1", window, range(12)) == [UNKNOWN] * 5 + [QUIET] * 7


def test_series_that_do_not_go_together_are_left_open() -> None:
    window = window_of({"a": (np.ones((9, 2)), 1, 1), "b": (np.ones((9, 3)), 1, 1)})
    assert compared("last(a) > last(b)", window, [3, 4]) == [OPEN, OPEN]
    text = "not (step > 5 and last(a) > 0) and last(b) > 0"
    assert compared(text, window, [4, 5, 6, 7]) == [OPEN, OPEN, QUIET, QUIET]


def test_the_rest_of_a_condition_is_looked_at_only_where_it_matters() -> None:
    asked: list[int] = []

    def kept(tag: str) -> object:
        asked.append(1)
        return window.kept(tag)

    window = window_of({"x": (np.zeros(50), 1, 1), "y": (np.zeros(50), 1, 1)})
    expression = compile_expression("last(x) > 1 and max(y[9]) > 1 and min(y[9]) > 1")
    sweep(expression, kept, np.arange(20, 40))  # type: ignore[arg-type]
    assert len(asked) == 1


def test_windows_in_steps_are_never_left_open() -> None:
    window = window_of({"x": (np.ones(9), 1, 3), "y": (np.arange(30.0), 1, 1)})
    told = compared("count(steps(x[6])) == 2 and count(steps(y[6])) == 6", window, range(32))
    assert told[:6] == [UNKNOWN, *[QUIET] * 3, QUIET, QUIET]
    assert told[6:27] == [FIRED] * 21
    assert OPEN not in told


def test_what_asks_for_layers_is_left_open_without_labels() -> None:
    window = window_of({"attn_focus": (np.ones((9, 8)), 1, 1)})
    expression = compile_expression("first_layer(last(attn_focus)) == 1")
    assert sweep(expression, window.kept, np.arange(1, 5)).tolist() == [Says.OPEN] * 4
    assert sweep(expression, window.kept, np.arange(1, 5), window.spec).tolist() == [1] * 4
    through = compile_expression("last(r) == 2", {"r": compile_record("r", LAYERS)})
    assert sweep(through, window.kept, np.arange(1, 5)).tolist() == [Says.OPEN] * 4
    assert sweep(through, window.kept, np.arange(1, 5), window.spec).tolist() == [1] * 4
