"""The ring on the device: rows that the compiled step writes and the host reads in one copy.

Every probe owns a slot, a Parameter of shape (capacity, 2 + width). The probe of step s writes its
row at s mod capacity: a stamp, how many calls were merged, the values. One counter holds the step
in progress and is advanced once, by the optimizer's probe. The stamp makes three things true that
the counter alone cannot: a row of a step that a probe sat out is never mistaken for a value; a call
that meets its own step's stamp (a shared cell, a micro-batch, a write that PyNative repeats under
recompute) is merged with what is there; and a call outside training (evaluation) leaves a negative
stamp, which is told apart.

The slots are plain objects: MindSpore never finds their Parameters in the model's tree, so they are
in no checkpoint, not trainable, and no name of the model changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
HEAD = 2  # stamp and count come before the values

Put = Callable[[Any, Any], None]


@dataclass(frozen=True, slots=True)
class Group:
    """Some columns of a slot that belong to one series.

    Attributes:
        tag: the series.
        start, width: the columns, counted among the values.
        columns: the labels of each column; () where the probe's data tell them (attention heads).
        within: how several calls of a step are merged: "mean", "max" or "sum".
    """

    tag: str
    start: int
    width: int
    columns: tuple[tuple[str, ...], ...] = ()
    within: str = "mean"


class Slot:
    """Rows of one probe, shape (capacity, 2 + width).

    Attributes:
        put: called inside the step with (training, values (width,) float32).
    """

    def __init__(
        self, ring: Ring, name: str, width: int, groups: Iterable[Group], merges: bool
    ) -> None:
        self.name = name
        self.width = width
        self.groups = tuple(groups)
        self.rows = Parameter(
            Tensor(np.zeros((ring.capacity, HEAD + width)), ms.float32),
            name=f"{ring.name}.{name}",
            requires_grad=False,
        )
        most = np.zeros(HEAD - 1 + width, bool)
        for group in self.groups:
            most[HEAD - 1 + group.start :][: group.width] = group.within == "max"
        make = _merging if merges else _replacing
        self.put: Put = make(self.rows, ring.counter, ring.capacity, Tensor(most))


def _replacing(rows: Parameter, counter: Parameter, capacity: int, most: Tensor) -> Put:
    """Writes the row of the step in progress, whatever was there."""
    one = Tensor([1.0], ms.float32)

    def put(training: Any, values: Any) -> None:
        stamp = (counter % STAMP_PERIOD + 1).astype(ms.float32)
        row = ops.concat((stamp, one, values)).reshape(1, -1)
        ops.scatter_update(rows, counter % capacity, row)

    return put


def _merging(rows: Parameter, counter: Parameter, capacity: int, most: Tensor) -> Put:
    """Adds to the row of the step in progress, or begins it."""
    one = Tensor([1.0], ms.float32)
    some_most = bool(most.asnumpy().any())

    def put(training: Any, values: Any) -> None:
        sign = 1.0 if training else -1.0
        stamp = (counter % STAMP_PERIOD + 1).astype(ms.float32) * sign
        index = counter % capacity
        before = ops.gather(rows, index, 0).reshape(-1)
        now, old = ops.concat((one, values)), before[1:]
        merged = now + old
        if some_most:
            merged = ops.select(most, ops.maximum(now, old), merged)
        same = ops.equal(before[0:1], stamp).broadcast_to(now.shape)
        row = ops.concat((stamp, ops.select(same, merged, now)))
        ops.scatter_update(rows, index, row.reshape(1, -1))

    return put


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The rows of finished steps that one slot wrote.

    Attributes:
        steps: (T,) int64.
        values: (T, width) float32, calls of a step merged.
        training: (T,) False where the cell was not in training mode.
    """

    steps: NDArray[np.int64]
    values: NDArray[np.float32]
    training: NDArray[np.bool_]

    def __getitem__(self, mask: NDArray[np.bool_]) -> Table:
        return Table(self.steps[mask], self.values[mask], self.training[mask])


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What one copy brought.

    Attributes:
        counter: the step in progress; every step before it is finished.
        tables: slot name -> (capacity, 2 + width) float32.
    """

    counter: int
    tables: dict[str, NDArray[np.float32]]

    def rows_of(self, slot: Slot, first: int, last: int) -> Table:
        """Rows of finished steps first..last that were written."""
        table = self.tables[slot.name]
        first = max(first, self.counter - len(table))
        steps = np.arange(first, min(last, self.counter - 1) + 1, dtype=np.int64)
        rows = table[steps % len(table)]
        written = np.abs(rows[:, 0]) == stamp_of(steps)
        steps, rows = steps[written], rows[written]
        values = rows[:, HEAD:] / np.maximum(rows[:, 1:HEAD], 1.0)
        for group in slot.groups:
            if group.within != "mean":
                part = slice(group.start, group.start + group.width)
                values[:, part] = rows[:, HEAD:][:, part]
        return Table(steps, values, rows[:, 0] > 0)


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

    def slot(
        self, name: str, width: int, groups: Sequence[Group] = (), merges: bool = True
    ) -> Slot:
        """Makes the slot of a new probe; before the first `read`.

        Args:
            width: number of values in a row.
            groups: what the values are.
            merges: whether several calls within a step are merged; else the last one counts.
        """
        slot = Slot(self, name, width, groups, merges)
        self.slots[name] = slot
        return slot

    def skip(self, skipped: Any) -> None:
        """Ends a step in which the optimizer was not called.

        Args:
            skipped: whether that was so, a bool or a Tensor of one; nothing waits for the device.
        """
        if isinstance(skipped, Tensor):
            ops.assign_add(self.counter, skipped.astype(ms.int32).reshape(1))
        elif skipped:
            ops.assign_add(self.counter, Tensor([1], ms.int32))

    def step(self) -> int:
        """The step in progress; waits for the device."""
        return int(self.counter.asnumpy()[0])

    def reset(self, first_step: int) -> None:
        """Empties all rows; `first_step` is the step that runs next."""
        ops.assign(self.counter, Tensor([first_step], ms.int32))
        for slot in self.slots.values():
            ops.assign(slot.rows, Tensor(np.zeros(slot.rows.shape), ms.float32))

    @property
    def device_bytes(self) -> int:
        """Memory that the rows take on the device."""
        return sum(4 * self.capacity * (HEAD + slot.width) for slot in self.slots.values())

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
            size = self.capacity * (HEAD + slot.width)
            tables[slot.name] = flat[at : at + size].reshape(self.capacity, HEAD + slot.width)
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
    """The stamps that rows of these steps carry in training."""
    return (steps % STAMP_PERIOD + 1).astype(np.float32)
