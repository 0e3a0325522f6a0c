"""What a receiver of events is, and the one that passes them on to several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mindpulse.watcher import Event


class Receiver(Protocol):
    """Somebody who is told what the watcher says."""

    def deliver(self, event: Event) -> None:
        """Passes one event on.

        Raises:
            OSError: it could not be delivered.
        """


class Many:
    """Delivers to all; one that fails costs only its own delivery, and is counted.

    Attributes:
        failures: how many deliveries failed, by position of the receiver.
        last_error: what the last failure was, "" if there was none.
    """

    def __init__(self, receivers: Sequence[Receiver]) -> None:
        self._receivers = tuple(receivers)
        self.failures = [0] * len(self._receivers)
        self.last_error = ""

    def deliver(self, event: Event) -> None:
        """Passes the event on to each receiver."""
        for position, receiver in enumerate(self._receivers):
            try:
                receiver.deliver(event)
            except OSError as error:
                self.failures[position] += 1
                self.last_error = f"{type(receiver).__name__}: {error}"
