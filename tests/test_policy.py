"""When the watcher may ask, and when it has to hold back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mindpulse.alerts import AlertEvent
from mindpulse.control import Answer, Request
from mindpulse.control.schema import VERBS
from mindpulse.deliver.words import line
from mindpulse.messages import LANGUAGES
from mindpulse.rules.rule import Action
from mindpulse.watcher import ActionEvent
from mindpulse.watcher.ledger import Ledger
from mindpulse.watcher.policy import Limits, may_ask


@pytest.fixture
def alert() -> AlertEvent:
    return AlertEvent("x/1", "x", "firing", "error", "loss", 9, 9, 0.0, 0, 1)


def ledger(*done: float, status: str = "done") -> Ledger:
    book = Ledger()
    for seq, factor in enumerate(done, start=1):
        at = 10 * seq
        book.add([
            Request(seq, 0.0, "scale_lr", {"factor": factor}, "x", "", {}, at, at + 9, 1, "x/1"),
            Answer(seq, 0.0, 0, 1, at, status),
        ])  # fmt: skip
    return book


HALF = Action("scale_lr", {"factor": 0.5})


@pytest.mark.parametrize(
    ("book", "step", "key"),
    [
        (ledger(), 5, None),
        (ledger(0.5), 19, "held.settling"),
        (ledger(0.5), 20, None),
        (ledger(*[0.5] * 7), 999, None),
        (ledger(*[0.5] * 8), 999, "held.budget"),
        (ledger(0.01), 999, None),
        (ledger(0.005), 999, "held.floor"),
        (ledger(0.005, status="failed"), 999, "held.refused"),
    ],
)
def test_budget_floor_and_patience(
    book: Ledger, step: int, key: str | None, alert: AlertEvent
) -> None:
    held = may_ask(HALF, alert, book, step, Limits(tries=9))
    assert (held.key if held else None) == key
    if held:
        for lang in LANGUAGES:
            event = ActionEvent("held", "x", "x/1", "scale_lr", {"factor": 0.5}, held=held)
            assert line(event, lang)


def test_one_alert_may_be_bounded_tighter_than_the_run(alert: AlertEvent) -> None:
    twice = Action("scale_lr", {"factor": 0.5}, at_most=2)
    assert may_ask(twice, alert, ledger(0.5), 999, Limits()) is None
    held = may_ask(twice, alert, ledger(0.5, 0.5), 999, Limits())
    assert held is not None
    assert held.key == "held.enough"
    assert may_ask(twice, replace(alert, id="x/2"), ledger(0.5, 0.5), 999, Limits()) is None


def test_an_open_request_blocks_until_it_must_be_lost(alert: AlertEvent) -> None:
    book = Ledger()
    book.add([Request(1, 0.0, "scale_lr", {"factor": 0.5}, "x", "", {}, 10, 20, 1, "x/1")])
    held = may_ask(HALF, alert, book, 15, Limits())
    assert held is not None
    assert held.key == "held.outstanding"
    assert may_ask(HALF, alert, book, 71, Limits()) is None


def test_a_burst_is_waited_for_before_the_next(alert: AlertEvent) -> None:
    book, burst = Ledger(), Action("burst", {"steps": 100.0})
    assert may_ask(burst, alert, book, 5, Limits()) is None
    book.add([
        Request(1, 0.0, "burst", burst.args, "x", "", {}, 10, 20, 1, "x/1"),
        Answer(1, 0.0, 0, 1, 10, "done"),
    ])  # fmt: skip
    held = may_ask(burst, alert, book, 119, Limits())
    assert held is not None
    assert held.key == "held.settling"
    assert may_ask(burst, alert, book, 120, Limits()) is None
    assert may_ask(Action("snapshot", {}), alert, book, 11, Limits()) is None


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_budget_in_words(verb: str) -> None:
    limits = Limits()
    assert 2 <= limits.per_hour[verb] <= limits.most[verb]
    page = (Path(__file__).parent.parent / "docs" / "control.md").read_text()
    assert f"`{verb}` {limits.most[verb]} and {limits.per_hour[verb]}" in page


def test_a_change_is_tried_so_often_for_one_alert(alert: AlertEvent) -> None:
    for count, key in ((3, None), (4, "held.enough")):
        held = may_ask(HALF, alert, ledger(*[0.9] * count), 999, Limits())
        assert (held.key if held else None) == key
    other = replace(alert, id="x/2")
    assert may_ask(HALF, other, ledger(*[0.9] * 4), 999, Limits()) is None


def test_an_hour_has_its_own_budget(alert: AlertEvent) -> None:
    book, limits = ledger(*[0.9] * 6), Limits(tries=9)  # all of second 0
    held = may_ask(HALF, alert, book, 999, limits, now=3599.0)
    assert held is not None
    assert (held.key, held.values) == ("held.hour", {"count": 6, "most": 6})
    assert may_ask(HALF, alert, book, 999, limits, now=3600.0) is None


def test_what_was_taken_back_counts_no_more_for_the_floor_and_is_not_asked_again(
    alert: AlertEvent,
) -> None:
    book, limits = ledger(0.01), Limits(tries=9)
    assert book.scale() == pytest.approx(0.01)
    undo = Request(2, 0.0, "undo", {"seq": 1.0}, "x", "", {}, 40, 60, 1, "x/1")
    book.add([undo, Answer(2, 0.0, 0, 1, 40, "done")])
    assert book.scale() == 1.0
    held = may_ask(HALF, alert, book, 999, limits)
    assert held is not None
    assert held.key == "held.undone"
    assert may_ask(HALF, replace(alert, id="x/2"), book, 999, limits) is None
    book.add([Answer(2, 0.0, 0, 1, 40, "refused")])
    assert book.scale() == pytest.approx(0.01)


def test_a_rollback_lowers_the_rate_too(alert: AlertEvent) -> None:
    book = Ledger()
    args = {"factor": 0.01, "before": 5.0}
    book.add([
        Request(1, 0.0, "rollback", args, "x", "", {}, 10, 20, 1, "x/1"),
        Answer(1, 0.0, 0, 1, 10, "done"),
    ])  # fmt: skip
    back = Action("rollback", {"factor": 0.01, "before": 0.0})
    held = may_ask(back, alert, book, 999, Limits())
    assert held is not None
    assert held.key == "held.floor"
    assert (
        may_ask(Action("rollback", {"factor": 1.0, "before": 0.0}), alert, book, 999, Limits())
        is None
    )


def test_a_rollback_goes_to_before_the_alert() -> None:
    event = AlertEvent("x/1", "x", "firing", "error", "loss", 99, 90, 0.0, 0, 1)
    back = Action("rollback", {"factor": 0.5, "before": 0.0})
    assert Limits().args(back, event) == {"factor": 0.5, "before": 80.0}
    fixed = Action("rollback", {"factor": 0.5, "before": 7.0})
    assert Limits().args(fixed, event) == {"factor": 0.5, "before": 7.0}


def test_requests_are_far_enough_ahead() -> None:
    assert [Limits().ahead(seconds) for seconds in (0.0, 10.0, 0.5, 0.01)] == [2, 2, 6, 300]
    assert Limits().ahead(0.0, ranks=2) == 300


def test_one_change_at_a_time_whatever_asks_for_it(alert: AlertEvent) -> None:
    """Another alert's change has to show its effect; a closer look and a stop need not wait."""
    book, other = ledger(0.5), replace(alert, id="y/1")
    back = Action("rollback", {"factor": 1.0, "before": 0.0})
    for step, key in ((19, "held.settling"), (20, None)):
        held = may_ask(back, other, book, step, Limits())
        assert (held.key if held else None) == key
    for action in (Action("burst", {"steps": 9.0}), Action("stop", {})):
        assert may_ask(action, other, book, 11, Limits()) is None
    assert may_ask(back, replace(other, attempt=2), book, 11, Limits()) is None


def test_what_was_refused_for_another_alert_keeps_nobody_waiting(alert: AlertEvent) -> None:
    book = ledger(0.5, status="refused")
    back = Action("rollback", {"factor": 1.0, "before": 0.0})
    assert may_ask(back, replace(alert, id="y/1"), book, 11, Limits()) is None
