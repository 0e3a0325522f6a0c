"""What is known of each run of a fleet: one that is awake, and one that is not watched now."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mindpulse.errors import StoreError
from mindpulse.store.folder import attempts_of, ranks_of
from mindpulse.store.names import SUFFIX
from mindpulse.store.reader import Changes
from mindpulse.watcher.events import Event
from mindpulse.watcher.presence import Presence

Turn = Iterator[Iterable[Event]]


class Session(Protocol):
    """One run being watched, see `loop`."""

    def turn(self, changed: Changes, final: bool) -> Turn:
        """One look at the run, in portions."""

    def asleep(self, at_once: bool) -> bool:
        """Nothing more is expected; `at_once`: also of a run that was looked at only now."""


@dataclass(slots=True)
class Watched:
    """A run that is awake.

    Attributes:
        changed: what has changed since its last turn began; None for everything.
        turn: the turn under way.
        looked: its history was caught up with.
        finished: its last turn has begun.
    """

    run: Path
    session: Session
    presence: Presence
    changed: Changes = None
    turn: Turn | None = None
    looked: bool = False
    finished: bool = False

    def notice(self, folder: Path, names: set[str]) -> None:
        """Files of a folder have changed."""
        if self.changed is not None:
            self.changed = {**self.changed, folder: names | self.changed.get(folder, set())}

    @property
    def busy(self) -> bool:
        """There is something to do."""
        return self.turn is not None or self.changed is None or bool(self.changed)


@dataclass(slots=True)
class Absent:
    """A run that is not watched: it sleeps, or could not be watched.

    Attributes:
        size_bytes: what its newest attempt held when it fell asleep, None if it did not.
        until: it is tried again then, by the clock of the watcher.
    """

    size_bytes: int | None
    until: float


def size_bytes(run: Path) -> int:
    """What tells that a run was written: bytes of its newest attempt, attempts, ranks."""
    total = 0
    with suppress(OSError, StoreError):  # it may just be taken away
        attempts = attempts_of(run)
        folders = ranks_of(attempts[max(attempts)]) if attempts else {}
        total = len(attempts) + len(folders)
        for folder in folders.values():
            with os.scandir(folder) as entries:
                total += sum(e.stat().st_size for e in entries if e.name.endswith(SUFFIX))
    return total
