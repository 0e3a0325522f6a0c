"""When the watcher may ask for something: budgets, bounds, and time to see an effect. Pure.

An alert that keeps firing is asked for again, but only after the last change had time to show its
effect, at most so often in a run, and never further than a floor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mindpulse.alerts import AlertEvent
from mindpulse.control import Answer, Message, Request
from mindpulse.rules.rule import Action


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what a watcher may do to one run.

    Attributes:
        most: requests of a kind in a run.
        floor: the learning rate is never asked below this share of what it was at first.
        ahead_s, ahead_steps: a request is for this much later than the newest row, whichever is
            more: rows are on their way for about so long, and all ranks have to see it in time.
        settle_steps: steps after a change, or the end of a burst, before the next of its kind.
        patience_steps: steps after the step asked for until the request expires.
    """

    most: Mapping[str, int] = field(
        default_factory=lambda: {"scale_lr": 8, "stop": 2, "burst": 16, "snapshot": 32}
    )
    floor: float = 1 / 256
    ahead_s: float = 3.0
    ahead_steps: int = 2
    settle_steps: int = 10
    patience_steps: int = 50

    def ahead(self, step_time_s: float) -> int:
        """How many steps after the newest row a request is for."""
        steps = math.ceil(self.ahead_s / step_time_s) if step_time_s > 0 else 0
        return max(self.ahead_steps, min(steps, 10_000))


@dataclass(frozen=True, slots=True)
class Held:
    """Why nothing is asked now: a key of the catalogue of messages, and its values."""

    key: str
    values: Mapping[str, object]


class Ledger:
    """What was asked in this run so far and what was answered, whoever asked."""

    def __init__(self) -> None:
        self.requests: dict[int, Request] = {}
        self.answers: dict[int, Answer] = {}

    def add(self, messages: Iterable[Message]) -> None:
        """Takes in messages of the control log; of several ranks' answers the last counts."""
        for message in messages:
            if isinstance(message, Request):
                self.requests[message.seq] = message
            elif isinstance(message, Answer):
                self.answers[message.seq] = message

    def of(self, verb: str) -> list[Request]:
        """The requests of one kind, oldest first."""
        return [request for request in self.requests.values() if request.verb == verb]

    def asked_for(self, alert: str) -> int:
        """How many requests an alert has led to."""
        return sum(request.alert == alert for request in self.requests.values())

    def scale(self) -> float:
        """By what the learning rate was multiplied so far, open requests included."""
        product = 1.0
        for request in self.of("scale_lr"):
            answer = self.answers.get(request.seq)
            if answer is None or answer.status == "done":
                product *= request.args["factor"]
        return product


def may_ask(
    action: Action, event: AlertEvent, ledger: Ledger, step: int, limits: Limits
) -> Held | None:
    """None if the action may be asked for at `step`, the newest one; else why not.

    Example:
        >>> event = AlertEvent("x", "big", "firing", "error", "loss", 9, 9, 0.0, 0, 1)
        >>> may_ask(Action("stop", {}), event, Ledger(), 9, Limits()) is None
        True
    """
    asked = ledger.of(action.request)
    most = limits.most.get(action.request, 1)
    return (
        _time_to_settle(asked, event, ledger, step, limits)
        or _enough(action, ledger.asked_for(event.id))
        or (
            Held("held.budget", {"count": len(asked), "most": most}) if len(asked) >= most else None
        )
        or _floor(action, ledger, limits)
    )


def _time_to_settle(
    asked: list[Request], event: AlertEvent, ledger: Ledger, step: int, limits: Limits
) -> Held | None:
    if not asked or asked[-1].attempt != event.attempt:
        return None
    last = asked[-1]
    answer = ledger.answers.get(last.seq)
    if answer is None:
        lost = step > last.expires_step + limits.patience_steps
        return None if lost else Held("held.outstanding", {"seq": last.seq})
    if answer.status != "done" and last.alert == event.id:
        return Held("held.refused", {"seq": last.seq, "status": answer.status})
    until = answer.step + int(last.args.get("steps", 0)) + limits.settle_steps
    settled = step >= until and (last.verb != "stop")
    return None if settled else Held("held.settling", {"step": answer.step, "until": until})


def _enough(action: Action, count: int) -> Held | None:
    if action.at_most is None or count < action.at_most:
        return None
    return Held("held.enough", {"count": count})


def _floor(action: Action, ledger: Ledger, limits: Limits) -> Held | None:
    if action.request != "scale_lr":
        return None
    # A hair of tolerance: eight times one half is exactly the floor.
    if ledger.scale() * action.args["factor"] >= limits.floor * (1 - 1e-9):
        return None
    return Held("held.floor", {"floor": f"{limits.floor:.4g}"})
