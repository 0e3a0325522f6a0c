"""JSON lines that several processes append to and read on: one object per line.

Used by `control.jsonl` and `alerts.jsonl`. JSON knows no NaN and no infinity, and a monitor meets
both, so they are written as the texts "nan", "inf" and "-inf" (`plain`) and understood again by
`number`. Standard library only: the training process imports this.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MAX_LINE_BYTES = 1 << 20
_READ_BYTES = 1 << 22
_NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def plain(value: object) -> object:
    """The value as JSON can hold it: non-finite numbers become text, at any depth.

    Example:
        >>> plain({"grad_norm": float("inf"), "steps": (1, 2)})
        {'grad_norm': 'inf', 'steps': [1, 2]}
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def number(value: object) -> float | None:
    """The number that `plain` wrote, or None if the value is not one.

    Example:
        >>> number("inf"), number(2), number(True), number("two")
        (inf, 2.0, None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:  # a whole number of more than 308 digits
            return None
    return _NON_FINITE.get(value) if isinstance(value, str) else None


def encode_line(fields: dict[str, object]) -> bytes:
    """One line, newline included."""
    text = json.dumps(plain(fields), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode() + b"\n"


@contextmanager
def locked(path: Path, mode: int = 0o600) -> Iterator[int]:
    """Opens the file for reading and appending under an exclusive lock, and yields its descriptor.

    A file system without locks (some network mounts) is used without: one line is one write.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, mode)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def append(descriptor: int, line: bytes) -> None:
    """Appends one line in one write.

    A line that a killed writer left unfinished is closed first, so that it costs only itself.
    """
    size = os.fstat(descriptor).st_size
    torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    data = b"\n" + line if torn else line
    written = os.write(descriptor, data)
    if written < len(data):
        os.ftruncate(descriptor, size)
        raise OSError(28, f"only {written} of {len(data)} bytes could be written")


class LineTail:
    """Reads the whole lines that were added since the last call; an unfinished one waits.

    A file that became shorter (someone truncated or replaced it) is read from its beginning.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._inode = -1

    def poll(self) -> list[bytes]:
        """New whole lines, without their newline; [] while the file does not exist."""
        try:
            status = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return []
        if status.st_ino != self._inode or status.st_size < self._offset:
            self._inode, self._offset = status.st_ino, 0
        if status.st_size == self._offset:
            return []
        lines: list[bytes] = []
        with self.path.open("rb", buffering=0) as file:
            while (block := self._read_block(file.fileno())) is not None:
                lines += block
        return [line for line in lines if line.strip()]

    def _read_block(self, descriptor: int) -> list[bytes] | None:
        data = os.pread(descriptor, _READ_BYTES, self._offset)
        end = data.rfind(b"\n") + 1
        if end == 0:
            # A "line" of 4 MiB is none of ours: step over it instead of waiting for ever.
            self._offset += len(data) if len(data) == _READ_BYTES else 0
            return [] if len(data) == _READ_BYTES else None
        self._offset += end
        return data[: end - 1].split(b"\n")
