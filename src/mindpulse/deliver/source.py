"""The queue of a receiver is the journal of alerts itself, and an offset into it.

`alerts.jsonl` holds every alert before anybody is told of it, and `delivered.jsonl` beside it
keeps, for each receiver, up to which byte it was told: one line after each delivery. So nothing
waits in memory that is not on the disk, and a watcher that was killed goes on where it was. Only
an alert that was delivered in the very moment of a kill, before that line was written, is
delivered again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mindpulse.alerts import FIRING, AlertEvent
from mindpulse.alerts.journal import ALERTS_FILE, read_alert
from mindpulse.deliver.message import Alert
from mindpulse.jsonlines import LineTail, append, encode_line, locked
from mindpulse.messages import LANGUAGES

DELIVERED_FILE = "delivered.jsonl"
BLOCK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Pending:
    """An alert that is to be told.

    Attributes:
        end: where its line ends in the journal, bytes.
    """

    source: Source
    alert: Alert
    end: int


class Source:
    """The alerts of one run for one receiver.

    Of a run that was watched before this receiver was there, it is told what is still firing, and
    not the past.

    Args:
        wanted: whether the receiver wants to be told of an alert.
        first: the past ends before this alert; None: it is what the journal holds now.
    """

    def __init__(
        self,
        run_dir: Path,
        receiver: str,
        wanted: Callable[[Alert], bool],
        first: AlertEvent | None = None,
    ) -> None:
        self.run_dir = run_dir
        self._receiver = receiver
        self._wanted = wanted
        self._path = run_dir / ALERTS_FILE
        found = self._last_state()
        self._saved = found is not None
        self._dealt, self._past = found or (0, self._begin_of(first))
        self._read = self._dealt
        self._standing = self._firing_before(self._past)

    def read(self, most: int) -> list[Pending]:
        """The next alerts that are wanted, a limited number."""
        if self._size() < self._read:  # another journal stands there now
            self._dealt = self._past = self._read = 0
        found: list[Pending] = []
        for end, line in self._lines(self._read) if most > 0 else ():
            self._read = end
            alert = self._alert(line)
            if alert is not None and self._news(alert, end) and self._wanted(alert):
                found.append(Pending(self, alert, end))
                if len(found) >= most:
                    break
        return found

    def rest(self) -> int:
        """How many alerts that are wanted have not been read yet."""
        count, at = 0, self._read
        for end, line in self._lines(at):
            alert = self._alert(line)
            count += alert is not None and self._news(alert, end) and self._wanted(alert)
        return count

    def dealt(self, end: int, pending: bool, **told: object) -> None:
        """All up to `end` is dealt with; if nothing else is pending, all that was read.

        Raises:
            OSError: this could not be written down.
        """
        self._dealt = end if pending else self._read
        self._saved = False
        self.save(**told)

    def save(self, **told: object) -> None:
        """Writes down how far it is, once, as soon as there is a run folder."""
        if self._saved or not self.run_dir.is_dir():
            return
        state = {"receiver": self._receiver, "offset": self._dealt, "past": self._past}
        line = encode_line({**state, "time": time.time(), **told})
        with locked(self.run_dir / DELIVERED_FILE, mode=0o644) as descriptor:
            append(descriptor, line)
        self._saved = True

    def passed_over(self) -> None:
        """Nothing is pending: what was read and not wanted need not be read again."""
        if self._read > self._dealt:
            self.dealt(self._read, pending=False)

    def standing(self) -> dict[str, Alert]:
        """The alerts that were told as firing and not yet as resolved, by id."""
        found: dict[str, Alert] = {}
        for end, line in self._lines(0, self._dealt):
            alert = self._alert(line)
            if alert is None or not self._wanted(alert):
                continue
            if alert.event.state != FIRING:
                found.pop(alert.event.id, None)
            elif self._news(alert, end):
                found[alert.event.id] = alert
        return found

    def _news(self, alert: Alert, end: int) -> bool:
        """Not of the past, or firing since then."""
        if end > self._past:
            return True
        return alert.event.state == FIRING and alert.event.id in self._standing

    def _firing_before(self, end: int) -> set[str]:
        firing: set[str] = set()
        for _, line in self._lines(0, end):
            if (event := read_alert(line)) is not None:
                (firing.add if event.state == FIRING else firing.discard)(event.id)
        return firing

    def _lines(self, at: int, last: int | None = None) -> Iterator[tuple[int, bytes]]:
        """The lines from an offset on, up to one, each with where it ends."""
        while last is None or at < last:
            found = lines_from(self._path, at)
            for end, line in found:
                if last is not None and end > last:
                    return
                yield end, line
            if not found:
                return
            at = found[-1][0]

    def _alert(self, line: bytes) -> Alert | None:
        event = read_alert(line)
        if event is None:
            return None
        fields = json.loads(line)
        message = fields.get("message")
        words = message if isinstance(message, dict) else {}
        told = {lang: words[lang] for lang in LANGUAGES if isinstance(words.get(lang), str)}
        return Alert(event, self.run_dir, told, fields)

    def _begin_of(self, event: AlertEvent | None) -> int:
        """Where the line of an alert begins, the end of the journal if it is not there."""
        begin, told = 0, (event.id, event.state) if event else None
        for end, line in self._lines(0) if told else ():
            found = read_alert(line)
            if found and (found.id, found.state) == told:
                return begin
            begin = end
        return self._size()

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    def _last_state(self) -> tuple[int, int] | None:
        """What was last written down for this receiver: offset, and where the past ends."""
        state = None
        try:
            lines = LineTail(self.run_dir / DELIVERED_FILE).poll()
        except OSError:
            return None
        for line in lines:
            try:
                found = json.loads(line)
                if found["receiver"] == self._receiver:
                    state = max(0, int(found["offset"])), max(0, int(found.get("past", 0)))
            except (ValueError, TypeError, KeyError, RecursionError):
                continue
        return state


def lines_from(path: Path, offset: int) -> list[tuple[int, bytes]]:
    """The whole lines of the next block of a file, each with the offset at which it ends.

    A line without an end that is longer than any of ours is stepped over.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        data, size = os.pread(descriptor, BLOCK_BYTES, offset), BLOCK_BYTES
        while len(data) == size and b"\n" not in data and size < LONGEST_LINE_BYTES:
            size *= 2
            data = os.pread(descriptor, size, offset)
    finally:
        os.close(descriptor)
    if b"\n" not in data:
        return [(offset + len(data), b"")] if len(data) >= LONGEST_LINE_BYTES else []
    found = []
    for line in data.split(b"\n")[:-1]:
        offset += len(line) + 1
        found.append((offset, line))
    return found
