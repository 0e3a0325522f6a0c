"""What follows a request: decision, judgement, undo; and states to go back to.

Everything stands in `control.jsonl`, so a watcher that is killed and started again goes on where
it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from mindpulse.alerts import AlertEvent
from mindpulse.alerts.judge import Judge
from mindpulse.control import ControlLog, Decision, Judgement, Request
from mindpulse.rules.rule import Rule
from mindpulse.watcher.agreement import acted_apart, choose
from mindpulse.watcher.events import ActionEvent
from mindpulse.watcher.judgement import judge, rank_of, ripe
from mindpulse.watcher.ledger import Ledger
from mindpulse.watcher.policy import FINAL, Held, Limits, may_ask

UNDOABLE = frozenset({"scale_lr", "set_clip", "rollback"})


class Aftercare:
    """Looks after the requests of one run.

    Args:
        control, ledger: the log, and what stands in it.
        judges: the rules and the rows.
        act: verbs that may be asked for; None only gives advice, and then nothing is written.
        limits: bounds.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        control: ControlLog,
        ledger: Ledger,
        judges: Judge,
        act: frozenset[str] | None,
        limits: Limits,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._control = control
        self._ledger = ledger
        self._judge = judges
        self._act = act
        self._limits = limits
        self._clock = clock
        self._told_apart: set[int] = set()
        self._first = True

    def attend(self, step_time_s: float) -> Iterator[ActionEvent]:
        """One look at all requests.

        Args:
            step_time_s: seconds per step, for how far ahead a step has to be.
        """
        if not self._act:
            return
        ahead = self._limits.ahead(step_time_s)
        firing = self._judge.firing()
        for request in list(self._ledger.requests.values()):
            yield from self._decide(request, step_time_s)
            yield from self._tell_apart(request)
            yield from self._judge_one(request)
        for rule, event in firing:
            yield from self._undo(rule, event, ahead)
        yield from self._keep(firing, ahead)
        self._first = False

    # -- all ranks or none ------------------------------------------------------------------------

    def _decide(self, request: Request, step_time_s: float) -> Iterator[ActionEvent]:
        choice = choose(request, self._ledger, self._judge.last_step())
        if choice is None:
            return
        ahead = self._limits.ahead(step_time_s, request.ranks)
        decision = decision_of(request, choice.go, choice.reason, choice.heard_step + ahead,
                               self._limits, self._clock())  # fmt: skip
        self._write(decision)
        held = None if choice.go else Held("held.apart", {"reason": choice.reason})
        yield _event("go" if choice.go else "withdrawn", request, decision.step, held)

    def _tell_apart(self, request: Request) -> Iterator[ActionEvent]:
        apart = acted_apart(request, self._ledger)
        if apart and request.seq not in self._told_apart:
            self._told_apart.add(request.seq)
            if self._first:
                return  # an earlier watcher has said so
            yield _event("apart", request, 0, Held("held.apart", {"reason": apart}))

    # -- did it help ------------------------------------------------------------------------------

    def _judge_one(self, request: Request) -> Iterator[ActionEvent]:
        rule = next((rule for rule in self._judge.rules if rule.name == request.rule), None)
        step = self._judge.last_step()
        if rule is None or not ripe(request, rule, self._ledger, step, self._limits):
            return
        outcome = self._ledger.outcome(request.seq)
        view = self._judge.view(rank_of(request.alert))
        if outcome is None:
            return
        found = judge(request, rule, view, outcome.step, self._limits)
        if found is None:
            return
        effect, after = found
        self._write(
            Judgement(
                request.seq, self._clock(), view.step, effect, dict(request.evidence), after
            )
        )  # fmt: skip
        told = {"before": _terms(request.evidence), "after": _terms(after)}
        yield _event("judged", request, view.step, Held(f"effect.{effect}", told))

    def _undo(self, rule: Rule, event: AlertEvent, ahead: int) -> Iterator[ActionEvent]:
        """Takes back what an alert led to, if it did not help and no more of it will be asked."""
        action, ledger = rule.action, self._ledger
        if action is None or action.request not in UNDOABLE:
            return
        mine = [r for r in ledger.of(action.request) if r.alert == event.id]
        if not mine or any(request.seq in ledger.undone for request in mine):
            return
        last = ledger.judgements.get(mine[-1].seq)
        if last is None or last.effect != "none":
            return
        step = self._judge.last_step()
        held = may_ask(action, event, ledger, step, self._limits, self._clock())
        if held is None or held.key not in FINAL:
            return
        for request in reversed(mine):
            if not ledger.done(request.seq) or not _can_undo(request):
                continue
            if len(ledger.of("undo")) < self._limits.most.get("undo", 0):
                reason = f"request {request.seq} did not help: {event.rule} is still firing"
                yield self._ask("undo", {"seq": float(request.seq)}, event, reason, step + ahead)

    # -- states to go back to ---------------------------------------------------------------------

    def _keep(self, firing: Sequence[tuple[Rule, AlertEvent]], ahead: int) -> Iterator[ActionEvent]:
        """Has states kept while nothing is wrong, where a rule may ask for a rollback."""
        assert self._act is not None
        wanted = any(r.action and r.action.request == "rollback" for r in self._judge.rules)
        attempt = newest_attempt(self._judge)
        if not wanted or "rollback" not in self._act or attempt < 1:
            return
        asked = [r for r in self._ledger.of("keep") if r.attempt == attempt]
        if asked and self._ledger.outcome(asked[-1].seq) is None:
            return
        wrong = any(event.severity != "info" for _, event in firing)
        every = 0 if wrong else self._limits.keep_every
        before = int(asked[-1].args["every"]) if asked else 0
        refused = bool(asked) and not self._ledger.done(asked[-1].seq)
        if every == before or refused or len(self._ledger.of("keep")) >= self._limits.most["keep"]:
            return
        reason = "an alert is firing" if wrong else "nothing is wrong"
        step = self._judge.last_step() + ahead
        yield self._ask("keep", {"every": float(every)}, None, reason, step, attempt)

    # -- writing ----------------------------------------------------------------------------------

    def _ask(
        self,
        verb: str,
        args: dict[str, float],
        event: AlertEvent | None,
        reason: str,
        step: int,
        attempt: int = 1,
    ) -> ActionEvent:
        asked = self._control.request(
            verb,
            args,
            step=step,
            expires_step=step + self._limits.patience_steps,
            attempt=event.attempt if event else attempt,
            rule=event.rule if event else "",
            reason=reason,
            alert=event.id if event else "",
            ranks=ranks_together(self._judge),
        )
        self._ledger.add([asked])
        return _event("request", asked, step)

    def _write(self, message: Decision | Judgement) -> None:
        self._control.answer(message)
        self._ledger.add([message])


def newest_attempt(judges: Judge) -> int:
    """The attempt that is under way, 0 before the first row."""
    return max((judges.window.attempt(rank) for rank in judges.window.ranks), default=0)


def ranks_together(judges: Judge) -> int:
    """How many ranks write in the attempt that is under way, 1 at least."""
    newest = newest_attempt(judges)
    return max(1, sum(judges.window.attempt(r) == newest for r in judges.window.ranks))


def decision_of(
    request: Request, go: bool, reason: str, step: int, limits: Limits, now: float
) -> Decision:
    """The decision about a request as it is written down."""
    step = max(step, request.step)
    return Decision(request.seq, now, go, step, step + limits.patience_steps, reason)


def _can_undo(request: Request) -> bool:
    return request.verb != "rollback" or request.args.get("factor", 1.0) != 1.0


def _event(kind: str, request: Request, step: int, held: Held | None = None) -> ActionEvent:
    return ActionEvent(
        kind, request.rule, request.alert, request.verb, dict(request.args), request.seq, step, held
    )


def _terms(numbers: object) -> str:
    if not isinstance(numbers, dict) or not numbers:
        return "-"
    return ", ".join(f"{term} = {value:.4g}" for term, value in list(numbers.items())[:4])
