"""Reading one file: all of it, or what is new since the last look.

Three things can be wrong, and each has its own answer. The file ends within a row: wait, the
writer may be at work. A row is damaged: it is counted and left out. The beginning is damaged
or of another make: the rows are salvaged if there are any, else the file is given up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindpulse.errors import StoreError
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.breaks import MAX_BREAKS, next_line, rows_between
from mindpulse.store.codec import RowCodec
from mindpulse.store.format import PAYLOAD_OFFSET, Header
from mindpulse.store.part_file import READING, PartFile, read_rows
from mindpulse.store.patience import Patience, is_unwritten
from mindpulse.store.pieces import Piece, Stretch

# So much of the header holds the tag and the time at which the file was begun; of a row, its sum.
HEADER_MARK_BYTES, ROW_MARK_BYTES = 512, 64


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
    part = PartFile.at(path)
    if part.header is None:
        none = np.empty(0, np.bool_)
        return FileContent(path, None, Rows.empty(1), none, part.size, part.size, part.problem)
    rows, damaged = read_rows(part)
    torn = part.line.torn_bytes
    return FileContent(path, part.header, rows, damaged, part.size, torn, part.problem)


def _unreadable(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{path}: cannot be read: {error.strerror}")


class FileTail:
    """Reads what is new in a file, again and again, while somebody writes it.

    Rows that have not arrived yet are waited for: damaged rows at the very end and, on a network
    file system, zeros before rows that are there already. A file that is replaced by a copy is read
    on where it was; if it is another file, or shrank, reading begins anew.

    Args:
        path: where; the file need not exist yet.
        clock: the time in seconds since the epoch.

    Attributes:
        header: what the file is; None until enough of it is there.
        damaged_rows: rows that were left out so far.
        problem: why nothing can be read, "" if all is well.
        restarts: how often reading began anew.
        more: the last call was not allowed to read all that is there.

    Example:
        >>> tail = FileTail(Path(folder) / "train_loss.ms")
        >>> len(tail.poll()), len(tail.poll())
        (1, 0)
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._name = os.fspath(path)
        self.restarts = -1
        self.more = False
        self._clock = clock
        self._begin()

    def _begin(self) -> None:
        self.header: Header | None = None
        self._codec: RowCodec | None = None
        self.damaged_rows = 0
        self.problem = ""
        self.restarts += 1
        self._offset = self._breaks = 0
        self._seen: tuple[int, ...] = ()
        # Bytes that tell this file from another: of its header, and of the last row that was read.
        self._marks: list[tuple[int, bytes]] = []
        self._patience = Patience()

    @property
    def spec(self) -> SeriesSpec | None:
        """The series, None until the header is there."""
        return self.header.spec if self.header else None

    def poll(self, most_bytes: int | None = None) -> Rows:
        """The rows since the last call; none if the file is missing.

        Args:
            most_bytes: about so many are read, at least one row; None for all.

        Raises:
            StoreError: the file cannot be read, for another reason than that it is missing.
        """
        try:
            fd = os.open(self._name, READING)
            try:
                return self._poll(fd, os.fstat(fd), most_bytes)
            finally:
                os.close(fd)
        except FileNotFoundError:
            return self._nothing()
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def _poll(self, fd: int, stat: os.stat_result, most_bytes: int | None) -> Rows:
        seen = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if seen == self._seen and not self._patience.waits and not self.more:
            return self._nothing()
        if seen != self._seen and not self._goes_on(fd, stat.st_size):
            self._begin()
        self._seen = seen
        self._patience.look(self._clock(), stat.st_mtime, stat.st_size)
        return self._read(fd, stat.st_size, most_bytes)

    def _goes_on(self, fd: int, size: int) -> bool:
        same = all(os.pread(fd, len(mark), at) == mark for at, mark in self._marks)
        return same and size >= self._offset

    def _nothing(self) -> Rows:
        spec = self.spec
        return Rows.empty(spec.width, spec.dtype) if spec else Rows.empty(1)

    def _read(self, fd: int, size: int, most_bytes: int | None) -> Rows:
        self.more = False
        if self.header is None and not self._read_header(fd):
            return self._nothing()
        codec = self._codec
        if codec is None:
            return self._nothing()
        rows = self._in_line(fd, size, codec, most_bytes)
        if not self.more and self._offset != size and self._moved_on(fd, size, codec):
            rows = Rows.concat([rows, *self._further_lines(fd, size, codec)])
        self._mark(fd)
        return rows

    def _further_lines(self, fd: int, size: int, codec: RowCodec) -> Iterator[Rows]:
        yield self._in_line(fd, size, codec)
        while self._moved_on(fd, size, codec):
            yield self._in_line(fd, size, codec)

    def _in_line(self, fd: int, size: int, codec: RowCodec, most_bytes: int | None = None) -> Rows:
        begin, there = self._offset, (size - self._offset) // codec.row_bytes
        most = there if most_bytes is None else max(1, most_bytes // codec.row_bytes)
        self.more = most < there
        rows = self._take_rows(fd, min(most, there), codec)
        if self.more and self._offset == begin:  # nothing but damage: what follows tells its end
            self.more = False
            rows = self._take_rows(fd, there, codec)
        return rows

    def _take_rows(self, fd: int, count: int, codec: RowCodec) -> Rows:
        stretch = Stretch(fd, self._offset, codec.layout)
        copies = [(codec.rows_of(p.rows), _whole(p)) for p in stretch.pieces(0, count)]
        if not copies:
            return self._nothing()
        whole = np.concatenate([mask for _, mask in copies])
        return self._take(fd, Rows.concat([rows for rows, _ in copies]), whole, codec.row_bytes)

    def _moved_on(self, fd: int, size: int, codec: RowCodec) -> bool:
        """Whether the rows go on out of line, and nothing is waited for before that."""
        if self._patience.waits or self._breaks == MAX_BREAKS:
            return False
        after = next_line(fd, self._offset, size, codec.layout)
        if after is None:
            return False
        self.damaged_rows += rows_between(self._offset, after, codec.row_bytes)
        self._offset = after
        self._breaks += 1
        return True

    def _read_header(self, fd: int) -> bool:
        part = PartFile.of(self.path, fd)
        self.problem = part.problem
        if part.problem and self._patience.hold(True):
            return False
        self.header = part.header
        if self.header is None:
            return False
        self._codec = RowCodec(self.header.spec)
        self._offset = self.header.size
        return True

    def _take(self, fd: int, rows: Rows, whole: NDArray[np.bool_], row_bytes: int) -> Rows:
        if not whole.all():
            count = self._arrived(fd, whole, row_bytes)
            rows, whole = rows[:count], whole[:count]
            self.damaged_rows += int(np.sum(~whole))
        self._offset += len(rows) * row_bytes
        return rows if whole.all() else rows[whole]

    def _arrived(self, fd: int, whole: NDArray[np.bool_], row_bytes: int) -> int:
        """How many rows are there for good, whole or damaged."""
        good = np.flatnonzero(whole)
        count = int(good[-1]) + 1 if len(good) else 0
        self._patience.hold(count < len(whole))
        for index in np.flatnonzero(~whole[:count]).tolist():
            at = self._offset + index * row_bytes
            if is_unwritten(os.pread(fd, row_bytes, at)) and self._patience.hold_at(at):
                return int(index)
        return count

    def _mark(self, fd: int) -> None:
        if self.header is not None:
            end = min(self.header.size, HEADER_MARK_BYTES)
            last = max(self.header.size, self._offset - ROW_MARK_BYTES)
            spans = ((PAYLOAD_OFFSET, end), (last, self._offset))
            self._marks = [(at, os.pread(fd, stop - at, at)) for at, stop in spans if stop > at]


def _whole(piece: Piece) -> NDArray[np.bool_]:
    return np.ones(len(piece), np.bool_) if piece.whole is None else piece.whole
