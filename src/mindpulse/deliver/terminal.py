"""Events as plain lines on a terminal or in a pipe."""

from __future__ import annotations

from typing import TextIO

from mindpulse.deliver.words import line
from mindpulse.watcher import Event


class Terminal:
    """Writes one line per event and flushes it.

    Example:
        >>> import sys
        >>> from mindpulse.watcher import ActionEvent
        >>> Terminal(sys.stdout).deliver(ActionEvent("advice", rule="big", verb="stop"))
        advice (big): stop the training; start `mindpulse watch --act` to let it be done
    """

    def __init__(self, stream: TextIO, lang: str = "en") -> None:
        self._stream = stream
        self._lang = lang

    def deliver(self, event: Event) -> None:
        """Writes the line of the event."""
        self._stream.write(line(event, self._lang) + "\n")
        self._stream.flush()
