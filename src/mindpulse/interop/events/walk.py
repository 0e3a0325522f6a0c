"""From record to record: where they stand, which are whole, and where the next one begins
behind damage."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindpulse.interop.events.frame import AROUND_BYTES, HEAD_BYTES, Bytes, head, length_at

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """The records that stand whole in a window.

    Attributes:
        offsets: (T,) of each record in the window.
        sizes: (T,) bytes of each record.
        end: where the walk stopped.
        needs: bytes that the record at `end` takes; 0 if its head is not there yet.
        lost: the head at `end` is damaged.
    """

    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    end: int
    needs: int
    lost: bool


def walk(data: Bytes) -> Walk:
    """Follows the lengths from the beginning of `data`; their sums are checked afterwards."""
    unpack, view, size = _LENGTH.unpack_from, data.data, len(data)
    offsets: list[int] = []
    at, limit = 0, size - HEAD_BYTES
    while at <= limit:
        end = at + unpack(view, at)[0] + AROUND_BYTES
        if end > size:
            break
        offsets.append(at)
        at = end
    starts = np.array(offsets, np.int64)
    sizes = np.diff(np.append(starts, at))
    good = _leading_good(data, starts, sizes)
    if good < len(starts):
        return Walk(starts[:good], sizes[:good], int(starts[good]), 0, True)
    if at > limit:
        return Walk(starts, sizes, at, 0, False)
    length = length_at(data, at)
    needs = 0 if length is None else length + AROUND_BYTES
    return Walk(starts, sizes, at, needs, length is None)


def _leading_good(data: Bytes, starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> int:
    """How many records come before the first whose length has a wrong sum."""
    if not len(starts):
        return 0
    windows = np.lib.stride_tricks.sliding_window_view(data, HEAD_BYTES)
    heads = windows[starts]
    different, place = np.unique(sizes, return_inverse=True)
    wanted = np.frombuffer(b"".join(head(size - AROUND_BYTES) for size in different.tolist()), "u1")
    wrong = (heads != wanted.reshape(-1, HEAD_BYTES)[place]).any(axis=1)
    return int(np.argmax(wrong)) if wrong.any() else len(starts)


def period_of(kinds: NDArray[np.int64]) -> int:
    """Number of records after which the kinds repeat at the end of the list; 0 if they do not.

    Example:
        >>> period_of(np.array([9, 1, 2, 1, 2, 1, 2]))
        2
    """
    if len(kinds) < 2 or kinds[-1] < 0:
        return 0
    again = len(kinds) - 1 - np.flatnonzero(kinds[:-1] == kinds[-1])[::-1]
    best, longest = 0, 0
    for period in again[:_MAX_TRIED].tolist():
        run = _run(kinds, period)
        if run >= max(period, _MIN_RUN) and run > 2 * longest:
            best, longest = period, run
    return best


_MAX_TRIED = 64
_MIN_RUN = 4


def _run(kinds: NDArray[np.int64], period: int) -> int:
    """How many records at the end are of the kind of the record one period before."""
    same = (kinds[period:] == kinds[:-period]) & (kinds[period:] >= 0)
    other = np.flatnonzero(~same[::-1])
    return int(other[0]) if len(other) else len(same)
