"""The life of an alert: inactive -> pending -> firing -> resolved. Pure: no clock, no files.

    inactive --fired--> pending --for_steps of it--> firing --hold_steps of quiet--> inactive,
                        pending --quiet--> inactive          and silent for cooldown_steps

`unknown` changes nothing: missing data neither raises an alert nor resolves one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mindpulse.rules.expression import FIRED, UNKNOWN, Verdict
from mindpulse.rules.rule import Rule

INACTIVE, PENDING, FIRING, RESOLVED = "inactive", "pending", "firing", "resolved"
BACKWARD = "gradient"  # the part whose series are measured on the way back
_WHOLE = -1


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule said about one rank at one step.

    Attributes:
        columns: names of the columns in `verdict.columns`, in the same order.
        severity: how severe an alert that begins here is; "" as the rule says.
    """

    rule: Rule
    rank: int
    attempt: int
    verdict: Verdict
    columns: tuple[str, ...] = ()
    severity: str = ""


@dataclass(frozen=True, slots=True)
class AlertEvent:
    """An alert begins ("firing") or ends ("resolved"); both carry the same id.

    Attributes:
        step: the step at which this became known.
        since_step: the first step of the unbroken stretch that led to the alert.
        wall_time: when that step's row was recorded, seconds since the epoch, UTC.
        columns: names of the columns, () for a series of one column.
        evidence: the value of each term of the rule, in the first of these columns.
        origin: the column in which it began, "" if nothing tells it. Of columns that began at the
            same step it is the first in forward order, because a bad value is carried on to all
            later layers; for gradients the last, because they travel the other way.
        grouped_under: id of the alert of the same cause that was told, "" if this is the one.
        inhibited_by: id of the alert that explains this one, "" if none does.
        silenced: until when somebody asked not to be told, as ISO 8601 in UTC; "" if nobody did.
    """

    id: str
    rule: str
    state: str
    severity: str
    part: str
    step: int
    since_step: int
    wall_time: float
    rank: int
    attempt: int
    columns: tuple[str, ...] = ()
    evidence: Mapping[str, float] = field(default_factory=dict)
    origin: str = ""
    grouped_under: str = ""
    inhibited_by: str = ""
    silenced: str = ""

    @property
    def delivered(self) -> bool:
        """Whether somebody is to be told; the others are only kept in the journal."""
        return not (self.grouped_under or self.inhibited_by or self.silenced)


@dataclass(frozen=True, slots=True)
class AlertState:
    """Where an alert stands.

    Attributes:
        streaks: for each column that fires (-1: the whole rule) the step since which it does.
        quiet_since: first step of the quiet stretch under way while firing, None if there is none.
        silent_until: the alert cannot fire before this step.
        event: the firing event, None unless firing.
        reason: why the last verdict was unknown, "" if it was not.
    """

    phase: str = INACTIVE
    streaks: Mapping[int, int] = field(default_factory=dict)
    quiet_since: int | None = None
    silent_until: int = 0
    event: AlertEvent | None = None
    reason: str = ""


Moved = tuple[AlertState, list[AlertEvent]]


def advance(state: AlertState, finding: Finding, step: int, now: float) -> Moved:
    """The state after one more finding, and what is to be told.

    Args:
        step: larger than at the call before.
        now: wall time of the step, seconds since the epoch.

    Example:
        >>> from mindpulse.rules.rule import make_rule
        >>> rule = make_rule({"name": "big", "expr": "last(grad_norm) > 50"})
        >>> finding = Finding(rule, 0, 1, Verdict("fired", (0,)))
        >>> state, events = advance(AlertState(), finding, step=7, now=0.0)
        >>> state.phase, events[0].state, events[0].step
        ('firing', 'firing', 7)
    """
    verdict = finding.verdict
    if verdict.state == UNKNOWN:
        return (state if state.reason == verdict.reason else _noted(state, verdict.reason)), []
    if verdict.state == FIRED:
        return _fired(state, finding, step, now)
    if state.phase == FIRING:
        return _quiet_while_firing(state, finding.rule, step, now)
    if state.phase == INACTIVE and not state.reason:
        return state, []
    return AlertState(silent_until=state.silent_until), []


def restart(state: AlertState, step: int, now: float) -> Moved:
    """A new attempt begins: what was firing is over, what was counted is forgotten."""
    return AlertState(), [_over(state.event, step, now)] if state.event else []


def _noted(state: AlertState, reason: str) -> AlertState:
    return replace(state, reason=reason)


def _fired(state: AlertState, finding: Finding, step: int, now: float) -> Moved:
    verdict = finding.verdict
    keys = (_WHOLE,) if verdict.whole else verdict.columns
    streaks = {key: state.streaks.get(key, step) for key in keys}
    if state.phase == FIRING:
        return replace(state, streaks=streaks, quiet_since=None, reason=""), []
    ripe = [key for key, since in streaks.items() if step - since + 1 >= finding.rule.for_steps]
    if not ripe or step < state.silent_until:
        return AlertState(PENDING, streaks, silent_until=state.silent_until), []
    event = _event(finding, streaks, ripe, step, now)
    return AlertState(FIRING, streaks, event=event), [event]


def _event(
    finding: Finding, streaks: Mapping[int, int], ripe: list[int], step: int, now: float
) -> AlertEvent:
    rule, named = finding.rule, dict(zip(finding.verdict.columns, finding.columns, strict=False))
    whole = ripe == [_WHOLE]
    columns = named.values() if whole else [named[key] for key in ripe if key in named]
    began = min(streaks[key] for key in ripe)
    first = list(named) if whole else [key for key in ripe if streaks[key] == began]
    return AlertEvent(
        id=f"{rule.name}/a{finding.attempt}/r{finding.rank}/s{step}",
        rule=rule.name,
        state=FIRING,
        severity=finding.severity or rule.severity,
        part=rule.part,
        step=step,
        since_step=began,
        wall_time=now,
        rank=finding.rank,
        attempt=finding.attempt,
        columns=tuple(columns),
        evidence=finding.verdict.evidence,
        origin=_origin(rule, [key for key in first if key in named], named),
    )


def _origin(rule: Rule, began: list[int], named: Mapping[int, str]) -> str:
    """The column that the others have it from; columns stand in forward order."""
    if not began:
        return ""
    return named[max(began) if rule.part == BACKWARD else min(began)]


def _quiet_while_firing(state: AlertState, rule: Rule, step: int, now: float) -> Moved:
    since = step if state.quiet_since is None else state.quiet_since
    if state.event is None or step - since + 1 < rule.hold_steps:
        return replace(state, streaks={}, quiet_since=since, reason=""), []
    return AlertState(silent_until=step + rule.cooldown_steps), [_over(state.event, step, now)]


def _over(event: AlertEvent, step: int, now: float) -> AlertEvent:
    return replace(event, state=RESOLVED, step=step, wall_time=now)
