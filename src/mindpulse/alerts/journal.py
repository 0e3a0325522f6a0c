"""`alerts.jsonl`: what the watcher said and when, one object per line, in both languages."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mindpulse.alerts.life import FIRING, AlertEvent
from mindpulse.alerts.silence import Silences, iso
from mindpulse.alerts.words import alert_text
from mindpulse.errors import StoreError
from mindpulse.jsonlines import LineTail, append, encode_line, locked, number
from mindpulse.messages import LANGUAGES
from mindpulse.rules.rule import Rule

ALERTS_FILE = "alerts.jsonl"
MARKS = ("origin", "grouped_under", "inhibited_by", "silenced")


def read_alerts(run_dir: Path | str) -> list[AlertEvent]:
    """The alerts of a run as they were said; [] if no watcher ran. Bad lines are left out."""
    found = (read_alert(line) for line in LineTail(Path(run_dir) / ALERTS_FILE).poll())
    return [event for event in found if event is not None]


class Journal:
    """Appends alerts, each state of each alert once, also over restarts of the watcher.

    Args:
        run_dir: the run folder.
        rules: for the words and the actions of users' rules.
        clock: the time in seconds since the epoch; silences end by it.

    Raises:
        StoreError: when it cannot be written.
    """

    def __init__(
        self, run_dir: Path, rules: Iterable[Rule], clock: Callable[[], float] = time.time
    ) -> None:
        self._path = run_dir / ALERTS_FILE
        self._silences = Silences(run_dir)
        self._clock = clock
        self._said: set[tuple[str, str]] = set()
        self._open: dict[str, AlertEvent] = {}
        self._rules = {rule.name: rule for rule in rules}
        self._note(read_alerts(run_dir))

    def firing(self) -> list[AlertEvent]:
        """The alerts that were said to begin and not yet to be over."""
        return list(self._open.values())

    def is_silenced(self, alert: str) -> bool:
        """Whether an alert is firing that nobody is to be told."""
        event = self._open.get(alert)
        return event is not None and bool(event.silenced)

    def add(self, events: Iterable[AlertEvent]) -> list[AlertEvent]:
        """Writes those that were not said before, and returns them with their marks."""
        new = [event for event in events if (event.id, event.state) not in self._said]
        fresh = [self._marked(event) for event in new]
        self._write(fresh)
        return fresh

    def after_silence(self) -> list[AlertEvent]:
        """Alerts that are still firing when their silence is over: said once more, aloud."""
        silenced = [event for event in self._open.values() if event.silenced]
        if not silenced:
            return []
        now = self._clock()
        loud = [e for e in silenced if not self._silences.until(e.rule, now)]
        fresh = [replace(event, silenced="") for event in loud]
        self._write(fresh)
        return fresh

    def _marked(self, event: AlertEvent) -> AlertEvent:
        """An end is told where the beginning was; a beginning unless somebody silenced it."""
        begun = self._open.get(event.id)
        if event.state == FIRING:
            until = self._silences.until(event.rule, self._clock())
            return replace(event, silenced=iso(until)) if until else event
        if begun is None:
            return event
        return replace(
            event,
            grouped_under=begun.grouped_under,
            inhibited_by=begun.inhibited_by,
            silenced=begun.silenced,
        )

    def _write(self, events: list[AlertEvent]) -> None:
        if events:
            try:
                with locked(self._path, mode=0o644) as descriptor:
                    for event in events:
                        append(descriptor, encode_line(self.fields(event)))
            except OSError as error:
                raise StoreError(f"{self._path}: {error.strerror or error}") from error
        self._note(events)

    def _note(self, events: Iterable[AlertEvent]) -> None:
        for event in events:
            self._said.add((event.id, event.state))
            if event.state == FIRING:
                self._open[event.id] = event
            else:
                self._open.pop(event.id, None)

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
        "origin": event.origin,
        "grouped_under": event.grouped_under,
        "inhibited_by": event.inhibited_by,
        "silenced": event.silenced,
    }


def read_alert(line: bytes) -> AlertEvent | None:
    """The alert of one line of the journal, None if it holds none."""
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
        # Journals of earlier versions know no marks.
        **{key: str(found.get(key, "")) for key in MARKS},
    )
