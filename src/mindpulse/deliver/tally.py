"""What became of what one receiver was to be told."""

from __future__ import annotations

from dataclasses import dataclass


def counted(number: int, what: str) -> str:
    """A number of things.

    Example:
        >>> counted(1, "alert"), counted(2, "alert")
        ('1 alert', '2 alerts')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


@dataclass(slots=True)
class Tally:
    """Counts of one receiver.

    Attributes:
        sent: alerts that were delivered, in `messages` messages.
        refused: alerts that the receiver did not want.
        given_up: alerts that could not be delivered in time.
        notes_lost: words about actions that could not be delivered.
        left: alerts that wait for the next start of the watcher.
        last_error: what came back at the last failure, "" if there was none.
    """

    receiver: str
    sent: int = 0
    messages: int = 0
    refused: int = 0
    given_up: int = 0
    notes_lost: int = 0
    left: int = 0
    last_error: str = ""

    def sentence(self) -> str:
        """The counts in words.

        Example:
            >>> Tally("ops", sent=3, messages=1, left=2, last_error="HTTP 500").sentence()
            "receiver 'ops': 3 alerts sent in 1 message; 2 wait for the next start (HTTP 500)"
        """
        found = [f"{counted(self.sent, 'alert')} sent in {counted(self.messages, 'message')}"]
        lost = {
            "refused": self.refused,
            "given up": self.given_up,
            "notes lost": self.notes_lost,
            "wait for the next start": self.left,
        }
        found += [f"{count} {what}" for what, count in lost.items() if count]
        why = f" ({self.last_error})" if len(found) > 1 and self.last_error else ""
        return f"receiver {self.receiver!r}: {'; '.join(found)}{why}"

    @property
    def whole(self) -> bool:
        """Everything was delivered."""
        return not (self.refused or self.given_up or self.notes_lost or self.left)
