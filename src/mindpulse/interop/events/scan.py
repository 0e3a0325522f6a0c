"""An event file from a place on, in windows of bounded size: the quick way where its records
repeat, record by record where they do not.

1. `walk` finds the records of a small window; those of one size are compared with the layouts
   known so far, so that each shape is parsed once.
2. Where the shapes repeat (`period_of`), whole periods are read until something else comes.
3. What cannot be read as columns (histograms, images, texts) is handed on record by record.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import FileIO

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from mindpulse.errors import FormatError
from mindpulse.interop.events.frame import (
    AROUND_BYTES,
    FOOT_BYTES,
    HEAD_BYTES,
    Bytes,
    masked,
    next_head,
)
from mindpulse.interop.events.layout import Group, Layout, Period, layout_of
from mindpulse.interop.events.shapes import Shapes
from mindpulse.interop.events.sums import damaged_records
from mindpulse.interop.events.values import Dialect
from mindpulse.interop.events.walk import Walk, period_of, walk
from mindpulse.interop.events.window import Single, Window

FIRST_WINDOW = 1 << 16
WINDOW = 1 << 20
MAX_WINDOW = 1 << 22
# A larger record is checked and passed over: no picture of a curve is in it.
MAX_RECORD = 1 << 26
# Of a long period so many at once, as far as they fit this: else each row costs too much.
_ROWS, MAX_PERIODS = 64, 1 << 24
_MAX_LAYOUTS = 1 << 15


class Scanner:
    """Reads the windows of a file, once.

    Args:
        file: opened for reading bytes.
        size: where to stop, whatever was added since.
        dialect, shapes: what is known from earlier scans of this file; they learn.
        start: a place where a record begins.
        known_damage: offsets of the damaged records before `size`, from an earlier scan; the
            sums are then not checked again. None to check them.

    Attributes:
        at: behind the last whole record.
        lost_bytes: bytes at the end in which no record can be found.
    """

    def __init__(
        self,
        file: FileIO,
        size: int,
        dialect: Dialect,
        shapes: Shapes,
        *,
        start: int = 0,
        known_damage: frozenset[int] | None = None,
    ) -> None:
        self.at, self.lost_bytes = start, 0
        self._file, self._size = file, size
        self._dialect, self._shapes = dialect, shapes
        self._damage = known_damage
        self._buffer = np.empty(0, np.uint8)

    def windows(self) -> Iterator[Window]:
        """All windows to the end, or to a record that is not whole yet."""
        size = FIRST_WINDOW
        while self.at < self._size:
            data = self._read(size)
            found = walk(data)
            if len(found.offsets):
                started = self.at
                yield from self._walked(data, found)
                # Follow shapes only as long as it pays: else look at more of the file at once.
                paid = self.at - started > 4 * size
                size = FIRST_WINDOW if paid else min(2 * size, MAX_WINDOW)
            elif found.lost:
                yield from self._find_next()
            elif found.needs > self._size - self.at or len(data) < HEAD_BYTES:
                return
            else:
                yield self._large(found.needs)

    def _read(self, size: int) -> Bytes:
        """Up to `size` bytes from `at` on, in a buffer that the next call fills again."""
        size = min(size, self._size - self.at)
        if len(self._buffer) < size:
            self._buffer = np.empty(size, np.uint8)
        self._file.seek(self.at)
        count = self._file.readinto(self._buffer[:size].data)
        return self._buffer[:count]

    def _walked(self, data: Bytes, found: Walk) -> Iterator[Window]:
        if len(self._shapes.layouts) > _MAX_LAYOUTS:  # a file whose tags never repeat
            self._shapes.clear()
        window = Window(self.at + found.end, len(found.offsets))
        kinds = self._by_size(data, found, window)
        self.at = window.end
        yield window
        length = period_of(kinds)
        if length:
            numbers = tuple(kinds[-length:].tolist())
            yield from self._follow(self._shapes.period(numbers))

    def _follow(self, period: Period) -> Iterator[Window]:
        most = max(1, min(max(WINDOW, _ROWS * period.size), MAX_PERIODS) // period.size)
        while True:
            data = self._read(most * period.size)
            count = period.leading(data)
            if count:
                yield self._periods(period, data[: count * period.size])
            if count < most:
                return

    def _periods(self, period: Period, data: Bytes) -> Window:
        count = len(data) // period.size
        window = Window(self.at + len(data), count * len(period.layouts))
        damaged = period.damaged(data) if self._damage is None else None
        for frame, group in enumerate(period.groups(data, self.at)):
            bad = self._known_bad(group.offsets) if damaged is None else damaged[:, frame]
            if bad is not None and bad.any():
                self._report(group.offsets[bad].tolist(), window)
                group = group.pick(~bad)
            window.groups.append(group)
        self.at = window.end
        return window

    def _report(self, offsets: list[int], window: Window) -> None:
        window.damaged += offsets
        window.records -= len(offsets)

    def _by_size(self, data: Bytes, found: Walk, window: Window) -> NDArray[np.int64]:
        """Sorts the records of a walk by size and shape; the layout of each, -1 for none."""
        kinds = np.full(len(found.offsets), -1, np.int64)
        sizes, first, place = np.unique(found.sizes, return_index=True, return_inverse=True)
        members = np.split(np.argsort(place, kind="stable"), np.cumsum(np.bincount(place))[:-1])
        for index in np.argsort(first).tolist():
            at = found.offsets[members[index]]
            rows = np.lib.stride_tricks.sliding_window_view(data, int(sizes[index]))[at]
            kinds[members[index]] = self._by_shape(rows, self.at + at, window)
        return kinds

    def _by_shape(
        self, rows: Bytes, offsets: NDArray[np.int64], window: Window
    ) -> NDArray[np.int64]:
        """Sorts records of one size: what can be read as columns, and what is on its own."""
        bad = damaged_records(rows) if self._damage is None else self._known_bad(offsets)
        whole = np.arange(len(rows)) if bad is None else np.flatnonzero(~bad)
        if len(whole) < len(rows):
            self._report(np.delete(offsets, whole).tolist(), window)
            rows, offsets = rows[whole], offsets[whole]
        kinds = np.full(len(rows) if bad is None else len(bad), -1, np.int64)
        numbers = self._shapes.find(rows, lambda at: self._new_layout(rows, offsets, at, window))
        kinds[whole] = numbers
        order = np.argsort(numbers, kind="stable")
        cuts = np.flatnonzero(np.diff(numbers[order])) + 1
        for same in np.split(order, cuts) if len(order) else ():
            number = int(numbers[same[0]])
            if number >= 0:
                layout = self._shapes.layouts[number]
                window.groups.append(Group(layout, rows[same], offsets[same]))
        return kinds

    def _known_bad(self, offsets: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        if not self._damage:
            return None
        bad = np.isin(offsets, np.array(sorted(self._damage), np.int64))
        return bad if bad.any() else None

    def _new_layout(
        self, rows: Bytes, offsets: NDArray[np.int64], at: int, window: Window
    ) -> Layout | None:
        """The layout of a record of a new shape; None where it was dealt with on its own."""
        record, offset = rows[at].tobytes(), int(offsets[at])
        try:
            event = self._dialect.event(record, HEAD_BYTES, len(record) - FOOT_BYTES)
        except FormatError as error:
            window.odd.append(f"the record at byte {offset} is no event: {error}")
            return None
        layout = layout_of(record, event)
        if layout is None:
            window.singles.append(Single(offset, record, event))
        return layout

    def _large(self, size: int) -> Window:
        """A record that is larger than a window."""
        window = Window(self.at + size, 1)
        if size > MAX_RECORD:
            self._pass_over(size, window)
        else:
            self._by_shape(self._read(size)[None, :], np.array([self.at]), window)
        self.at = window.end
        return window

    def _pass_over(self, size: int, window: Window) -> None:
        self._file.seek(self.at + HEAD_BYTES)
        left, crc = size - AROUND_BYTES, 0
        while left:
            piece = self._file.read(min(left, MAX_WINDOW))
            if not piece:  # the file became shorter
                break
            crc = google_crc32c.extend(crc, piece)
            left -= len(piece)
        said = int.from_bytes(self._file.read(FOOT_BYTES), "little")
        if said == masked(crc):
            window.odd.append(f"the record at byte {self.at} has {size} bytes and is passed over")
        else:
            self._report([self.at], window)

    def _find_next(self) -> Iterator[Window]:
        """Goes on where the head of a record fits again; the damaged stretch counts as one."""
        started = self.at
        skip = 1
        while self._size - self.at > HEAD_BYTES:
            data = self._read(MAX_WINDOW)
            place = next_head(data, skip)
            if place is not None:
                self.at += place
                yield Window(self.at, damaged=[started])
                return
            skip = 0
            self.at += max(1, len(data) - HEAD_BYTES + 1)
        self.lost_bytes = self._size - started
        self.at, self._size = started, started
