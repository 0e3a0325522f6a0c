"""What speaks against the health of a run, part by part, before any weight is put on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mindpulse.alerts import RESOLVED, AlertEvent


@dataclass(frozen=True, slots=True)
class Found:
    """An alert of a rule, as it stands at the end of the run.

    Attributes:
        over: it was resolved.
    """

    rule: str
    severity: str
    over: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one part.

    Attributes:
        known: a rule of it could be judged, so that its silence means something.
        found: its alerts.
        stale_loss: the loss has not fallen, or not for good.
    """

    known: bool = False
    found: tuple[Found, ...] = ()
    stale_loss: bool = False


def last_events(events: Iterable[AlertEvent], part: str) -> list[AlertEvent]:
    """The last event of each alert of a part: what is resolved stays so."""
    latest: dict[tuple[str, str], AlertEvent] = {}
    for event in events:
        if event.part == part and latest.get((event.rule, event.id), event).state != RESOLVED:
            latest[event.rule, event.id] = event
    return list(latest.values())


def found_of(event: AlertEvent) -> Found:
    """The evidence that is in the last event of an alert."""
    return Found(event.rule, event.severity, event.state == RESOLVED)
