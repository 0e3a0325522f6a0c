"""One cause, one alert: which of the alerts that begin together is told, and which are only kept.

Rules of one `group` speak about the same trouble, and so does one rule at several ranks: a NaN loss
is seen by a dozen rules at each of 64 ranks. The first alert is told, the others are attached to
it. While a rule that `inhibits` another (or a group) is firing, that other one explains itself.

What is first does not depend on the order in which rows arrived: an alert waits until all rules
that could come before it at its rank have looked at its step. Between ranks nobody waits: there the
first that was heard of is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import inf

from mindpulse.alerts.life import BACKWARD, FIRING, AlertEvent
from mindpulse.rules.rule import SEVERITIES, Rule

Settled = Callable[[str, int], float]
"""Up to which step a rule (by name) has looked at a rank for good."""


@dataclass(slots=True)
class _Group:
    """Alerts of one cause that are firing.

    Attributes:
        head: the alert that was told.
        gravest: rank of the gravest severity that was told.
        open: ids of all that are firing.
        over: the end of the head, kept back while others are firing.
    """

    head: AlertEvent
    gravest: int
    open: set[str] = field(default_factory=set)
    over: AlertEvent | None = None


class Grouping:
    """Marks alerts of a run as they come.

    Args:
        rules: for their groups and what they inhibit.

    Example:
        >>> from mindpulse.rules.load import load_rules
        >>> grouping = Grouping(load_rules())
        >>> alert = AlertEvent("x", "nonfinite", "firing", "critical", "numerics", 9, 9, 0.0, 0, 1)
        >>> grouping.add([alert], lambda rule, rank: 9)[0].delivered
        True
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = {rule.name: rule for rule in rules}
        self._places = {rule.name: place for place, rule in enumerate(rules)}
        self._kin = _components(rules)
        self._held: list[AlertEvent] = []
        self._groups: dict[str, _Group] = {}
        # Alerts that are firing and what they were marked with.
        self._firing: dict[str, AlertEvent] = {}

    @property
    def holding(self) -> bool:
        """Alerts wait for rows of other series."""
        return bool(self._held)

    def add(self, events: Iterable[AlertEvent], settled: Settled) -> list[AlertEvent]:
        """Takes in alerts; returns those that are ripe, by step, with their marks."""
        waiting, ripe = [*self._held, *events], list[AlertEvent]()
        self._held = []
        for event in waiting:
            (ripe if self._is_ripe(event, settled) else self._held).append(event)
        return self._marked(ripe)

    def release(self) -> list[AlertEvent]:
        """All that is held: nothing more will come."""
        return self.add((), lambda rule, rank: inf)

    def told(self, event: AlertEvent) -> AlertEvent | None:
        """An alert that is firing with its marks, None while it is held."""
        return self._firing.get(event.id)

    def _is_ripe(self, event: AlertEvent, settled: Settled) -> bool:
        kin = self._kin.get(event.rule, ())
        return all(settled(name, event.rank) >= event.step for name in kin)

    def _marked(self, ripe: list[AlertEvent]) -> list[AlertEvent]:
        ripe.sort(key=self._order)
        marked: list[AlertEvent] = []
        for _, together in groupby(ripe, key=lambda event: (event.step, event.rank)):
            marked += self._one_step(list(together))
        return marked

    def _order(self, event: AlertEvent) -> tuple[object, ...]:
        """By step; what ends comes before what begins, the gravest first."""
        graver = -SEVERITIES.index(event.severity)
        place = self._places.get(event.rule, len(self._places))
        return (event.step, event.rank, event.state == FIRING, graver, place)

    def _one_step(self, events: list[AlertEvent]) -> list[AlertEvent]:
        """What one rank says at one step."""
        marked: list[AlertEvent] = []
        begun = [event for event in events if event.state == FIRING]
        for event in events:
            if event.state == FIRING:
                marked.append(self._begun(_placed(event, begun, self._key)))
            else:
                marked += self._ended(event)
        return marked

    def _key(self, event: AlertEvent) -> str:
        rule = self._rules.get(event.rule)
        return (rule.group if rule else "") or event.rule

    def _begun(self, event: AlertEvent) -> AlertEvent:
        cause = self._cause(event)
        event = replace(event, inhibited_by=cause) if cause else self._grouped(event)
        self._firing[event.id] = event
        return event

    def _cause(self, event: AlertEvent) -> str:
        """Id of an alert that explains this one: of the same rank, firing, and not explained."""
        for other in self._firing.values():
            rule = self._rules.get(other.rule)
            if rule is None or other.rank != event.rank or other.inhibited_by:
                continue
            if event.rule in rule.inhibits or self._key(event) in rule.inhibits:
                return other.id
        return ""

    def _grouped(self, event: AlertEvent) -> AlertEvent:
        key, grave = self._key(event), SEVERITIES.index(event.severity)
        group = self._groups.setdefault(key, _Group(event, -1))
        group.open.add(event.id)
        if grave > group.gravest:  # the first one, or one that is worse than what was told
            group.gravest = grave
            return event
        return replace(event, grouped_under=group.head.id)

    def _ended(self, event: AlertEvent) -> list[AlertEvent]:
        begun = self._firing.pop(event.id, None)
        marks = begun or event
        event = replace(
            event,
            origin=marks.origin,
            grouped_under=marks.grouped_under,
            inhibited_by=marks.inhibited_by,
        )
        key = self._key(event)
        group = self._groups.get(key)
        if group is None or event.id not in group.open:
            return [event]
        group.open.discard(event.id)
        if not group.open:
            del self._groups[key]
            if group.over is None:
                return [event]
            return [event, replace(group.over, step=event.step, wall_time=event.wall_time)]
        if event.id == group.head.id:
            group.over = event
            return []
        return [event]


def _placed(
    event: AlertEvent, begun: list[AlertEvent], key: Callable[[AlertEvent], str]
) -> AlertEvent:
    """With the place that an alert of the same group names at this step, if it has none itself."""
    if event.origin:
        return event
    kin = [other for other in begun if other.origin and key(other) == key(event)]
    # A bad value in the forward pass spoils all gradients, so where it was seen counts first.
    kin.sort(key=lambda other: other.part == BACKWARD)
    return replace(event, origin=kin[0].origin) if kin else event


def _components(rules: Sequence[Rule]) -> dict[str, tuple[str, ...]]:
    """The other rules that may change what becomes of a rule's alerts, by name of the rule."""
    linked: dict[str, set[str]] = {}
    for rule in rules:
        near = linked.setdefault(rule.name, set())
        for other in rules:
            if other is rule:
                continue
            same = bool(rule.group) and rule.group == other.group
            if same or other.name in rule.inhibits or other.group in rule.inhibits:
                near.add(other.name)
                linked.setdefault(other.name, set()).add(rule.name)
    return {name: tuple(sorted(_reached(name, linked) - {name})) for name in linked}


def _reached(name: str, linked: dict[str, set[str]]) -> set[str]:
    found, ahead = {name}, [name]
    while ahead:
        for near in linked[ahead.pop()] - found:
            found.add(near)
            ahead.append(near)
    return found
