"""Notes: what happened, as text beside the numbers. One JSON object a line, append only."""

from __future__ import annotations

import errno
import json
import math
import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mindpulse.series import MAX_STEP, MIN_STEP
from mindpulse.store.files import FileLayer, make_folders, with_file

NOTES_NAME = "notes.jsonl"
# The kind of note that tells the first step of an attempt.
START_NOTE = "start"
# The kind of note that tells that a recorder was closed: nothing more comes in this attempt.
END_NOTE = "end"
MAX_PENDING = 10_000
# Lines that a reader recognises when a writer repeats them.
MAX_REPEATED = 256
_RESERVED = ("kind", "step", "wall_time")


@dataclass(frozen=True, slots=True)
class Note:
    """One note.

    Attributes:
        rank, attempt: whose.
        kind: what it is about: "start", "tag", "rows_lost", ...
        step: the step it belongs to, or None.
        wall_time: seconds since the epoch, UTC.
        data: what else was said.
    """

    rank: int
    attempt: int
    kind: str
    step: int | None
    wall_time: float
    data: dict[str, Any] = field(default_factory=dict)


def encode_note(note: Mapping[str, Any]) -> bytes:
    """One line. Values that JSON does not know become text, NaN and infinity too."""
    return json.dumps(_plain(note), ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(float(value))
    if isinstance(value, Mapping):
        return {str(_plain(str(key))): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    item = getattr(value, "tolist", None)  # NumPy scalars and arrays
    return _plain(item()) if callable(item) else _plain(str(value))


def decode_note(line: bytes, rank: int, attempt: int) -> Note | None:
    """The note of a line, None if the line is not one."""
    try:
        found = json.loads(line.strip(b"\0"))  # zeros: where a power loss took a line
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("kind"), str):
        return None
    data = {key: value for key, value in found.items() if key not in _RESERVED}
    return Note(
        rank,
        attempt,
        found["kind"],
        _step(found.get("step")),
        seconds_of(found.get("wall_time")),
        data,
    )


def _step(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and MIN_STEP <= value <= MAX_STEP:
        return value
    return None


def seconds_of(value: object) -> float:
    """A time as JSON has it, NaN if it is none."""
    try:
        return float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:  # a whole number of more than 308 digits
        return math.nan


class NotesWriter:
    """Appends lines to `notes.jsonl` of one rank."""

    def __init__(self, directory: Path, files: FileLayer) -> None:
        # While the disk is full the oldest notes give way.
        self.pending: deque[bytes] = deque(maxlen=MAX_PENDING)
        self._path = directory / NOTES_NAME
        self._files = files
        self._torn = self._new = False
        # Lines that the system has but the disk may not: written again if a sync fails.
        self._unsynced: deque[bytes] = deque(maxlen=MAX_REPEATED)

    def append(self, note: Mapping[str, Any]) -> None:
        """Keeps a note until the next flush."""
        self.pending.append(encode_note(note))

    def flush(self) -> None:
        """Hands all notes to the operating system; an OSError leaves them pending.

        If only closing fails, the lines stand there and are written again: a reader drops a
        line that is repeated.
        """
        if not self.pending:
            return
        make_folders(self._files, self._path.parent)
        fd = self._files.open(self._path, os.O_WRONLY | os.O_CREAT)
        try:
            self._write(fd, b"".join(self.pending))
        finally:
            self._files.close(fd)
        self._unsynced += self.pending
        self.pending.clear()

    def sync(self) -> None:
        """Waits until the notes are on the disk; after an OSError they are written again."""
        if not self._unsynced:
            return
        try:
            with_file(self._files, self._path, os.O_WRONLY, self._files.fdatasync)
            if self._new:
                self._files.sync_folder(self._path.parent)
        except FileNotFoundError:
            pass  # deleted with what it held
        except OSError:
            self.pending = deque([*self._unsynced, *self.pending], maxlen=MAX_PENDING)
            self._unsynced.clear()
            raise
        self._new = False
        self._unsynced.clear()

    def _write(self, fd: int, data: bytes) -> None:
        end = self._files.fstat(fd).st_size
        self._new = self._new or end == 0
        if self._torn:  # half a line stands there: end it, so that only it is lost
            data = b"\n" + data
        written = self._files.pwrite(fd, data, end)
        self._torn = written < len(data)
        if self._torn:
            self._files.ftruncate(fd, end)
            self._torn = False
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
