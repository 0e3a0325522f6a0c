"""What carries a message, and what came of it.

Nothing is raised: an error of a library may quote an address, and an address may be a secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mindpulse.deliver.message import Message

SENT, RETRY, REFUSED = "sent", "retry", "refused"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One attempt.

    Attributes:
        state: "sent"; "retry" (it may work later); "refused" (the same again would not work).
        detail: what came back, one line without secrets.
        wait_s: how long the receiver asked to be left alone, seconds.
    """

    state: str
    detail: str = ""
    wait_s: float = 0.0


class Sender(Protocol):
    """What carries messages to one receiver. One that has `refresh_s` is told again, so often, of
    the alerts that are firing."""

    def send(self, message: Message, now: float) -> Outcome:
        """Makes one attempt, in bounded time, and raises nothing.

        Args:
            now: seconds since the epoch.
        """
