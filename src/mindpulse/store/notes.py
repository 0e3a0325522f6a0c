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

from mindpulse.store.files import FileLayer, make_folders

NOTES_NAME = "notes.jsonl"
MAX_PENDING = 10_000
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
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("kind"), str):
        return None
    step, wall_time = found.get("step"), found.get("wall_time")
    data = {key: value for key, value in found.items() if key not in _RESERVED}
    return Note(
        rank,
        attempt,
        found["kind"],
        step if isinstance(step, int) else None,
        float(wall_time) if isinstance(wall_time, int | float) else math.nan,
        data,
    )


class NotesWriter:
    """Appends lines to `notes.jsonl` of one rank."""

    def __init__(self, directory: Path, files: FileLayer) -> None:
        # While the disk is full the oldest notes give way.
        self.pending: deque[bytes] = deque(maxlen=MAX_PENDING)
        self._path = directory / NOTES_NAME
        self._files = files
        self._torn = False

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
        self.pending.clear()

    def _write(self, fd: int, data: bytes) -> None:
        end = self._files.fstat(fd).st_size
        if self._torn:  # half a line stands there: end it, so that only it is lost
            data = b"\n" + data
        written = self._files.pwrite(fd, data, end)
        self._torn = written < len(data)
        if self._torn:
            self._files.ftruncate(fd, end)
            self._torn = False
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
