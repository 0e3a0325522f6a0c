"""Histograms of both formats, read from the bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mindpulse.errors import FormatError
from mindpulse.interop.events.decode import array_of, tensor
from mindpulse.interop.events.tensors import Slot
from mindpulse.interop.events.values import MINDSPORE
from mindpulse.interop.events.wire import signed_at, spans
from mindpulse.store.wire import BYTES, FIXED64, VARINT

# A bucket of MindSpore's histogram: 1 left, 2 width, 3 count, each behind its key.
_BUCKET_KEY = 0x0A
_BUCKET_FIELDS = {0: 0x09, 9: 0x11, 18: 0x18}
_LEAST_BUCKET, _MOST_BUCKET = 20, 29
_SEVEN_BITS = 0x7F
# Fields of the messages, by their names here.
_OLD_STATISTICS = {1: "min", 2: "max", 3: "count", 4: "sum", 5: "sum_squares"}
_MS_STATISTICS = {
    2: "nan_count",
    3: "pos_inf_count",
    4: "neg_inf_count",
    5: "max",
    6: "min",
    7: "sum",
    8: "count",
}


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """A histogram, as the file says it.

    Attributes:
        left: (B,) left edges.
        right: (B,) right edges, or widths.
        counts: (B,).
        statistics: what is said of the values: min, max, sum, count, ...
        widths: `right` holds what is to be added to `left`, as MindSpore has it.
    """

    left: NDArray[np.float64]
    right: NDArray[np.float64]
    counts: NDArray[np.float64]
    statistics: dict[str, float] = field(default_factory=dict)
    widths: bool = False

    @property
    def edges(self) -> NDArray[np.float64]:
        """(B,) right edges."""
        return self.left + self.right if self.widths else self.right


def histogram(dialect: str, data: bytes, slot: Slot) -> Histogram:
    """The histogram of a slot.

    Raises:
        FormatError: the bytes are no histogram.
    """
    if dialect == MINDSPORE:
        return _mindspore_histogram(data, slot.start, slot.end)
    if slot.shape:
        table = tensor(dialect, data, slot).astype(np.float64).reshape(-1, 3)
        return Histogram(table[:, 0], table[:, 1], table[:, 2])
    return _old_histogram(data, slot.start, slot.end)


def _mindspore_histogram(data: bytes, start: int, end: int) -> Histogram:
    rest, starts = _leading_buckets(data, start, end)
    buckets = _plain_buckets(data, starts)
    if buckets is None:
        rest, buckets = start, np.empty((0, 3))
    more: list[tuple[float, float, float]] = []
    statistics: dict[str, float] = {}
    for number, kind, at, stop in spans(data, rest, end):
        if number == 1 and kind == BYTES:
            more.append(_bucket(data, at, stop))
        elif number in _MS_STATISTICS and kind in (VARINT, FIXED64):
            statistics[_MS_STATISTICS[number]] = _number(data, kind, at, stop)
    table = np.concatenate([buckets, np.array(more, np.float64).reshape(-1, 3)])
    return Histogram(table[:, 0], table[:, 1], table[:, 2], statistics, widths=True)


def _leading_buckets(data: bytes, at: int, end: int) -> tuple[int, list[int]]:
    """Where the buckets at the beginning end, and where each of them begins: behind its length."""
    starts = []
    while at + 1 < end and data[at] == _BUCKET_KEY and data[at + 1] <= _SEVEN_BITS:
        after = at + 2 + data[at + 1]
        if after > end:
            break
        starts.append(at + 2)
        at = after
    return at, starts


def _plain_buckets(data: bytes, starts: list[int]) -> NDArray[np.float64] | None:
    """(B, 3) left, width, count of buckets that have just these fields in this order, else None.

    A histogram has up to 90 buckets: one by one they would take most of the time of a file.
    """
    if not starts:
        return None
    raw, at = np.frombuffer(data, np.uint8), np.array(starts)
    size = raw[at - 1].astype(np.int64)
    if size.min() < _LEAST_BUCKET or size.max() > _MOST_BUCKET:
        return None
    if any((raw[at + place] != key).any() for place, key in _BUCKET_FIELDS.items()):
        return None
    found = np.empty((len(starts), 3))
    for column, place in ((0, 1), (1, 10)):
        found[:, column] = raw[(at + place)[:, None] + np.arange(8)].view("<f8")[:, 0]
    count = np.zeros(len(starts), np.uint64)
    for index in range(int(size.max()) - _LEAST_BUCKET + 1):
        there = size - _LEAST_BUCKET >= index
        byte = np.where(there, raw[np.where(there, at + _LEAST_BUCKET - 1 + index, 0)], 0)
        last = size - _LEAST_BUCKET == index
        if ((byte > _SEVEN_BITS) == last)[there].any():  # another field behind it, or a cut one
            return None
        count |= (byte & _SEVEN_BITS).astype(np.uint64) << np.uint64(7 * index)
    found[:, 2] = count.view(np.int64)
    return found


def _bucket(data: bytes, start: int, end: int) -> tuple[float, float, float]:
    found = {1: 0.0, 2: 0.0, 3: 0.0}
    for number, kind, at, stop in spans(data, start, end):
        if number in found and kind in (VARINT, FIXED64):
            found[number] = _number(data, kind, at, stop)
    return found[1], found[2], found[3]


def _number(data: bytes, kind: int, at: int, stop: int) -> float:
    if kind == VARINT:
        return float(signed_at(data, at, stop))
    return float(struct.unpack("<d", data[at:stop])[0])


def _old_histogram(data: bytes, start: int, end: int) -> Histogram:
    lists: dict[int, list[bytes]] = {6: [], 7: []}
    statistics = dict.fromkeys(_OLD_STATISTICS.values(), 0.0)
    for number, kind, at, stop in spans(data, start, end):
        if number in lists and kind in (BYTES, FIXED64):
            lists[number].append(data[at:stop])
        elif number in _OLD_STATISTICS and kind == FIXED64:
            statistics[_OLD_STATISTICS[number]] = _number(data, kind, at, stop)
    right, counts = (array_of(b"".join(lists[number]), "<f8") for number in (6, 7))
    if len(right) != len(counts):
        raise FormatError(f"a histogram of {len(right)} limits and {len(counts)} counts")
    left = np.concatenate([[statistics["min"]], right[:-1]])[: len(right)]
    return Histogram(left, right, counts, statistics)
