"""When the watcher may ask, and when it has to hold back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindpulse.alerts import AlertEvent
from mindpulse.control import Answer, Request
from mindpulse.control.schema import VERBS
from mindpulse.deliver.words import line
from mindpulse.messages import LANGUAGES
from mindpulse.rules.rule import Action
from mindpulse.watcher import ActionEvent
from mindpulse.watcher.policy import Ledger, Limits, may_ask


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
    held = may_ask(HALF, alert, book, step, Limits())
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
def test_every_verb_has_a_budget(verb: str) -> None:
    assert Limits().most[verb] >= 2


def test_requests_are_far_enough_ahead() -> None:
    assert [Limits().ahead(seconds) for seconds in (0.0, 10.0, 0.5, 0.01)] == [2, 2, 6, 300]
