"""When the watcher may ask for something: budgets, bounds, and time to see an effect. Pure.

An alert that keeps firing is asked for again, but only after the last change had time to show its
effect, at most so often in an hour and in a run, and never further than a floor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from mindpulse.alerts import AlertEvent
from mindpulse.control import Request
from mindpulse.control.verbs import CHANGING, MOVING
from mindpulse.rules.rule import Action
from mindpulse.watcher.ledger import Ledger

HOUR_S = 3600.0
SHORT_STEP_S = 0.01

MOST = {
    "scale_lr": 8, "skip_step": 16, "rollback": 3, "keep": 200, "set_clip": 8, "free_memory": 16,
    "burst": 16, "snapshot": 32, "profile": 8, "checkpoint": 8,
    "stop": 2, "undo": 32,
}  # fmt: skip
MOST_PER_HOUR = {
    "scale_lr": 6, "skip_step": 8, "rollback": 2, "keep": 60, "set_clip": 6, "free_memory": 6,
    "burst": 8, "snapshot": 12, "profile": 2, "checkpoint": 4,
    "stop": 2, "undo": 16,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what a watcher may do to one run.

    Attributes:
        most, per_hour: requests of a kind in a run, and in an hour.
        tries: requests of a kind that changes the training, for one alert.
        floor: the learning rate is never asked below this share of what it was at first.
        ahead_s, ahead_steps: a request is for this much later than the newest row, whichever is
            more: rows are on their way for about so long, and all ranks have to see it in time.
        settle_steps: steps after a change, or the end of a burst, before the next of its kind.
        judge_steps: steps after a change until it is judged by the rule that led to it; a rule with
            `for_steps` is given as many as that, if it is more.
        patience_steps: steps after the step asked for until the request expires.
        keep_every: steps between two states that are kept for a rollback.
        doubt_steps: a rollback goes to a state at least so much older than the alert's first step.
    """

    most: Mapping[str, int] = field(default_factory=lambda: dict(MOST))
    per_hour: Mapping[str, int] = field(default_factory=lambda: dict(MOST_PER_HOUR))
    tries: int = 4
    floor: float = 1 / 256
    ahead_s: float = 3.0
    ahead_steps: int = 2
    settle_steps: int = 10
    judge_steps: int = 20
    patience_steps: int = 50
    keep_every: int = 50
    doubt_steps: int = 10

    def ahead(self, step_time_s: float, ranks: int = 1) -> int:
        """How many steps after the newest row a request is for.

        Several ranks have to be on time together: there a step of unknown length is taken for a
        short one.
        """
        if step_time_s <= 0 and ranks > 1:
            step_time_s = SHORT_STEP_S
        steps = math.ceil(self.ahead_s / step_time_s) if step_time_s > 0 else 0
        return max(self.ahead_steps, min(steps, 10_000))

    def args(self, action: Action, event: AlertEvent) -> dict[str, float]:
        """The arguments of a request: a rollback goes to before the alert's first step."""
        args = dict(action.args)
        if action.request == "rollback" and not args.get("before"):
            args["before"] = float(max(1, event.since_step - self.doubt_steps))
        return args


@dataclass(frozen=True, slots=True)
class Held:
    """Why nothing is asked now: a key of the catalogue of messages, and its values."""

    key: str
    values: Mapping[str, object]


# Reasons that will not go by: no more of the same will be asked for this alert.
FINAL = ("held.enough", "held.budget", "held.floor", "held.undone")


def may_ask(
    action: Action,
    event: AlertEvent,
    ledger: Ledger,
    step: int,
    limits: Limits,
    now: float | None = None,
) -> Held | None:
    """None if the action may be asked for at `step`, the newest one; else why not.

    Args:
        now: seconds since the epoch; without it the budget per hour does not count.

    Example:
        >>> event = AlertEvent("x", "big", "firing", "error", "loss", 9, 9, 0.0, 0, 1)
        >>> may_ask(Action("stop", {}), event, Ledger(), 9, Limits()) is None
        True
    """
    verb = action.request
    asked = ledger.of(verb)
    most = limits.most.get(verb, 1)
    return (
        _time_to_settle(asked, event, ledger, step, limits)
        or _one_at_a_time(verb, event, ledger, step, limits)
        or _enough(action, event, ledger, limits)
        or (
            Held("held.budget", {"count": len(asked), "most": most}) if len(asked) >= most else None
        )
        or _this_hour(asked, limits, now)
        or _floor(action, ledger, limits)
    )


def _time_to_settle(
    asked: list[Request], event: AlertEvent, ledger: Ledger, step: int, limits: Limits
) -> Held | None:
    """The last of some requests has to be over, and its effect seen."""
    if not asked or asked[-1].attempt != event.attempt:
        return None
    last = asked[-1]
    answer = ledger.outcome(last.seq)
    if answer is None:
        lost = step > last.expires_step + limits.patience_steps
        return None if lost else Held("held.outstanding", {"seq": last.seq})
    if answer.status != "done" and last.alert == event.id:
        return Held("held.refused", {"seq": last.seq, "status": answer.status})
    until = answer.step + int(last.args.get("steps", 0)) + limits.settle_steps
    settled = step >= until and (last.verb != "stop")
    return None if settled else Held("held.settling", {"step": answer.step, "until": until})


def _one_at_a_time(
    verb: str, event: AlertEvent, ledger: Ledger, step: int, limits: Limits
) -> Held | None:
    """What was changed for another alert has to show its effect first."""
    if verb not in MOVING:
        return None
    others = [
        request
        for request in ledger.moves(event.attempt)
        if (request.alert, request.verb) != (event.id, verb)
        and (ledger.outcome(request.seq) is None or ledger.done(request.seq))
    ]
    return _time_to_settle(others, event, ledger, step, limits)


def _enough(action: Action, event: AlertEvent, ledger: Ledger, limits: Limits) -> Held | None:
    mine = [r for r in ledger.of(action.request) if r.alert == event.id]
    if any(request.seq in ledger.undone for request in mine):
        return Held("held.undone", {"seq": mine[-1].seq})
    most = action.at_most
    if most is None and action.request in CHANGING:
        most = limits.tries
    if most is None or len(mine) < most:
        return None
    return Held("held.enough", {"count": len(mine)})


def _this_hour(asked: list[Request], limits: Limits, now: float | None) -> Held | None:
    if now is None or not asked:
        return None
    most = limits.per_hour.get(asked[-1].verb, 1)
    late = [request for request in asked if now - request.wall_time < HOUR_S]
    return Held("held.hour", {"count": len(late), "most": most}) if len(late) >= most else None


def _floor(action: Action, ledger: Ledger, limits: Limits) -> Held | None:
    if action.request not in ("scale_lr", "rollback") or action.args.get("factor", 1.0) >= 1.0:
        return None
    # A hair of tolerance: eight times one half is exactly the floor.
    if ledger.scale() * action.args["factor"] >= limits.floor * (1 - 1e-9):
        return None
    return Held("held.floor", {"floor": f"{limits.floor:.4g}"})
