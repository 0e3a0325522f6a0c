"""One file as a reader sees it: what it says of itself, and its rows by position."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindpulse.errors import FormatError, StoreError
from mindpulse.series import Rows
from mindpulse.store.breaks import Line, line_up
from mindpulse.store.codec import RowCodec
from mindpulse.store.crc import SUM_BYTES
from mindpulse.store.format import PAYLOAD_OFFSET, Header, decode_header
from mindpulse.store.names import parse_name
from mindpulse.store.pieces import Piece, Stretch
from mindpulse.store.salvage import salvage_header

# Most headers are shorter; one page is the least that a disk reads.
_HEADER_BYTES = 1 << 12
_FEW_FILES = 4
# Opening a pipe that bears the name of a file must not wait for its writer.
READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
# As much of a file with a damaged beginning is searched for a whole row.
_SEARCHED_BYTES = 1 << 26
_EMPTY = Line((), 0, 0)


@dataclass(frozen=True, slots=True)
class PartFile:
    """A file at the moment when it was looked at; rows that come later are not counted.

    Attributes:
        path: where.
        header: None if no row can be read from it.
        problem: what is wrong with the beginning, "" if nothing.
        size: bytes of the file.
        mark: the checksum of the metadata: the last bytes of the header. Another file may take
            the name of this one, even its number.
        line: where its rows stand.

    Example:
        >>> part = PartFile.at(Path(folder) / "train_loss.ms")
        >>> part.count, part.header.spec.tag
        (1, 'train_loss')
    """

    path: Path
    header: Header | None
    problem: str
    size: int
    mark: bytes
    line: Line = _EMPTY

    @classmethod
    def at(cls, path: Path) -> PartFile:
        """Opens a file, reads its header and closes it.

        Raises:
            StoreError: the file cannot be opened or read.
        """
        with opened(path) as fd:
            return cls.of(path, fd)

    @classmethod
    def of(cls, path: Path, fd: int) -> PartFile:
        """The same for a file that is open."""
        size = os.fstat(fd).st_size
        header, problem = _read_header(path, fd, size)
        line = _EMPTY
        if header is not None:
            line = line_up(fd, header.size, size, RowCodec(header.spec).layout)
        return cls(path, header, problem, size, _mark(fd, header), line)

    @property
    def codec(self) -> RowCodec:
        """Reads its rows.

        Raises:
            StoreError: no row can be read from this file.
        """
        if self.header is None:
            raise StoreError(f"{self.path}: {self.problem}")
        return RowCodec(self.header.spec)

    @property
    def count(self) -> int:
        """Number of rows that are all there, damaged ones included."""
        return self.line.count

    def pieces(
        self, first: int = 0, stop: int | None = None, most: int | None = None
    ) -> Iterator[Piece]:
        """The rows from `first` to `stop` (all), some at a time; see `Stretch.pieces`.

        Raises:
            StoreError: the file cannot be read.
        """
        with self._stretch() as stretch:
            yield from stretch.pieces(first, self.count if stop is None else stop, most)

    def pieces_backwards(self, most: int | None = None) -> Iterator[Piece]:
        """All rows, the last piece first.

        Raises:
            StoreError: the file cannot be read.
        """
        with self._stretch() as stretch:
            yield from stretch.pieces_backwards(0, self.count, most)

    @contextmanager
    def _stretch(self) -> Iterator[Stretch]:
        codec = self.codec
        with opened(self.path) as fd:
            header = self.header
            if _mark(fd, header) != self.mark:
                header = PartFile.of(self.path, fd).header
            if header is None or header.spec != codec.spec:
                raise StoreError(f"{self.path} was replaced while it was read: try again")
            yield Stretch(fd, header.size, codec.layout, self.line.breaks)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """The descriptor of a file to be read.

    Raises:
        StoreError: in place of any OSError within.
    """
    try:
        fd = os.open(path, READING)
        try:
            yield fd
        finally:
            os.close(fd)
    except StoreError:  # of another file, or more telling
        raise
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error


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


def _read_header(path: Path, fd: int, size: int) -> tuple[Header | None, str]:
    for most in (_HEADER_BYTES, _HEADER_BYTES << 8):
        header = _whole_header(os.pread(fd, most, 0))
        if header is not None or size <= most:
            break
    if header is not None:
        return header, ""
    header, problem = open_header(os.pread(fd, min(size, _SEARCHED_BYTES), 0), path)
    if header is not None and problem:
        header = replace(header, length=size - PAYLOAD_OFFSET)
    return header, problem


def read_header(path: Path) -> tuple[Header | None, str]:
    """The header of a file and what is wrong with it, without reading its rows.

    Raises:
        StoreError: the file cannot be opened or read.
    """
    with opened(path) as fd:
        return _read_header(path, fd, os.fstat(fd).st_size)


def foresee(paths: Sequence[Path]) -> None:
    """Asks the system for the beginnings of files that are about to be read, all at once.

    A disk that is asked for one after the other takes several times as long.
    """
    if len(paths) < _FEW_FILES or not hasattr(os, "posix_fadvise"):
        return
    for path in paths:
        with suppress(OSError), opened(path) as fd:
            os.posix_fadvise(fd, 0, _HEADER_BYTES, os.POSIX_FADV_WILLNEED)


def _mark(fd: int, header: Header | None) -> bytes:
    # A file whose header was cut out may begin with its first row.
    return os.pread(fd, SUM_BYTES, max(0, header.size - SUM_BYTES)) if header else b""


def _whole_header(data: bytes) -> Header | None:
    try:
        return decode_header(data)
    except FormatError:
        return None


def read_rows(part: PartFile) -> tuple[Rows, NDArray[np.bool_]]:
    """All undamaged rows of a file, and (T,) True for each damaged row among all of them.

    Raises:
        StoreError: the file cannot be read.
    """
    spec = part.codec.spec
    room = Rows(
        np.empty(part.count, np.int64),
        np.empty(part.count, np.float64),
        np.empty((part.count, spec.width), spec.dtype),
    )
    damaged = np.zeros(part.count, np.bool_)
    kept = read = 0
    for piece in part.pieces():
        rows = piece.rows if piece.whole is None else piece.rows[piece.whole]
        target = slice(kept, kept + len(rows))
        room.steps[target], room.wall_times[target] = rows["step"], rows["wall_time"]
        room.values[target] = rows["values"]
        if piece.whole is not None:
            damaged[read : read + len(piece)] = ~piece.whole
        kept, read = kept + len(rows), read + len(piece)
    return room[:kept], damaged[:read]
