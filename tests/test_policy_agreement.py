"""All ranks act at the same step, or none does: what whoever asks makes of their answers."""

from __future__ import annotations

import pytest

from mindpulse.control import Agenda, Answer, Decision, Message, Request
from mindpulse.watcher.agreement import Choice, acted_apart, choose
from mindpulse.watcher.ledger import Ledger


def request(verb: str = "rollback", ranks: int = 2) -> Request:
    args = {"factor": 1.0, "before": 0.0} if verb == "rollback" else {}
    return Request(1, 0.0, verb, args, "", "by hand", {}, 10, 60, 1, "", ranks)


def answer(rank: int, status: str, step: int = 8, **data: float) -> Answer:
    return Answer(1, 0.0, rank, 1, step, status, f"said by {rank}", data)


def told(*messages: Message, asked: Request | None = None) -> Ledger:
    ledger = Ledger()
    ledger.add([asked or request(), *messages])
    return ledger


READY = (answer(0, "ready", 8, state_step=4.0), answer(1, "ready", 9, state_step=4.0))


@pytest.mark.parametrize(
    ("messages", "step", "wanted"),
    [
        ((), 8, None),
        (READY[:1], 8, None),
        (READY, 8, Choice(True, 9)),
        ((READY[0], answer(1, "refused")), 8, Choice(False, 8, "rank 1: said by 1")),
        ((answer(1, "refused"),), 8, Choice(False, 8, "rank 1: said by 1")),
        (READY[:1], 61, Choice(False, 8, "1 of 2 ranks did not answer")),
        ((*READY, Decision(1, 0.0, True, 20, 70)), 8, None),
    ],
)
def test_what_is_decided(messages: tuple[Message, ...], step: int, wanted: Choice | None) -> None:
    assert choose(request(), told(*messages), step) == wanted


def test_ranks_that_would_go_to_different_states_do_not_go() -> None:
    choice = choose(request(), told(READY[0], answer(1, "ready", state_step=2.0)), 8)
    assert choice is not None
    assert not choice.go
    assert "rank 0: state_step 4; rank 1: state_step 2" in choice.reason


def test_one_rank_and_a_closer_look_need_no_decision() -> None:
    for asked in (request(ranks=1), request("snapshot", ranks=2)):
        assert choose(asked, told(asked=asked), 99) is None


def test_those_that_did_not_act_alike_are_named() -> None:
    done = [answer(0, "done", 20), answer(1, "done", 20)]
    assert acted_apart(request(), told(*done)) == ""
    assert acted_apart(request(), told(done[0])) == ""
    late = [done[0], answer(1, "done", 22)]
    assert acted_apart(request(), told(*late)) == "rank 0: done at step 20; rank 1: done at step 22"
    lost = [done[0], answer(1, "expired", 90)]
    assert "rank 1: expired at step 90" in acted_apart(request(), told(*lost))
    none = [answer(0, "expired", 90), answer(1, "expired", 90)]
    assert acted_apart(request(), told(*none)) == ""


def test_a_request_is_open_until_every_rank_has_answered_for_good() -> None:
    assert told(*READY).outcome(1) is None
    assert told(*READY, answer(0, "done", 20)).outcome(1) is None
    both = told(*READY, answer(0, "done", 20), answer(1, "failed", 20)).outcome(1)
    assert both is not None
    assert (both.rank, both.status) == (1, "failed")
    against = told(*READY, Decision(1, 0.0, False, 20, 70, "no")).outcome(1)
    assert against is not None
    assert (against.status, against.detail) == ("refused", "no")


# The other side: one rank.


def test_a_rank_waits_for_the_decision_and_goes_at_its_step() -> None:
    agenda = Agenda(rank=0, attempt=1)
    agenda.add([request()])
    assert agenda.undecided
    assert [r.seq for r in agenda.to_consider()] == [1]
    assert agenda.to_consider() == []
    agenda.add([READY[0]])
    assert agenda.due(12) == ([], [])  # later than asked for: nobody has said go
    agenda.add([Decision(1, 0.0, True, 20, 70), Decision(1, 0.0, True, 15, 70)])
    assert not agenda.undecided
    assert agenda.due(19) == ([], [])
    (ready,), expired = agenda.due(20)
    assert (ready.seq, ready.step, expired) == (1, 20, [])
    assert not agenda


def test_a_rank_drops_what_is_withdrawn_refused_or_never_decided() -> None:
    for message in (Decision(1, 0.0, False, 20, 70, "rank 1 cannot"), answer(0, "refused")):
        agenda = Agenda(rank=0, attempt=1)
        agenda.add([request(), message, Decision(1, 0.0, True, 20, 70)])
        assert agenda.due(20) == ([], [])
    agenda = Agenda(rank=0, attempt=1)
    agenda.add([request()])
    assert agenda.due(60) == ([], [])
    assert [r.seq for r in agenda.due(61)[1]] == [1]


def test_a_decision_without_its_request_does_nothing() -> None:
    agenda = Agenda(rank=0, attempt=1)
    agenda.add([Decision(7, 0.0, True, 1, 70)])
    assert not agenda
    assert agenda.due(5) == ([], [])
