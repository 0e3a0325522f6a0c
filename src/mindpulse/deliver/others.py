"""Two small receivers: a file, and the many services of Apprise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mindpulse.deliver.message import Message
from mindpulse.deliver.outcome import RETRY, SENT, Outcome
from mindpulse.deliver.secret import Secret
from mindpulse.deliver.webhook import alert_object, document
from mindpulse.errors import UsageError
from mindpulse.jsonlines import append, encode_line, locked

APPRISE = "type 'apprise' needs the package Apprise; run: pip install 'mindpulse[apprise]'"


@dataclass(frozen=True, slots=True)
class Lines:
    """Appends one JSON object per alert to a file; a test is one object too."""

    path: Path

    def send(self, message: Message, now: float) -> Outcome:
        """Appends; delivered when all is written."""
        objects = [alert_object(alert) for alert in message.alerts]
        if message.notes or message.test:
            objects.append({**document(message, now), "alerts": []})
        try:
            with locked(self.path, mode=0o644) as descriptor:
                append(descriptor, b"".join(encode_line(o) for o in objects if isinstance(o, dict)))
        except OSError as error:
            return Outcome(RETRY, f"{self.path}: {error.strerror or error}")
        return Outcome(SENT, f"written to {self.path}")


@dataclass(frozen=True, slots=True)
class Apprise:
    """A service that Apprise knows, by its address. Apprise says whether it worked, not why not."""

    address: Secret

    def __post_init__(self) -> None:
        if not _apprise().add(self.address.reveal()):
            raise UsageError(
                "is no address that Apprise knows (not shown: it may be secret); see its list of "
                "services"
            )

    def send(self, message: Message, now: float) -> Outcome:
        """Sends title and body as a text."""
        found = _apprise()
        found.add(self.address.reveal())
        if found.notify(title=message.title(), body=message.body()):
            return Outcome(SENT, "taken by Apprise")
        return Outcome(RETRY, "Apprise could not deliver it; it does not say why")


def _apprise() -> Any:
    try:
        import apprise
    except ImportError:
        raise UsageError(APPRISE) from None
    return apprise.Apprise()
