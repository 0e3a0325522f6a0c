"""The sums of many records at a time.

A body followed by its own checksum leaves the register of the checksum in a state that depends on
the body's length alone (see `store.crc`). The head of a record is a matter of the length too. So
any n whole records of one size, one after the other, have one and the same checksum once the
masks are taken off their sums, and one call over a block tells whether all of them are whole. The
same holds for any n rows of records whose sizes are the same row for row.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from mindpulse.interop.events.frame import (
    AROUND_BYTES,
    FOOT_BYTES,
    HEAD_BYTES,
    Bytes,
    body_is_whole,
    head,
    unmasked_all,
)
from mindpulse.store.crc import checksum

BLOCK_BYTES = 1 << 16
_MAX_SUMS = 64
# Fewer records than this are quicker checked one by one.
_FEW = 4

Mask = NDArray[np.bool_]


class RowSums:
    """Checks rows of records, each row of `sizes` bytes."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._starts = [0, *accumulate(sizes)][:-1]
        self._sizes, self._size = sizes, sum(sizes)
        self._block = max(1, BLOCK_BYTES // self._size)
        self._sums: dict[int, int] = {}

    def damaged(self, data: Bytes) -> Mask | None:
        """(T, records) whose sum is wrong; None where all are right.

        Args:
            data: contiguous whole rows; the masks are taken off their sums in place.
        """
        rows = data.reshape(-1, self._size)
        for start, size in zip(self._starts, self._sizes, strict=True):
            foot = rows[:, start + size - FOOT_BYTES : start + size].view("<u4")
            foot[...] = unmasked_all(foot)
        found: Mask | None = None
        for first in range(0, len(rows), self._block):
            block = rows[first : first + self._block]
            if checksum(block.reshape(-1)) != self._sum_of(len(block)):
                if found is None:
                    found = np.zeros((len(rows), len(self._sizes)), np.bool_)
                found[first : first + self._block] = self._one_by_one(block)
        return found

    def _sum_of(self, count: int) -> int:
        """The sum of that many rows, whatever is in them."""
        if count not in self._sums:
            if len(self._sums) > _MAX_SUMS:
                self._sums.clear()
            self._sums[count] = checksum(b"".join(map(_empty, self._sizes)) * count)
        return self._sums[count]

    def _one_by_one(self, rows: Bytes) -> Mask:
        found = np.zeros((len(rows), len(self._sizes)), np.bool_)
        for record, (start, size) in enumerate(zip(self._starts, self._sizes, strict=True)):
            end = start + size - FOOT_BYTES
            said = rows[:, end : end + FOOT_BYTES].copy().view("<u4")[:, 0].tolist()
            sums = [checksum(row) for row in rows[:, start + HEAD_BYTES : end]]
            found[:, record] = [a != b for a, b in zip(said, sums, strict=True)]
        return found


def _empty(size: int) -> bytes:
    """A record of zeros whose sum is right and has no mask."""
    body = bytes(size - AROUND_BYTES)
    return head(len(body)) + body + checksum(body).to_bytes(FOOT_BYTES, "little")


def damaged_records(rows: Bytes) -> Mask | None:
    """(T,) which of (T, size) records have a wrong sum; None where none has. `rows` is changed."""
    if len(rows) < _FEW:
        found = np.array([not body_is_whole(row.tobytes()) for row in rows], np.bool_)
        return found if found.any() else None
    damaged = _of_size(rows.shape[1]).damaged(rows.reshape(-1))
    return None if damaged is None else damaged[:, 0]


@lru_cache(maxsize=256)
def _of_size(size: int) -> RowSums:
    return RowSums((size,))
