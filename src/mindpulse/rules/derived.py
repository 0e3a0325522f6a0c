"""Derived series (recording rules): the value of an expression at each step, as rows.

They are computed when they are asked for, out of rows that are kept anyway: nothing is stored, so
a watcher that is started again, a replay and a single look come to the same values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.rules.expression import Expression
from mindpulse.rules.functions import Steps
from mindpulse.rules.lanes import Values
from mindpulse.rules.running import Read, ReadSpec, WindowRef
from mindpulse.rules.single import Run
from mindpulse.rules.sweep import Sweep
from mindpulse.series import Rows, SeriesSpec

# What a look at a derived series costs beside its rows, in rows.
OVERHEAD_ROWS = 1000
MAX_DEPTH = 8
FEW_STEPS = 2  # for which a sweep does not pay
_NO_STEPS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A derived series.

    It has a row at each step at which a series that it reads has one, from the step on at which
    all its windows are full.

    Attributes:
        name: what expressions call it.
        expression: a number.
        unit: of its values, "" for a pure number.
    """

    name: str
    expression: Expression
    unit: str = ""

    @property
    def depth(self) -> int:
        """How many derived series are read one through the other, this one included."""
        inner = (w.record.depth for w in self.expression.windows if isinstance(w.record, Record))
        return 1 + max(inner, default=0)

    def steps(self, read: Read) -> Steps:
        """The steps at which it has a row, among those that `read` still has."""
        starts = [_full_from(window, read) for window in self.expression.windows]
        if any(start is None for start in starts):
            return _NO_STEPS
        found = [rows.steps for tag in self.expression.series if (rows := read(tag)) is not None]
        steps = found[0] if len(found) == 1 else np.unique(np.concatenate(found))
        start = max(start for start in starts if start is not None)
        return steps[steps.searchsorted(start) :]

    def rows(self, read: Read, spec: ReadSpec, first: int, last: int, most: int) -> Rows:
        """Its rows up to step `last`, and of those up to step `first` the last `most`.

        Args:
            read: the rows of the measured series, as many as `lookback` tells.
            spec: what their columns are.
        """
        steps = self.steps(read)
        begin = max(0, int(steps.searchsorted(first, "right")) - most)
        steps = steps[begin : int(steps.searchsorted(last, "right"))]
        if not len(steps):
            return Rows.empty(1)
        return Rows(steps, np.zeros(len(steps)), _values(self.expression, read, spec, steps))

    def lookback(self, rows: int) -> dict[str, int]:
        """Rows of the measured series behind its last `rows` rows, by tag."""
        return {tag: need + rows - 1 for tag, need in self.expression.needs.items()}


def _full_from(window: WindowRef, read: Read) -> int | None:
    """The first step at which the window is full, None if it never was."""
    if isinstance(window.record, Record):
        steps = window.record.steps(read)
    else:
        rows = read(window.tag)
        steps = _NO_STEPS if rows is None else rows.steps
    wanted = 1 if window.in_steps else window.skip + window.wanted
    return int(steps[wanted - 1]) if len(steps) >= wanted else None


def _values(expression: Expression, read: Read, spec: ReadSpec, steps: Steps) -> Values:
    """(S, W) what the expression is at each step; all its windows in rows are full there."""

    def alone(step: int) -> Values:
        return expression.node(Run(_Table(read, spec, step), expression))

    # Without windows in steps, one step tells how many columns there are.
    if len(steps) <= FEW_STEPS and not any(window.in_steps for window in expression.windows):
        values = [alone(step) for step in steps.tolist()]
        if len({value.shape for value in values}) == 1:
            return np.stack(values)
    run = Sweep.begin(expression, read, spec, steps)
    found = expression.node(run)
    table = np.array(np.broadcast_to(found, (len(steps), found.shape[-1])), np.float64)
    for place in np.flatnonzero(run.alone):
        table[place] = _spread(alone(int(steps[place])), table.shape[1])
    return table


def _spread(value: Values, width: int) -> Any:
    return value if len(value) in (1, width) else np.nan


@dataclass(frozen=True, slots=True)
class _Table:
    """Rows as a view of one step."""

    read: Read
    read_spec: ReadSpec
    step: int

    def window(self, tag: str, skip: int, length: int) -> tuple[Steps, NDArray[Any]]:
        rows = self.read(tag)
        if rows is None:
            return _NO_STEPS, np.empty((0, 1))
        end = max(0, int(rows.steps.searchsorted(self.step, "right")) - skip)
        begin = max(0, end - length)
        return rows.steps[begin:end], rows.values[begin:end]

    def spec(self, tag: str) -> SeriesSpec | None:
        return self.read_spec(tag)


def measured(window: WindowRef) -> tuple[str, ...]:
    """The measured series behind a window."""
    record = window.record
    return record.expression.series if isinstance(record, Record) else (window.tag,)


def work_of(windows: Iterable[WindowRef]) -> int:
    """Rows that one evaluation goes through, with all that its derived series read."""
    windows = list(windows)
    longest: dict[str, tuple[Record, int]] = {}
    for window in windows:
        if isinstance(window.record, Record):
            known = longest.get(window.tag, (window.record, 0))[1]
            longest[window.tag] = window.record, max(known, window.end)
    derived = (OVERHEAD_ROWS + rows * max(1, r.expression.work) for r, rows in longest.values())
    return sum(window.length for window in windows) + sum(derived)
