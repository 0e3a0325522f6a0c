"""Reading one file: all of it, or what is new since the last look.

Three things can be wrong, and each has its own answer. The file ends within a row: wait, the
writer may be at work. A row is damaged: it is counted and left out. The beginning is damaged
or of another make: the rows are salvaged if there are any, else the file is given up.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindpulse.errors import FormatError, StoreError
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.codec import RowCodec
from mindpulse.store.format import Header, decode_header
from mindpulse.store.names import parse_name
from mindpulse.store.salvage import salvage_header

_HEADER_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file as read.

    Attributes:
        path: where.
        header: None if no row can be read from it.
        rows: the rows that are whole and undamaged.
        damaged: (T,) True for each damaged row among all whole rows of the file.
        size: bytes of the file.
        torn_bytes: bytes behind the last whole row.
        problem: what is wrong with the beginning, "" if nothing.
    """

    path: Path
    header: Header | None
    rows: Rows
    damaged: NDArray[np.bool_]
    size: int
    torn_bytes: int = 0
    problem: str = ""


def read_file(path: Path) -> FileContent:
    """Reads a file to its end.

    Raises:
        StoreError: the file cannot be opened or read.

    Example:
        >>> read_file(Path(folder) / "train_loss.ms").rows.values
        array([[2.5]])
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    header, problem = open_header(data, path)
    if header is None:
        none = np.empty(0, np.bool_)
        return FileContent(path, None, Rows.empty(1), none, len(data), len(data), problem)
    codec = RowCodec(header.spec)
    body = np.frombuffer(data, np.uint8)[header.size :]
    rows, damaged = codec.decode(body)
    return FileContent(
        path,
        header,
        rows[~damaged] if damaged.any() else rows,
        damaged,
        len(data),
        len(body) % codec.row_bytes,
        problem,
    )


def open_header(data: bytes, path: Path) -> tuple[Header | None, str]:
    """The header of a file and what is wrong with it; it may be salvaged, or None."""
    try:
        header = decode_header(data)
        problem = "" if header else f"the file ends within its header, after {len(data)} bytes"
    except FormatError as error:
        header, problem = None, str(error)
    named = parse_name(path.name)
    if header is None and named is not None:  # a damaged length, too, looks like a cut header
        header = salvage_header(data, named[0])
    return header, problem


def read_header(path: Path) -> tuple[Header | None, str]:
    """The header of a file and what is wrong with it, without reading its rows.

    Raises:
        StoreError: the file cannot be opened or read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_HEADER_BYTES)
            header, problem = open_header(data, path)
            if problem:  # longer than most, or damaged
                return open_header(data + file.read(), path)
    except OSError as error:
        raise _unreadable(path, error) from error
    return header, ""


def _unreadable(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{path}: cannot be read: {error.strerror}")


class FileTail:
    """Reads what is new in a file, again and again, while somebody writes it.

    Damaged rows at the very end are looked at again later: on a network file system they may
    be rows that have not arrived yet. If the file is replaced or shrinks, reading begins
    anew.

    Attributes:
        header: what the file is; None until enough of it is there.
        damaged_rows: rows that were left out so far.
        problem: why nothing can be read, "" if all is well.

    Example:
        >>> tail = FileTail(Path(folder) / "train_loss.ms")
        >>> len(tail.poll()), len(tail.poll())
        (1, 0)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._forget((0, 0))

    def _forget(self, identity: tuple[int, int]) -> None:
        self.header: Header | None = None
        self.damaged_rows = 0
        self.problem = ""
        self._identity = identity
        self._offset = 0
        self._seen_size = 0

    @property
    def spec(self) -> SeriesSpec | None:
        """The series, None until the header is there."""
        return self.header.spec if self.header else None

    def poll(self) -> Rows:
        """The rows since the last call; none if the file is missing.

        Raises:
            StoreError: the file cannot be read, for another reason than that it is missing.
        """
        try:
            return self._poll()
        except FileNotFoundError:
            return self._nothing()
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def _poll(self) -> Rows:
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            stat = os.fstat(fd)
            identity = (stat.st_dev, stat.st_ino)
            if identity != self._identity or stat.st_size < self._offset:
                self._forget(identity)
            if self.header is None and stat.st_size == self._seen_size:
                return self._nothing()
            self._seen_size = stat.st_size
            return self._read(fd, stat.st_size)
        finally:
            os.close(fd)

    def _nothing(self) -> Rows:
        spec = self.spec
        return Rows.empty(spec.width, spec.dtype) if spec else Rows.empty(1)

    def _read(self, fd: int, size: int) -> Rows:
        data = _read_range(fd, self._offset, size)
        if self.header is None:
            self.header, self.problem = open_header(data, self.path)
            if self.header is None:
                return self._nothing()
            self._offset = self.header.size
            data = data[self.header.size :]
        return self._decode(RowCodec(self.header.spec), data)

    def _decode(self, codec: RowCodec, data: bytes) -> Rows:
        rows, damaged = codec.decode(data)
        if damaged.any():
            whole = np.flatnonzero(~damaged)
            rows = rows[: int(whole[-1]) + 1 if len(whole) else 0]
            damaged = damaged[: len(rows)]
        self._offset += len(rows) * codec.row_bytes
        self.damaged_rows += int(damaged.sum())
        return rows[~damaged] if damaged.any() else rows


def _read_range(fd: int, start: int, end: int) -> bytes:
    pieces = []
    while start < end:
        piece = os.pread(fd, end - start, start)
        if not piece:
            break
        pieces.append(piece)
        start += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
