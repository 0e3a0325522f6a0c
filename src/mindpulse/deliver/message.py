"""What is told at once: one alert, or all that came while a receiver was limited, in words."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mindpulse.alerts import FIRING, AlertEvent
from mindpulse.messages import rule_text, text
from mindpulse.rules.rule import SEVERITIES

MAX_LINES = 20  # alerts listed one by one
MAX_EXPLAINED = 2  # alerts in a message up to which causes and next steps are told
ELLIPSIS = "..."


@dataclass(frozen=True, slots=True)
class Alert:
    """A line of `alerts.jsonl`.

    Attributes:
        run_dir: the run folder.
        words: the alert in one line, by language.
        fields: the whole object of the line.
    """

    event: AlertEvent
    run_dir: Path
    words: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, object] = field(default_factory=dict)

    @property
    def run(self) -> str:
        """A short name of the run."""
        return run_name(self.run_dir)

    @property
    def place(self) -> str:
        """The run folder as a text."""
        return printable(self.run_dir)


@dataclass(frozen=True, slots=True)
class Message:
    """What one delivery tells.

    Attributes:
        receiver: its name.
        lang: "en" or "zh".
        alerts: news, in the order in which they happened.
        notes: what the watcher did, in words.
        standing: alerts that are firing since an earlier message; for receivers that have to be
            told again and again.
        lost: how many alerts and notes could not be told before.
        test: a test message.
    """

    receiver: str
    lang: str = "en"
    alerts: Sequence[Alert] = ()
    notes: Sequence[str] = ()
    standing: Sequence[Alert] = ()
    lost: int = 0
    test: bool = False

    @property
    def firing(self) -> list[Alert]:
        """The alerts that begin."""
        return [alert for alert in self.alerts if alert.event.state == FIRING]

    @property
    def status(self) -> str:
        """ "test", "firing" (at least one alert begins), "resolved", or "actions" (notes only)."""
        if self.test:
            return "test"
        return "firing" if self.firing else "resolved" if self.alerts else "actions"

    @property
    def severity(self) -> str:
        """The highest of what begins, else of what ends; "info" if there is no alert."""
        found = [alert.event.severity for alert in self.firing or self.alerts]
        return max(found, key=rank_of, default=SEVERITIES[0])

    @property
    def run(self) -> str:
        """The short name of the run, or how many there are."""
        runs = list(dict.fromkeys(alert.run for alert in self.alerts))
        return runs[0] if len(runs) == 1 else self._say("runs", count=len(runs)) if runs else ""

    def title(self) -> str:
        """One line."""
        if self.status in ("test", "actions"):
            return self._say(f"title.{self.status}", receiver=self.receiver)
        one = "one" if len(self.alerts) == 1 else "many"
        return self._say(
            f"title.{self.status}.{one}",
            severity=text(f"severity.{self.severity}", self.lang),
            rule=self.alerts[0].event.rule,
            count=len(self.alerts),
            run=self.run,
        )

    def body(self, most_bytes: int | None = None) -> str:
        """Some lines below the title, cut to a number of bytes in UTF-8."""
        lines = [self._say("body.test")] if self.test else []
        lines += [self._line(alert) for alert in self.alerts[:MAX_LINES]]
        if (more := len(self.alerts) - MAX_LINES) > 0:
            lines.append(self._say("body.more", count=more))
        if len(self.firing) <= MAX_EXPLAINED:
            lines += [line for alert in self.firing for line in self._explained(alert)]
        lines += self.notes
        if self.lost:
            lines.append(self._say("body.lost", count=self.lost))
        places = dict.fromkeys(alert.place for alert in self.alerts)
        lines += [self._say("body.run", host=socket.gethostname(), path=path) for path in places]
        return cut("\n".join(lines), most_bytes)

    def text(self, most_bytes: int | None = None) -> str:
        """Title and body."""
        return cut(f"{self.title()}\n{self.body()}", most_bytes)

    def _say(self, key: str, **values: object) -> str:
        return text(f"deliver.{key}", self.lang, **values)

    def _line(self, alert: Alert) -> str:
        words = alert.words.get(self.lang) or alert.event.rule
        runs = {other.run_dir for other in self.alerts}
        return words if len(runs) == 1 else f"{alert.run}: {words}"

    def _explained(self, alert: Alert) -> list[str]:
        found = {part: explain(alert, part, self.lang) for part in ("causes", "next")}
        return [self._say(f"body.{part}", text=words) for part, words in found.items() if words]


def run_name(run_dir: Path) -> str:
    """A short name of a run: the last two parts of its folder.

    Example:
        >>> run_name(Path("/data/bert-large/summary"))
        'bert-large/summary'
    """
    return "/".join(Path(printable(run_dir)).parts[-2:]).lstrip("/")


def printable(path: Path) -> str:
    """A path as a text that any encoding can hold, whatever bytes its name has."""
    return os.fsencode(path).decode("utf-8", "replace")


def rank_of(severity: str) -> int:
    """How serious, as a number; one that is not known counts as the highest."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def explain(alert: Alert, part: str, lang: str) -> str:
    """Likely "causes" of an alert, or what to do "next"; "" for a rule of the user's own."""
    return rule_text(alert.event.rule, part, lang)


def cut(words: str, most_bytes: int | None) -> str:
    """The text within so many bytes of UTF-8, whole characters only.

    Example:
        >>> cut("梯度爆炸", 10), cut("short", 10)
        ('梯度...', 'short')
    """
    data = words.encode(errors="replace")
    if most_bytes is None or len(data) <= most_bytes:
        return words
    return data[: max(0, most_bytes - len(ELLIPSIS))].decode(errors="ignore") + ELLIPSIS
