"""Alertmanager, API v2: alerts as labels and times; it groups, silences and passes them on."""

from __future__ import annotations

import json
import math
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from mindpulse.alerts import FIRING
from mindpulse.deliver.http import Http
from mindpulse.deliver.message import Alert, Message, explain
from mindpulse.deliver.outcome import SENT, Outcome
from mindpulse.deliver.webhook import Key, iso_time

PATH = "/api/v2/alerts"
SHORTEST_S = 0.002  # an alert has to end after it began
TEST_S = 60.0  # how long the alert of a test stands


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """Posts alerts, and those that are firing again and again: one that is not heard of for
    `hold_s` is over for Alertmanager, so a watcher that is gone leaves nothing behind.

    Attributes:
        http: its address ends in `PATH`.
        labels: added to each alert.
        link: where a reader of the alert is sent, "" for nowhere.
        hold_s: how long an alert stands without being heard of, seconds.
    """

    http: Http
    key: Key | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    link: str = ""
    lang: str = "en"
    hold_s: float = 300.0

    @property
    def refresh_s(self) -> float:
        """How often alerts that are firing are posted again, seconds."""
        return self.hold_s / 4

    def send(self, message: Message, now: float) -> Outcome:
        """Posts; delivered when the answer is 2xx."""
        newest: dict[tuple[str, ...], dict[str, object]] = {}
        for alert in (*message.standing, *message.alerts):
            posted = self._object(alert, now)
            newest[_identity(alert)] = posted
        if message.test:
            newest[("test",)] = self._test(message, now)
        if not newest:  # notes only: this receiver has no place for them
            return Outcome(SENT, "nothing to post")
        body = json.dumps(list(newest.values()), ensure_ascii=False).encode(errors="replace")
        return self.http.post(body, headers=self.key.headers(body) if self.key else {})

    def _object(self, alert: Alert, now: float) -> dict[str, object]:
        event = alert.event
        starts, ends = self._times(alert, now)
        annotations = {
            "summary": alert.words.get(self.lang, event.rule),
            "description": explain(alert, "causes", self.lang),
            "next": explain(alert, "next", self.lang),
            "since_step": str(event.since_step),
            "columns": ", ".join(event.columns),
            "evidence": ", ".join(f"{term} = {v:.6g}" for term, v in event.evidence.items()),
            "run_dir": alert.place,
            "alert_id": event.id,
        }
        labels = {
            "alertname": event.rule,
            "severity": event.severity,
            "part": event.part,
            "run": alert.run,
            "rank": str(event.rank),
            "instance": socket.gethostname(),
        }
        return self._posted({**labels, **self.labels}, annotations, starts, ends)

    def _times(self, alert: Alert, now: float) -> tuple[float, float]:
        """When it began and ends. Of one that is over only the end is known here: Alertmanager
        joins it to the beginning that it was told before."""
        known = alert.event.wall_time if math.isfinite(alert.event.wall_time) else now
        if alert.event.state == FIRING:
            return min(known, now - SHORTEST_S), now + self.hold_s
        return min(known, now) - SHORTEST_S, min(known, now)

    def _test(self, message: Message, now: float) -> dict[str, object]:
        labels = {"alertname": "mindpulse-test", "severity": "info", **self.labels}
        annotations = {"summary": message.title(), "description": message.body()}
        return self._posted(labels, annotations, now - SHORTEST_S, now + TEST_S)

    def _posted(
        self, labels: Mapping[str, str], annotations: Mapping[str, str], starts: float, ends: float
    ) -> dict[str, object]:
        return {
            "labels": labels,
            "annotations": {key: value for key, value in annotations.items() if value},
            "startsAt": iso_time(starts),
            "endsAt": iso_time(ends),
            **({"generatorURL": self.link} if self.link else {}),
        }


def _identity(alert: Alert) -> tuple[str, ...]:
    """What the labels say: a later state of the same alert takes the place of an earlier one."""
    event = alert.event
    return (event.rule, event.severity, event.part, str(alert.run_dir), str(event.rank))
