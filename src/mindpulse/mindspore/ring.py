"""The ring on the device: rows that the compiled step writes and the host reads in one copy.

Every probe owns a slot, a Parameter of shape (capacity, 1 + width). The probe of step s writes its
row at s mod capacity; the first number of the row is the stamp of s. One counter holds the step in
progress and is advanced once, by the optimizer's probe. The stamp makes two things true that the
counter alone cannot: a row of a step that a probe sat out is never mistaken for a value, and a
write that happens twice (PyNative does that under recompute) changes nothing.

The slots are plain objects: MindSpore never finds their Parameters in the model's tree, so they are
in no checkpoint, not trainable, and no name of the model changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, ops
from numpy.typing import NDArray

from mindpulse.errors import UsageError

# float32 holds whole numbers exactly up to 2**24; a stamp of 0 means "never written".
STAMP_PERIOD = 2**22
_COUNTER_BASE = 2**20


def write_row(rows: Parameter, counter: Parameter, capacity: int, values: Tensor) -> None:
    """Writes `values` (width,) float32 as the row of the step in progress; runs inside the step."""
    stamp = (counter % STAMP_PERIOD + 1).astype(ms.float32)
    row = ops.concat((stamp, values)).reshape(1, -1)
    ops.scatter_update(rows, counter % capacity, row)


class Slot:
    """Rows of one probe, shape (capacity, 1 + width); the first column is the stamp."""

    def __init__(self, ring: Ring, name: str, width: int) -> None:
        self.name = name
        self.width = width
        self.counter = ring.counter
        self.capacity = ring.capacity
        self.rows = Parameter(
            Tensor(np.zeros((ring.capacity, 1 + width)), ms.float32),
            name=f"{ring.name}.{name}",
            requires_grad=False,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What one copy brought.

    Attributes:
        counter: the step in progress; every step before it is finished.
        tables: slot name -> (capacity, 1 + width) float32.
    """

    counter: int
    tables: dict[str, NDArray[np.float32]]

    def rows_of(
        self, name: str, first: int, last: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Rows of finished steps first..last that were written: steps (T,), values (T, width)."""
        table = self.tables[name]
        first = max(first, self.counter - len(table))
        steps = np.arange(first, min(last, self.counter - 1) + 1, dtype=np.int64)
        rows = table[steps % len(table)]
        written = rows[:, 0] == stamp_of(steps)
        return steps[written], rows[written, 1:]


class Ring:
    """All slots of one monitor and the step counter that they share.

    Args:
        name: prefix of the Parameters' names; unique in the process.
        capacity: rows kept on the device; a drain must come before that many steps have passed.
        first_step: the step that runs next, 1-based.
    """

    def __init__(self, name: str, capacity: int = 64, first_step: int = 1) -> None:
        if not isinstance(capacity, int) or capacity < 2:
            raise UsageError(f"capacity {capacity!r} of the ring: use a whole number from 2 up")
        self.name = name
        self.capacity = capacity
        self.counter = Parameter(
            Tensor([first_step], ms.int32), name=f"{name}.step", requires_grad=False
        )
        self.slots: dict[str, Slot] = {}
        self._pack: Callable[[], Any] | None = None

    def slot(self, name: str, width: int) -> Slot:
        """Makes the slot of a new probe; before the first `read`."""
        slot = Slot(self, name, width)
        self.slots[name] = slot
        return slot

    def read(self) -> Reading:
        """Reads everything in one device-to-host copy.

        The parts are joined on the device first, by a graph of its own that is compiled at the
        first call. It runs behind the operators of the step, so what comes back is never half a
        step, and on the CPU it is no view of memory that the next step will overwrite.
        """
        if self._pack is None:
            self._pack = _packer(self.counter, [slot.rows for slot in self.slots.values()])
        flat = self._pack().asnumpy().copy()
        counter = int(flat[0]) * _COUNTER_BASE + int(flat[1])
        tables, at = {}, 2
        for slot in self.slots.values():
            size = self.capacity * (1 + slot.width)
            tables[slot.name] = flat[at : at + size].reshape(self.capacity, 1 + slot.width)
            at += size
        return Reading(counter, tables)


def _packer(counter: Parameter, tables: list[Parameter]) -> Callable[[], Any]:
    """A compiled function that joins the counter and all tables to one float32 tensor."""

    @ms.jit  # type: ignore[untyped-decorator]
    def pack() -> Any:
        parts: tuple[Any, ...] = (
            (counter // _COUNTER_BASE).astype(ms.float32),
            (counter % _COUNTER_BASE).astype(ms.float32),
        )
        for table in tables:
            parts = (*parts, table.reshape(-1))
        return ops.concat(parts)

    return pack  # type: ignore[no-any-return]


def stamp_of(steps: NDArray[np.int64]) -> NDArray[np.float32]:
    """The stamps that rows of these steps carry."""
    return (steps % STAMP_PERIOD + 1).astype(np.float32)
