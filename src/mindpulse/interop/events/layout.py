"""Records of one shape, and periods of them: recognised and read many at a time.

The records of a training loop repeat: the same tags at the same places, step after step. Once
one of them was parsed, the next are compared with it bit by bit, leaving out the bits that may
vary (wall time, step, values, sum), and the values are taken out as columns.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.interop.events.frame import FOOT_BYTES, Bytes
from mindpulse.interop.events.sums import BLOCK_BYTES, RowSums
from mindpulse.interop.events.tensors import SCALAR, TENSOR, Slot
from mindpulse.interop.events.values import Event

_MORE, _SEVEN_BITS = 0x80, 0x7F


class Layout:
    """The shape of a record.

    Attributes:
        size: bytes of the record.
        slots: its values, each as plain numbers.
        wall_at, step: where the wall time begins, and the step begins and ends; -1 for none.
        blank: the record with all bits zero that may vary.
        keep: the bits that may not.
    """

    def __init__(self, record: bytes, event: Event) -> None:
        self.size = len(record)
        self.slots = event.slots
        self.keep = np.full(self.size, 0xFF, np.uint8)
        self.wall_at, self.step = event.wall_at, (event.step_at, event.step_end)
        if event.wall_at >= 0:
            self.keep[event.wall_at : event.wall_at + 8] = 0
        if event.step_at >= 0:
            # A byte of a varint says with its highest bit whether another one follows.
            self.keep[event.step_at : event.step_end] = _MORE
        for slot in event.slots:
            self.keep[slot.start : slot.end] = 0
        self.keep[-FOOT_BYTES:] = 0
        self.blank = np.frombuffer(record, np.uint8) & self.keep


def layout_of(record: bytes, event: Event) -> Layout | None:
    """The shape of a record; None if something in it has to be decoded on its own."""
    plain = all(slot.dtype and slot.kind in (SCALAR, TENSOR) for slot in event.slots)
    if not event.slots or not plain or event.version or event.skipped:
        return None
    return Layout(record, event)


class Group:
    """Whole records of one layout.

    Attributes:
        layout: their shape.
        rows: (T, layout.size) bytes; they may change once the next window is asked for.
        offsets: (T,) where each record stands in the file.
    """

    def __init__(self, layout: Layout, rows: Bytes, offsets: NDArray[np.int64]) -> None:
        self.layout, self.rows, self.offsets = layout, rows, offsets
        self._steps: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def pick(self, chosen: NDArray[Any]) -> Group:
        """The records that a mask or positions name."""
        return Group(self.layout, self.rows[chosen], self.offsets[chosen])

    def wall_times(self) -> NDArray[np.float64]:
        """(T,) float64; zero where the event says none."""
        at = self.layout.wall_at
        if at < 0:
            return np.zeros(len(self))
        return self._column(at, at + 8, "<f8")[:, 0]

    def steps(self) -> NDArray[np.int64]:
        """(T,) int64; zero where the event says none."""
        if self._steps is None:
            self._steps = self._read_steps()
        return self._steps

    def first_step(self) -> int:
        """The smallest step; there must be a record."""
        return int(self.steps().min())

    def _read_steps(self) -> NDArray[np.int64]:
        at, end = self.layout.step
        if at < 0:
            return np.zeros(len(self), np.int64)
        found = np.zeros(len(self), np.uint64)
        for index in range(end - at):
            part = (self.rows[:, at + index] & np.uint8(_SEVEN_BITS)).astype(np.uint64)
            found |= part << np.uint64(7 * index)
        return found.view(np.int64)

    def values(self, slot: Slot) -> NDArray[Any]:
        """(T, W) of a slot, in the type of the file."""
        return self._column(slot.start, slot.end, slot.dtype)

    def _column(self, start: int, end: int, dtype: str) -> NDArray[Any]:
        # A copy, always: the rows are a buffer that is filled again.
        return self.rows[:, start:end].copy().view(dtype)


class Period:
    """Layouts that follow one another again and again.

    Attributes:
        size: bytes of one period.
    """

    def __init__(self, layouts: tuple[Layout, ...]) -> None:
        self.layouts = layouts
        sizes = tuple(layout.size for layout in layouts)
        self.size, self._starts = sum(sizes), [0, *accumulate(sizes)][:-1]
        self._sums = RowSums(sizes)
        self._block = max(1, BLOCK_BYTES // self.size)
        rows = [[getattr(layout, name) for layout in layouts] for name in ("blank", "keep")]
        self._blank, self._keep = (np.tile(np.concatenate(row), self._block) for row in rows)
        self._difference = np.empty_like(self._blank)

    def leading(self, data: Bytes) -> int:
        """How many periods stand at the beginning of `data` before something else comes."""
        count = len(data) // self.size
        for first in range(0, count, self._block):
            rows = min(self._block, count - first)
            found = self._leading_in(data[first * self.size : (first + rows) * self.size])
            if found < rows:
                return first + found
        return count

    def _leading_in(self, block: Bytes) -> int:
        difference = self._difference[: len(block)]
        np.bitwise_xor(block, self._blank[: len(block)], out=difference)
        np.bitwise_and(difference, self._keep[: len(block)], out=difference)
        if np.bitwise_or.reduce(difference):
            return int(np.flatnonzero(difference)[0]) // self.size
        return len(block) // self.size

    def groups(self, data: Bytes, offset: int) -> list[Group]:
        """The records of whole periods; `data` begins at `offset` in the file."""
        rows = data.reshape(-1, self.size)
        starts = offset + self.size * np.arange(len(rows), dtype=np.int64)
        return [
            Group(layout, rows[:, start : start + layout.size], starts + start)
            for start, layout in zip(self._starts, self.layouts, strict=True)
        ]

    def damaged(self, data: Bytes) -> NDArray[np.bool_] | None:
        """(T, records) whose sum is wrong, None where all are right; `data` is changed."""
        return self._sums.damaged(data)
