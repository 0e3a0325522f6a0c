"""What one receiver is to be told, when, and what follows from what came back. No threads here."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mindpulse.alerts import FIRING, AlertEvent
from mindpulse.deliver.message import Alert, Message, rank_of
from mindpulse.deliver.outcome import RETRY, SENT, Outcome
from mindpulse.deliver.pace import Bucket, pause_s
from mindpulse.deliver.secret import redact
from mindpulse.deliver.settings import Target
from mindpulse.deliver.source import Pending, Source
from mindpulse.deliver.tally import Tally, counted

MAX_PENDING = 500  # alerts in memory; the rest waits in the journal
MAX_NOTES = 100
MARKS = ("grouped_under", "inhibited_by", "silenced")  # told with another alert, or to nobody


class Courier:
    """Carries the alerts of some runs to one receiver: `look`, `due`, `attempt`, again and again.

    Args:
        report: is told, in one sentence, when a receiver begins to fail, loses something, recovers.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        target: Target,
        report: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        self.settings = target.settings
        self.tally = Tally(self.settings.name)
        self._sender = target.sender
        self._refresh_s = float(getattr(target.sender, "refresh_s", 0.0))
        self._report = report
        self._clock = clock
        self._rng = rng or random.Random()
        self._bucket = Bucket(self.settings.every_s, self.settings.burst)
        self._lock = threading.Lock()  # of the notes: another thread adds them
        self._notes: deque[str] = deque()
        self._new: deque[Source] = deque()
        self._sources: list[Source] = []
        self._pending: list[Pending] = []
        self._first_at: float | None = None
        self._standing: dict[tuple[Path, str], Alert] = {}
        self._refresh_at = 0.0
        self._untold = 0
        self._failures = 0
        self._retry_at = 0.0
        self._asked_until = 0.0  # the receiver asked for this pause
        self._tried_since: dict[Pending, float] = {}

    # For any thread.

    def open(self, run_dir: Path, first: AlertEvent | None = None) -> None:
        """Also carries the alerts of this run, from `first` on, or from now on."""
        source = Source(run_dir, self.settings.name, self._wanted, first)
        self._saved(source.save)
        self._new.append(source)

    def note(self, words: str) -> None:
        """Also tells this; it is kept in memory only."""
        with self._lock:
            if len(self._notes) < MAX_NOTES:
                self._notes.append(words)
            else:
                self.tally.notes_lost += 1
                self._untold += 1

    # For one thread.

    def look(self) -> None:
        """Takes in what is new, and drops what was tried for too long."""
        self._gather()
        self._give_up()

    def due(self, closing: bool = False) -> float | None:
        """When the next attempt is to be made; None: there is nothing to tell.

        Args:
            closing: do not wait for others, nor for the rate limit.
        """
        now, times = self._clock(), []
        if self._first_at is not None:
            full = len(self._pending) >= MAX_PENDING
            together = now if full else self._first_at + self.settings.group_s
            times.append(now if closing else max(together, self._bucket.free_at(now)))
        if self._standing and not closing:
            times.append(self._refresh_at)
        return max(min(times), self._retry_at, self._asked_until) if times else None

    def attempt(self) -> None:
        """Tells all that is pending in one message."""
        items, notes = self._batch()
        message = Message(
            self.settings.name,
            self.settings.lang,
            tuple(item.alert for item in items),
            tuple(notes),
            tuple(self._standing.values()),
            self._untold,
        )
        now = self._clock()
        if items or notes:
            self._bucket.take(now)
        for item in items:
            self._tried_since.setdefault(item, now)
        outcome = self._sender.send(message, time.time())
        if outcome.state == RETRY:
            self._failed(outcome)
        elif outcome.state == SENT:
            self._sent(items, notes)
        else:
            self._refused(outcome.detail, items, notes)

    def drop(self, why: str) -> None:
        """Gives up all that is pending."""
        self._refused(why, *self._batch())

    def hurry(self) -> None:
        """The next attempt does not wait for the pause between attempts."""
        self._retry_at = 0.0

    def end(self) -> None:
        """If nothing is left to tell, that is noted."""
        for source in self._sources if not self._pending else ():
            if not source.rest():
                self._saved(source.passed_over)

    def count_left(self) -> None:
        """Counts what is not delivered."""
        self.tally.left = len(self._pending) + sum(source.rest() for source in self._sources)
        self.tally.notes_lost += len(self._notes)

    # What is pending.

    def _gather(self) -> None:
        while self._new:
            source = self._new.popleft()
            self._sources.append(source)
            if self._refresh_s:
                run = source.run_dir
                self._standing |= {(run, key): a for key, a in source.standing().items()}
        for source in self._sources:
            self._saved(source.save)
            self._pending += source.read(MAX_PENDING - len(self._pending))
        if self._first_at is None and (self._pending or self._notes):
            self._first_at = self._clock()

    def _give_up(self) -> None:
        """It is always the oldest that was tried for longest."""
        old, now = 0, self._clock()
        for item in self._pending:
            if now - self._tried_since.get(item, now) <= self.settings.give_up_s:
                break
            old += 1
        if old:
            self.tally.given_up += old
            self._untold += old
            self._say(f"gave up on {counted(old, 'alert')} after {self.settings.give_up_s:g} s")
            self._dealt(old, given_up=old)

    def _batch(self) -> tuple[list[Pending], list[str]]:
        with self._lock:
            return list(self._pending), list(self._notes)

    def _wanted(self, alert: Alert) -> bool:
        if any(alert.fields.get(mark) for mark in MARKS):
            return False
        if alert.event.state != FIRING and not self.settings.resolved:
            return False
        return rank_of(alert.event.severity) >= rank_of(self.settings.min_severity)

    # What came back.

    def _failed(self, outcome: Outcome) -> None:
        now = self._clock()
        self._failures += 1
        self._retry_at = now + pause_s(self._failures, self._rng)
        self._asked_until = now + outcome.wait_s
        if self._failures == 1 or outcome.detail != self.tally.last_error:
            self._say(f"not delivered yet, is tried again: {outcome.detail}")
        self.tally.last_error = outcome.detail

    def _sent(self, items: list[Pending], notes: list[str]) -> None:
        if self._failures:
            self._say("works again")
        self.tally.sent += len(items)
        self.tally.messages += bool(items or notes)
        self._untold = 0
        for item in items if self._refresh_s else ():
            key = item.source.run_dir, item.alert.event.id
            if item.alert.event.state == FIRING:
                self._standing[key] = item.alert
            else:
                self._standing.pop(key, None)
        self._done(items, notes, sent=len(items))

    def _refused(self, why: str, items: list[Pending], notes: list[str]) -> None:
        self.tally.last_error = why
        self.tally.refused += len(items)
        self.tally.notes_lost += len(notes)
        self._untold += len(items) + len(notes)
        self._say(f"refused {counted(len(items), 'alert')}: {why}")
        self._done(items, notes, refused=len(items))

    def _done(self, items: list[Pending], notes: list[str], **told: object) -> None:
        self._failures, self._retry_at, self._asked_until = 0, 0.0, 0.0
        self._refresh_at = self._clock() + self._refresh_s
        with self._lock:
            for _ in notes:
                self._notes.popleft()
        self._dealt(len(items), **told)

    def _dealt(self, count: int, **told: object) -> None:
        """The first so many of what is pending are dealt with: written down, and forgotten."""
        done, self._pending = self._pending[:count], self._pending[count:]
        self._first_at = self._clock() if self._pending else None
        for item in done:
            self._tried_since.pop(item, None)
        for source, end in {item.source: item.end for item in done}.items():
            waiting = any(item.source is source for item in self._pending)
            self._saved(partial(source.dealt, end, waiting, **told))

    def _saved(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            words = f"cannot note what was delivered: {error.strerror or error}"
            if words != self.tally.last_error:
                self._say(words)
            self.tally.last_error = words

    def _say(self, words: str) -> None:
        self._report(redact(f"receiver {self.settings.name!r}: {words}"))
