"""Whole rows wherever they stand: also behind bytes that were inserted or that are missing.

A row begins with bytes that are the same in each row, has more such bytes between its values, and
ends in its checksum. That is enough to find rows again once they are out of line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mindpulse.store import crc
from mindpulse.store.codec import Layout
from mindpulse.store.flips import mend

# Rows longer than this are not mended: with more bits, several wrong ones look like one too often.
MAX_MENDED_BYTES = 512
MAX_MENDED_ROWS = 10_000
_FIRST_ROWS = 16
# Checksums are tried over so many times the size of the file, then the search ends.
_TRIES = 16


@dataclass(slots=True)
class Found:
    """The whole rows of a file.

    Attributes:
        pieces: rows as they stand in the file, in order.
        rows: how many.
        mended: how many of them had one flipped bit, which was put right.
        lost_bytes: bytes between whole rows that are no row.
        torn_bytes: bytes behind the last whole row.
    """

    pieces: list[bytes] = field(default_factory=list)
    rows: int = 0
    mended: int = 0
    lost_bytes: int = 0
    torn_bytes: int = 0


class RowSearch:
    """Finds the rows of one layout in the bytes of a file.

    Example:
        >>> from mindpulse.store.codec import RowCodec
        >>> codec = RowCodec(SeriesSpec("train_loss"))
        >>> row = codec.encode(Rows.one(1, 1.7e9, 2.5))
        >>> RowSearch(row + b"noise" + row, codec.layout).run(0).rows
        2
    """

    def __init__(self, data: bytes, layout: Layout) -> None:
        self._data, self._layout = data, layout
        self._size = len(layout.blank)
        self._bytes = np.frombuffer(data, np.uint8)
        self._fixed = _fixed(layout)
        self._budget = _TRIES * len(data)
        self._mends_left = MAX_MENDED_ROWS

    def run(self, start: int) -> Found:
        """All whole rows from byte `start` on."""
        found, at = Found(), start
        while at < len(self._data):
            rows = self._in_line(at)
            if rows:
                self._keep(found, self._data[at : at + rows * self._size])
                at += rows * self._size
            elif row := self._mended(at):
                self._keep(found, row)
                found.mended += 1
                at += self._size
            else:
                at = self._skip(found, at)
        return found

    def next_row(self, at: int, base: int = 0) -> int | None:
        """Where the next whole row begins, from byte `at` on; `base` is added. None if nowhere."""
        found = self._next(at)
        return None if found is None else base + found

    def _keep(self, found: Found, rows: bytes) -> None:
        found.pieces.append(rows)
        found.rows += len(rows) // self._size

    def _skip(self, found: Found, at: int) -> int:
        """Counts what is no row and returns where the next one begins."""
        after = self._next(at + 1)
        if after is None:
            whole = (len(self._data) - at) // self._size * self._size
            found.lost_bytes += whole
            found.torn_bytes += len(self._data) - at - whole
            return len(self._data)
        found.lost_bytes += after - at
        return after

    def _in_line(self, at: int) -> int:
        """How many whole rows stand there one behind the other."""
        rows, count = 0, _FIRST_ROWS
        while True:
            begin = at + rows * self._size
            count = min(count, (len(self._data) - begin) // self._size)
            if count < 1:
                return rows
            block = self._bytes[begin : begin + count * self._size]
            damaged = np.flatnonzero(crc.damaged_rows(block, self._layout.blank))
            if len(damaged):
                return rows + int(damaged[0])
            rows += count
            count *= 2

    def _mended(self, at: int) -> bytes | None:
        if self._size > MAX_MENDED_BYTES or at + self._size > len(self._data):
            return None
        if not self._mends_left:
            return None
        self._mends_left -= 1
        row = mend(self._data[at : at + self._size])
        return row if row and self._looks_right(row, 0) else None

    def _next(self, at: int) -> int | None:
        """Where the next whole row begins, None if there is none or the search took too long."""
        key = self._layout.blank[: self._fixed[0].stop]
        while self._budget > 0:
            at = self._data.find(key, at)
            if at < 0 or at + self._size > len(self._data):
                return None
            if self._looks_right(self._data, at):
                self._budget -= self._size
                if not crc.damaged_rows(self._bytes[at : at + self._size], self._layout.blank)[0]:
                    return at
            at += 1
        return None

    def _looks_right(self, data: bytes, at: int) -> bool:
        """All bytes that are the same in each row are there."""
        blank = self._layout.blank
        return all(data[at + s.start : at + s.stop] == blank[s] for s in self._fixed)


def _fixed(layout: Layout) -> list[slice]:
    """The stretches of a row that are the same in each row."""
    kinds: Mapping[str, Any] = layout.dtype.fields or {}
    fields = sorted((kind[1], kind[1] + kind[0].itemsize) for kind in kinds.values())
    starts = [0, *(end for _, end in fields[:-1])]
    return [slice(a, b) for a, (b, _) in zip(starts, fields, strict=True)]
