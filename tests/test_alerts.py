"""The life of an alert, as tables of verdicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindpulse.alerts import AlertEvent, AlertState, Finding, advance, restart
from mindpulse.alerts.judge import Judge
from mindpulse.rules.expression import Verdict
from mindpulse.rules.load import load_rules
from mindpulse.rules.rule import Rule, make_rule
from mindpulse.testing import chunk

LETTERS = {
    "F": Verdict("fired", (0,), {"last(g)": 70.0}),
    ".": Verdict("quiet"),
    "?": Verdict("unknown", reason="no rows"),
}


def rule(**keys: object) -> Rule:
    return make_rule({"name": "big", "expr": "last(g) > 50", **keys})


def run(of: Rule, verdicts: str, every: int = 1) -> list[tuple[str, int, int]]:
    state, told = AlertState(), []
    for position, letter in enumerate(verdicts):
        finding = Finding(of, 0, 1, LETTERS[letter])
        state, events = advance(state, finding, 1 + every * position, 0.0)
        told += [(event.state, event.step, event.since_step) for event in events]
    return told


@pytest.mark.parametrize(
    ("keys", "verdicts", "expected"),
    [
        ({}, "....", []),
        ({}, "..F", [("firing", 3, 3)]),
        ({"for_steps": 3}, "FF.FFF", [("firing", 6, 4)]),
        ({"for_steps": 3}, "FF?FFF", [("firing", 4, 1)]),
        ({"hold_steps": 1}, "F.", [("firing", 1, 1), ("resolved", 2, 1)]),
        ({"hold_steps": 3}, "F..F...", [("firing", 1, 1), ("resolved", 7, 1)]),
        ({"hold_steps": 2}, "F.?.", [("firing", 1, 1), ("resolved", 4, 1)]),
        ({"hold_steps": 2}, "F????", [("firing", 1, 1)]),
        ({}, "????", []),
        (
            {"hold_steps": 1, "cooldown_steps": 4},
            "F.FFFFF",
            [("firing", 1, 1), ("resolved", 2, 1), ("firing", 6, 3)],
        ),
    ],
)
def test_tables(keys: dict[str, int], verdicts: str, expected: list[tuple[str, int, int]]) -> None:
    assert run(rule(**keys), verdicts) == expected


def test_steps_count_not_rows() -> None:
    assert run(rule(for_steps=10), "FF", every=10) == [("firing", 11, 1)]
    assert run(rule(for_steps=12), "FF", every=10) == []


def test_each_column_has_its_own_patience() -> None:
    of = rule(for_steps=3)
    state: AlertState = AlertState()
    told: list[AlertEvent] = []
    for step, columns in enumerate([(0,), (0,), (1,), (1,), (1, 2)], start=1):
        verdict = Verdict("fired", columns, whole=False)
        names = tuple(f"p{c}" for c in columns)
        state, events = advance(state, Finding(of, 0, 1, verdict, names), step, 0.0)
        told += events
    assert [(event.step, event.since_step, event.columns) for event in told] == [(5, 3, ("p1",))]


def test_an_alert_ends_with_its_attempt() -> None:
    state, _ = advance(AlertState(), Finding(rule(), 0, 1, LETTERS["F"]), 7, 0.0)
    state, events = restart(state, 5, 1.0)
    assert state == AlertState()
    assert [(event.state, event.step) for event in events] == [("resolved", 5)]
    assert restart(state, 5, 1.0) == (AlertState(), [])


def test_both_ends_of_an_alert_carry_the_same_id() -> None:
    state, begun = advance(AlertState(), Finding(rule(hold_steps=1), 2, 3, LETTERS["F"]), 7, 0.0)
    _, ended = advance(state, Finding(rule(hold_steps=1), 2, 3, LETTERS["."]), 8, 1.0)
    assert begun[0].id == ended[0].id == "big/a3/r2/s7"
    assert ended[0] == replace(begun[0], state="resolved", step=8, wall_time=1.0)
    assert begun[0].evidence == {"last(g)": 70.0}


# The judge: rules over rows.


def told(judge: Judge, *chunks: object) -> list[tuple[str, str, int]]:
    return [(e.rule, e.state, e.step) for e in judge.feed(chunks)]  # type: ignore[arg-type]


def test_columns_are_named_by_their_labels() -> None:
    frozen = np.ones((25, 3))
    frozen[:, 1] = 0.0
    events = Judge(load_rules()).feed([chunk("grad_norm_param", frozen)])
    assert [(e.rule, e.columns, e.step) for e in events] == [("frozen-weights", ("param=p1",), 10)]


def test_a_rule_waits_until_all_its_series_have_reached_the_step() -> None:
    judge = Judge([rule(expr="last(g) > 50 and last(loss) > 1")])
    assert told(judge, chunk("loss", [1.0, 2.0]), chunk("g", [70.0])) == []
    assert told(judge, chunk("g", [70.0], first_step=2)) == [("big", "firing", 2)]


def test_a_series_that_comes_later_than_the_other_is_not_passed_over() -> None:
    judge = Judge([rule(expr="nonfinite(loss) > 0 or last(g) > 50")])
    assert told(judge, chunk("loss", [1.0, 2.0, 3.0])) == []
    assert told(judge, chunk("g", [1.0, 70.0, 1.0])) == [("big", "firing", 2)]


def test_a_series_that_the_new_attempt_does_not_write_is_not_waited_for() -> None:
    judge = Judge([rule(expr="last(loss) > 50 or last(g) > 50")])
    told(judge, chunk("loss", [1.0, 2.0]), chunk("g", [1.0, 1.0]))
    assert told(judge, chunk("loss", [70.0], first_step=3, attempt=2)) == [("big", "firing", 3)]


def test_a_new_attempt_is_judged_from_its_first_step() -> None:
    judge = Judge([rule()])
    first = told(judge, chunk("g", [1.0, 1.0, 1.0, 70.0]))
    second = told(judge, chunk("g", [1.0, 80.0], first_step=3, attempt=2))
    assert first == [("big", "firing", 4)]
    assert second == [("big", "resolved", 3), ("big", "firing", 4)]


def test_an_attempt_begins_at_its_lowest_step_whichever_series_comes_first() -> None:
    judge = Judge([rule(), rule(name="rare", expr="last(a) > 50")])
    told(judge, chunk("g", [1.0, 1.0, 1.0, 1.0]))
    late = chunk("a", [1.0], first_step=9, attempt=2)
    begun = chunk("g", [1.0, 70.0, 1.0], first_step=3, attempt=2)
    assert told(judge, late, begun) == [("big", "firing", 4)]
    assert judge.window.view(9).window("g", 0, 9)[0].tolist() == [1, 2, 3, 4, 5]


def test_two_attempts_in_one_feed_are_judged_one_after_the_other() -> None:
    judge = Judge([rule()])
    both = told(judge, chunk("g", [1.0, 70.0]), chunk("g", [1.0], first_step=2, attempt=2))
    assert both == [("big", "firing", 2), ("big", "resolved", 2)]


def test_what_cannot_be_judged_is_told_apart_from_what_is_quiet() -> None:
    rules = [
        rule(),
        rule(name="far", expr="mean(g[9]) > 5"),
        rule(name="typo", expr="last(gg) > 1"),
    ]
    judge = Judge(rules)
    assert judge.unknown()["big"] == "nothing was recorded yet"
    judge.feed([chunk("g", [1.0, 2.0])])
    assert judge.unknown() == {
        "far": "g has 2 of the 9 rows needed",
        "typo": "nobody writes gg",
    }


def test_a_series_that_stopped_is_unknown_not_healthy() -> None:
    judge = Judge([rule()])
    judge.feed([chunk("g", [1.0]), chunk("loss", np.ones(3000))])
    assert "no rows for the last 2999 steps" in judge.unknown()["big"]


@pytest.mark.slow
@given(st.lists(st.integers(1, 60), min_size=1, max_size=12), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_alerts_do_not_depend_on_how_the_rows_were_cut(sizes: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    total = sum(sizes)
    loss = 5 + random.normal(0, 0.1, total) + 3 * (random.random(total) < 0.05)
    norm = np.exp(random.normal(1, 1.2, total))
    whole = Judge(load_rules())
    want = whole.feed([chunk("train_loss", loss), chunk("grad_norm", norm)]) + whole.finish()
    pieces, got, first = Judge(load_rules()), [], 0
    for size in sizes:
        part = slice(first, first + size)
        got += pieces.feed([chunk("train_loss", loss[part], first_step=first + 1)])
        got += pieces.feed([chunk("grad_norm", norm[part], first_step=first + 1)])
        first += size
    got += pieces.finish()
    order = lambda e: (e.step, e.id, e.state)  # noqa: E731
    assert sorted(got, key=order) == sorted(want, key=order)
