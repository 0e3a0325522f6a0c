"""`alerts.jsonl`: what the watcher said and when, one object per line, in both languages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mindpulse.alerts.life import AlertEvent
from mindpulse.alerts.words import alert_text
from mindpulse.errors import StoreError
from mindpulse.jsonlines import LineTail, append, encode_line, locked, number
from mindpulse.messages import LANGUAGES
from mindpulse.rules.rule import Rule

ALERTS_FILE = "alerts.jsonl"


def read_alerts(run_dir: Path | str) -> list[AlertEvent]:
    """The alerts of a run as they were said; [] if no watcher ran. Bad lines are left out."""
    found = (_event(line) for line in LineTail(Path(run_dir) / ALERTS_FILE).poll())
    return [event for event in found if event is not None]


def read_alert(line: bytes) -> AlertEvent | None:
    """The alert of one line of the journal, None if it holds none."""
    return _event(line)


class Journal:
    """Appends alerts, each state of each alert once, also over restarts of the watcher.

    Args:
        run_dir: the run folder.
        rules: for the words and the actions of users' rules.

    Raises:
        StoreError: when it cannot be written.
    """

    def __init__(self, run_dir: Path, rules: Iterable[Rule]) -> None:
        self._path = run_dir / ALERTS_FILE
        self._rules = {rule.name: rule for rule in rules}
        self._said = {(event.id, event.state) for event in read_alerts(run_dir)}

    def add(self, events: Iterable[AlertEvent]) -> list[AlertEvent]:
        """Writes those that were not said before, and returns them."""
        fresh = [event for event in events if (event.id, event.state) not in self._said]
        if fresh:
            try:
                with locked(self._path, mode=0o644) as descriptor:
                    for event in fresh:
                        append(descriptor, encode_line(self.fields(event)))
            except OSError as error:
                raise StoreError(f"{self._path}: {error.strerror or error}") from error
        self._said.update((event.id, event.state) for event in fresh)
        return fresh

    def fields(self, event: AlertEvent) -> dict[str, object]:
        """An alert as an object that JSON can hold, with its words."""
        rule = self._rules.get(event.rule)
        advice = rule.action if rule else None
        return {
            **event_fields(event),
            "advice": {"request": advice.request, **advice.args} if advice else None,
            "message": {
                lang: alert_text(event, lang, rule.texts if rule else None) for lang in LANGUAGES
            },
        }


def event_fields(event: AlertEvent) -> dict[str, object]:
    """The fields of an alert by name."""
    return {
        "id": event.id,
        "rule": event.rule,
        "state": event.state,
        "severity": event.severity,
        "part": event.part,
        "step": event.step,
        "since_step": event.since_step,
        "wall_time": event.wall_time,
        "rank": event.rank,
        "attempt": event.attempt,
        "columns": list(event.columns),
        "evidence": dict(event.evidence),
    }


def _event(line: bytes) -> AlertEvent | None:
    try:
        found = json.loads(line)
        return _from_fields(found) if isinstance(found, dict) else None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None


def _from_fields(found: Mapping[str, Any]) -> AlertEvent:
    evidence = {str(key): number(value) for key, value in found["evidence"].items()}
    return AlertEvent(
        id=str(found["id"]),
        rule=str(found["rule"]),
        state=str(found["state"]),
        severity=str(found["severity"]),
        part=str(found["part"]),
        step=int(found["step"]),
        since_step=int(found["since_step"]),
        wall_time=float(found["wall_time"]),
        rank=int(found["rank"]),
        attempt=int(found["attempt"]),
        columns=tuple(str(name) for name in found["columns"]),
        evidence={key: value for key, value in evidence.items() if value is not None},
    )
