"""Rows of one length out of a file, some at a time: memory does not grow with the file.

A piece fits into the cache of the processor, so its checksum and the copies of the wanted
columns cost little more than reading the bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.store import crc
from mindpulse.store.codec import Layout

PIECE_BYTES = 1 << 19


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Neighbouring rows; they lie in a buffer that the next piece uses again.

    Attributes:
        first: position in the file of the first of them, from 0 up.
        rows: (T,) structured: step, wall_time, values (W,), crc.
        whole: (T,) True where the checksum fits; None where all rows are whole.
    """

    first: int
    rows: NDArray[Any]
    whole: NDArray[np.bool_] | None

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class Break:
    """A new line of rows: row `position` begins at byte `offset`, and the later ones behind it."""

    position: int
    offset: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """Where rows lie in an open file.

    Attributes:
        fd: the file.
        start: offset of row 0.
        layout: of a row.
        breaks: where rows stand out of line, in order.
    """

    fd: int
    start: int
    layout: Layout
    breaks: tuple[Break, ...] = ()

    def pieces(self, first: int, stop: int, most: int | None = None) -> Iterator[Piece]:
        """The rows `first` to `stop` in order; fewer if the file turns out to be shorter.

        Args:
            most: rows in a piece, no more than fit anyway.
        """
        buffer = self._buffer(stop - first, most)
        while first < stop:
            piece = self._read(buffer, first, stop)
            if not len(piece):
                return
            yield piece
            first += len(piece)

    def pieces_backwards(self, first: int, stop: int, most: int | None = None) -> Iterator[Piece]:
        """The same rows, the last piece first; rows within a piece are in order.

        Args:
            most: rows in the first piece; the further back, the larger the pieces.
        """
        while first < stop:
            buffer = self._buffer(stop - first, most)
            begin = max(first, stop - len(buffer) // self.row_bytes)
            begin = max([begin, *(b.position for b in self.breaks if b.position < stop)])
            piece = self._read(buffer, begin, stop)
            if len(piece):
                yield piece
            stop = begin
            most = most and 4 * most

    def read(self, first: int, count: int) -> Piece:
        """Rows at once, in memory of their own; fewer if the file or their line is shorter."""
        return self._read(np.empty(count * self.row_bytes, np.uint8), first, first + count)

    @property
    def row_bytes(self) -> int:
        """Length of a row."""
        return len(self.layout.blank)

    def _offset(self, position: int) -> int:
        line = Break(0, self.start)
        for later in self.breaks:
            line = later if later.position <= position else line
        return line.offset + (position - line.position) * self.row_bytes

    def _buffer(self, rows: int, most: int | None) -> NDArray[np.uint8]:
        count = max(1, min(rows, PIECE_BYTES // self.row_bytes, most or rows))
        return np.empty(count * self.row_bytes, np.uint8)

    def _read(self, buffer: NDArray[np.uint8], first: int, stop: int) -> Piece:
        stop = min([stop, *(b.position for b in self.breaks if b.position > first)])
        wanted = min(len(buffer), (stop - first) * self.row_bytes)
        got = _read_into(self.fd, buffer[:wanted], self._offset(first))
        raw = buffer[: got // self.row_bytes * self.row_bytes]
        damaged = crc.damaged_rows(raw, self.layout.blank)
        return Piece(first, raw.view(self.layout.dtype), ~damaged if damaged.any() else None)


def _read_into(fd: int, buffer: NDArray[np.uint8], offset: int) -> int:
    got = 0
    while got < len(buffer):
        count = os.preadv(fd, [buffer[got:].data], offset + got)
        if not count:
            break
        got += count
    return got
