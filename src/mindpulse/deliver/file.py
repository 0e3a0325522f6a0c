"""Events as JSON lines in a file, for whoever reads them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from mindpulse.alerts import AlertEvent
from mindpulse.deliver.words import line
from mindpulse.jsonlines import append, encode_line, locked
from mindpulse.messages import LANGUAGES
from mindpulse.watcher import Event


def event_object(event: Event) -> dict[str, object]:
    """The event as an object that JSON can hold: its fields, its kind, its words."""
    kind = {"kind": "alert"} if isinstance(event, AlertEvent) else {}
    return {**kind, **asdict(event), "message": {lang: line(event, lang) for lang in LANGUAGES}}


class File:
    """Appends one JSON object per event.

    Raises:
        OSError: `deliver` could not write.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)

    def deliver(self, event: Event) -> None:
        """Appends the event."""
        with locked(self._path, mode=0o644) as descriptor:
            append(descriptor, encode_line(event_object(event)))
