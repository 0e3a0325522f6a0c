"""Did it help? Requests are judged by the rule that led to them, and taken back if they did not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mindpulse.control import Answer, ControlLog, Decision, Judgement, Request
from mindpulse.deliver.words import line
from mindpulse.messages import LANGUAGES
from mindpulse.report.history import read_actions
from mindpulse.rules.rule import Rule, make_rule
from mindpulse.testing import view, write_run
from mindpulse.watcher import ActionEvent, Limits
from mindpulse.watcher.judgement import directions, improved, judge, rank_of, ripe, values
from mindpulse.watcher.ledger import Ledger
from test_watcher import Training, scripted

RULE = make_rule({
    "name": "big", "expr": "last(grad_norm) > 50", "hold_steps": 5, "severity": "error",
    "action": {"request": "scale_lr", "factor": 0.5},
})  # fmt: skip
ASKED = Request(1, 0.0, "scale_lr", {"factor": 0.5}, "big", "", {"last(grad_norm)": 80.0}, 20, 70,
                1, "big/a1/r0/s11")  # fmt: skip


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("last(a) > 5", {"last(a)": 1}),
        ("5 > last(a)", {"last(a)": -1}),
        ("last(a) < 5 and nonfinite(b) > 0", {"last(a)": -1, "nonfinite(b)": 1}),
        ("median(a[3]) > 5 * median(a[3:53])", {"median(a[3])": 1}),
        ("max(a[20]) == 0", {}),
        ("any_column(last(e) < 1) > 0.5", {"any_column(last(e) < 1)": 1, "last(e)": -1}),
        ("this is (no", {}),
    ],
)  # fmt: skip
def test_which_way_is_quieter(text: str, wanted: dict[str, int]) -> None:
    assert directions(text) == wanted


@pytest.mark.parametrize(
    ("before", "after", "better"),
    [(100, 60, True), (100, 91, False), (100, 90, True), (100, 200, False),
     ("inf", 60, True), (100, "nan", False), ("nan", "nan", False)],
)  # fmt: skip
def test_a_tenth_nearer_is_better(before: Any, after: Any, better: bool) -> None:
    term = "last(grad_norm)"
    found = improved(RULE.expression.text, {term: float(before)}, {term: float(after)})
    assert found is better


@pytest.mark.parametrize(
    ("now", "effect"), [([10.0], "helped"), ([60.0], "better"), ([81.0], "none"), ([79.0], "none")]
)
def test_the_effect(now: list[float], effect: str) -> None:
    found = judge(ASKED, RULE, view(grad_norm=now), 20, Limits())
    assert found == (effect, {"last(grad_norm)": now[0]})


def test_no_verdict_is_waited_for_and_then_told() -> None:
    rule = make_rule({"name": "big", "expr": "last(other) > 50"})
    early, late = view(grad_norm=[1.0] * 30), view(grad_norm=[1.0] * 220)
    assert judge(ASKED, rule, early, 20, Limits()) is None
    assert judge(ASKED, rule, late, 20, Limits()) == ("unknown", {})


def test_terms_that_cannot_be_read_are_left_out() -> None:
    terms = {"last(grad_norm)": 1.0, "no such thing(": 1.0, "last(nothing)": 1.0}
    assert values(terms, view(grad_norm=[7.0])) == {"last(grad_norm)": 7.0}


def test_when_it_is_time() -> None:
    slow = make_rule({"name": "big", "expr": "last(grad_norm) > 50", "for_steps": 100})
    book = Ledger()
    book.add([ASKED])
    assert not ripe(ASKED, RULE, book, 999, Limits())  # not carried out yet
    book.add([Answer(1, 0.0, 0, 1, 20, "done")])
    assert [ripe(ASKED, RULE, book, step, Limits()) for step in (39, 40)] == [False, True]
    assert [ripe(ASKED, slow, book, step, Limits()) for step in (119, 120)] == [False, True]
    book.add([Judgement(1, 0.0, 40, "helped")])
    assert not ripe(ASKED, RULE, book, 999, Limits())


def test_ranks_in_the_ids_of_alerts() -> None:
    assert [rank_of(i) for i in ("big/a1/r12/s9", "big/a1/r3", "by-r2-hand", "")] == [12, 3, 0, 0]


# In the loop of the watcher.


def watched(
    run: Path, norms: Callable[[int, float], float], steps: int, rules: list[Rule], **options: Any
) -> tuple[list[ActionEvent], list[Any]]:
    """A training whose gradient norm depends on (step, product of all factors so far).

    Returns:
        what the watcher said of actions, and the control log.
    """
    training = Training(run, grad_norm=[1.0] * 10)
    rate = [1.0]
    done: dict[int, float] = {}
    numbers = iter(range(11, 11 + steps))

    def step() -> None:
        number = next(numbers)
        training.rows(number, grad_norm=[norms(number, rate[0])])
        training.answer(number + 1)
        for request in training.done:
            if request.seq not in done:
                factor = request.args.get("factor", 1.0)
                done[request.seq] = factor
                back = 1 / done.get(int(request.args.get("seq", 0)), 1.0)
                rate[0] *= factor * back

    options = {"act": frozenset({"scale_lr"})} | options
    events = list(scripted(run, [step] * steps, rules, **options))
    training.writer.close()
    return [e for e in events if isinstance(e, ActionEvent)], ControlLog(run).poll()


def of(kind: type, messages: list[Any]) -> list[Any]:
    return [message for message in messages if isinstance(message, kind)]


def test_what_helped_stays(tmp_path: Path) -> None:
    events, log = watched(
        tmp_path, lambda step, rate: 80.0 if step >= 20 and rate > 0.4 else 5.0, 60, [RULE]
    )
    assert [r.verb for r in of(Request, log)] == ["scale_lr", "scale_lr"]
    assert [j.effect for j in of(Judgement, log)] == ["none", "helped"]
    (_, last) = of(Judgement, log)
    assert (last.before, last.after) == ({"last(grad_norm)": 80.0}, {"last(grad_norm)": 5.0})
    said = [event for event in events if event.kind == "judged"]
    assert "it helped, the rule is quiet; before: last(grad_norm) = 80; now: last(grad_norm) = 5" \
        in line(said[1])  # fmt: skip
    assert all(line(event, lang) for event in events for lang in LANGUAGES)


def test_what_did_not_help_is_taken_back_and_not_tried_again(tmp_path: Path) -> None:
    _, log = watched(tmp_path, lambda step, rate: 80.0 if step >= 20 else 1.0, 160, [RULE])
    asked = of(Request, log)
    assert [r.verb for r in asked] == ["scale_lr"] * 4 + ["undo"] * 4
    assert [int(r.args["seq"]) for r in asked[4:]] == [4, 3, 2, 1]
    assert asked[4].reason == "request 4 did not help: big is still firing"
    assert asked[4].alert == asked[0].alert
    assert [j.effect for j in of(Judgement, log)] == ["none"] * 4
    assert all(a.status == "done" for a in of(Answer, log))
    actions, rejected = read_actions(tmp_path)
    assert rejected == []
    assert [action.detail for action in actions[:4]] == ["; effect: none"] * 4


def test_what_makes_it_better_is_neither_taken_back_nor_tried_for_ever(tmp_path: Path) -> None:
    def norm(step: int, rate: float) -> float:
        return 1000.0 * rate if step >= 20 else 1.0

    _, log = watched(tmp_path, norm, 160, [RULE])
    assert [r.verb for r in of(Request, log)] == ["scale_lr"] * 4
    assert [j.effect for j in of(Judgement, log)] == ["better"] * 4


def test_a_rule_that_may_ask_once_is_judged_once(tmp_path: Path) -> None:
    once = make_rule({
        "name": "big", "expr": "last(grad_norm) > 50",
        "action": {"request": "scale_lr", "factor": 0.5, "at_most": 1},
    })  # fmt: skip
    _, log = watched(tmp_path, lambda step, rate: 80.0 if step >= 20 else 1.0, 80, [once])
    assert [r.verb for r in of(Request, log)] == ["scale_lr", "undo"]


def test_a_restarted_watcher_judges_and_takes_back_once(tmp_path: Path) -> None:
    def norm(step: int, rate: float) -> float:
        return 80.0 if step >= 20 else 1.0

    watched(tmp_path, norm, 160, [RULE])
    before = ControlLog(tmp_path).poll()
    list(scripted(tmp_path, [lambda: None] * 3, [RULE], act=frozenset({"scale_lr"})))
    assert ControlLog(tmp_path).poll() == before


def test_advice_writes_nothing_and_off_says_nothing(tmp_path: Path) -> None:
    write_run(tmp_path, grad_norm=[1.0] * 10 + [80.0] * 40)
    for act, kinds in ((None, ["advice"]), (frozenset[str](), [])):
        said = scripted(tmp_path, [lambda: None] * 3, [RULE], act=act)
        assert [e.kind for e in said if isinstance(e, ActionEvent)] == kinds
    assert not (tmp_path / "control.jsonl").exists()


BACK = make_rule({
    "name": "big", "expr": "last(grad_norm) > 50", "severity": "error", "hold_steps": 5,
    "action": {"request": "rollback", "factor": 0.5},
})  # fmt: skip


def test_states_are_kept_while_nothing_is_wrong(tmp_path: Path) -> None:
    """Asked for at once; paused by an alert, and the rollback goes to before it; then again."""
    _, log = watched(
        tmp_path, lambda step, rate: 80.0 if step >= 30 and rate == 1.0 else 1.0, 60, [BACK],
        act=frozenset({"rollback"}),
    )  # fmt: skip
    asked = [(r.verb, dict(r.args)) for r in of(Request, log)]
    assert asked == [
        ("keep", {"every": 50.0}),
        ("rollback", {"factor": 0.5, "before": 20.0}),
        ("keep", {"every": 0.0}),
        ("keep", {"every": 50.0}),
    ]


def test_no_states_are_kept_where_no_rule_wants_them(tmp_path: Path) -> None:
    _, log = watched(
        tmp_path, lambda step, rate: 1.0, 30, [RULE], act=frozenset({"rollback", "scale_lr"})
    )
    assert log == []


def test_all_ranks_are_asked_and_go_together(tmp_path: Path) -> None:
    """Two ranks: both answer ready, the watcher decides, and the step is the same for both."""
    for rank in (0, 1):
        write_run(tmp_path, rank=rank, grad_norm=np.r_[np.ones(10), np.full(5, 80.0)],
                  step_time_s=np.full(15, 0.5))  # fmt: skip
    log = ControlLog(tmp_path)

    def reply(status: str) -> None:
        for message in log.poll():
            if isinstance(message, Request):
                for rank in (0, 1):
                    log.answer(Answer(message.seq, 0.0, rank, 1, 17, status, f"I am {rank}"))

    script: list[Callable[[], object]] = [lambda: reply("ready"), lambda: None]
    events = [e for e in scripted(tmp_path, script, [RULE], act=frozenset({"scale_lr"}))
              if isinstance(e, ActionEvent)]  # fmt: skip
    (request,) = of(Request, ControlLog(tmp_path).poll())
    (decision,) = of(Decision, ControlLog(tmp_path).poll())
    assert request.ranks == 2
    assert decision.go
    assert decision.step == 17 + 6  # three seconds ahead of what the ranks said
    assert "go" in [event.kind for event in events]
    assert any("all ranks are ready and go before step 23" in line(event) for event in events)


def test_one_rank_that_cannot_keeps_all_from_it(tmp_path: Path) -> None:
    for rank in (0, 1):
        write_run(tmp_path, rank=rank, grad_norm=np.r_[np.ones(10), np.full(5, 80.0)])
    log = ControlLog(tmp_path)

    def reply() -> None:
        for message in log.poll():
            if isinstance(message, Request):
                log.answer(Answer(message.seq, 0.0, 1, 1, 17, "refused", "no handle"))

    told = scripted(tmp_path, [reply, lambda: None], [RULE], act=frozenset({"scale_lr"}))
    events = [event for event in told if isinstance(event, ActionEvent)]
    (decision,) = of(Decision, ControlLog(tmp_path).poll())
    assert not decision.go
    (said,) = [event for event in events if event.kind == "withdrawn"]
    assert line(said).endswith("; rank 1: no handle")
    assert len(of(Request, ControlLog(tmp_path).poll())) == 1  # not asked again for this alert
