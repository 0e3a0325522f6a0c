"""The window: what a rule sees at a step does not depend on how the rows arrived."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindpulse.testing import chunk
from mindpulse.window import Window, needs_of


def seen(window: Window, step: int, tag: str = "x", length: int = 1000) -> list[float]:
    return window.view(step).window(tag, 0, length)[1][:, 0].tolist()


def test_a_view_sees_nothing_later_than_its_step() -> None:
    window = Window({"x": 10})
    window.extend(chunk("x", [1.0, 2.0, 3.0]))
    assert seen(window, 2) == [1.0, 2.0]
    steps, values = window.view(3).window("x", skip=1, length=1)
    assert (steps.tolist(), values.tolist()) == ([2], [[2.0]])
    assert window.view(0).window("x", 0, 5)[1].shape[0] == 0
    assert window.view(3).window("y", 0, 5)[1].shape[0] == 0


def test_a_new_attempt_hides_the_steps_after_its_start() -> None:
    window = Window({"x": 10, "y": 10})
    window.extend(chunk("x", [1.0, 2.0, 3.0, 4.0]))
    window.extend(chunk("y", [1.0, 2.0, 3.0, 4.0]))
    again = chunk("x", [30.0, 40.0, 50.0], first_step=3, attempt=2)
    assert window.begins_attempt(again)
    window.extend(again)
    assert not window.begins_attempt(again)
    assert window.attempt(0) == 2
    assert seen(window, 9) == [1.0, 2.0, 30.0, 40.0, 50.0]
    assert seen(window, 9, "y") == [1.0, 2.0]


def test_rows_of_the_old_attempt_that_come_late_stay_hidden() -> None:
    window = Window({"x": 10})
    window.extend(chunk("x", [1.0, 2.0]))
    window.extend(chunk("x", [40.0], first_step=4, attempt=2))
    window.extend(chunk("x", [3.0, 4.0, 5.0], first_step=3, attempt=1))
    assert seen(window, 9) == [1.0, 2.0, 3.0, 40.0]


def test_a_step_written_twice_counts_once_with_its_last_value() -> None:
    window = Window({"x": 10})
    window.extend(chunk("x", [1.0, 2.0, 3.0]))
    window.extend(chunk("x", [20.0], first_step=2))
    assert seen(window, 3) == [1.0, 20.0, 3.0]


def test_other_columns_begin_anew() -> None:
    window = Window({"x": 10})
    window.extend(chunk("x", [[1.0, 2.0]]))
    window.extend(chunk("x", [[1.0, 2.0, 3.0]], first_step=2))
    assert window.view(2).window("x", 0, 5)[1].shape == (1, 3)
    assert window.view(2).width("x") == 3


def test_ranks_are_kept_apart() -> None:
    window = Window({"x": 10})
    window.extend(chunk("x", [1.0]))
    window.extend(chunk("x", [2.0], rank=1, attempt=3))
    assert window.ranks == [0, 1]
    assert window.view(1, rank=1).window("x", 0, 1)[1][0, 0] == 2.0


def test_memory_stays_bounded_and_what_a_rule_needs_stays() -> None:
    window = Window({"x": 50})
    for begin in range(0, 20_000, 100):
        window.extend(chunk("x", np.arange(begin, begin + 100.0), first_step=begin))
        window.forget(0, {"x": begin + 99})
        assert seen(window, begin + 99, length=50)[0] == max(0, begin + 50)
    assert len(window.tracks()["x"].rows) < 600
    assert window.tracks()["x"].rows.values.base is None


def test_needs_are_the_largest_of_all() -> None:
    assert needs_of([{"x": 3, "y": 1}, {"x": 100}]) == {"x": 100, "y": 1}


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.data())
@settings(max_examples=60, deadline=None)
def test_chunks_of_any_size_give_the_same_window(sizes: list[int], data: st.DataObject) -> None:
    values = np.arange(float(sum(sizes)))
    window, first = Window({"x": 10}), 1
    for size in sizes:
        window.extend(chunk("x", values[first - 1 : first - 1 + size], first_step=first))
        first += size
        window.forget(0, {"x": first - 1})
    step = data.draw(st.integers(first - 1, first + 5))
    assert seen(window, step, length=10) == pytest.approx(values[-10:].tolist())
