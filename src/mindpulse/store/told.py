"""Which rows were told already: a writer that does not know if the disk has them repeats some."""

from __future__ import annotations

import numpy as np

from mindpulse.series import Rows

_FIRST_REMEMBERED = 64


class Told:
    """Step and time of the last rows of a series, so that a row is told once.

    Args:
        most: so many rows are remembered.

    Example:
        >>> told = Told(most=2)
        >>> told.add(Rows(np.arange(3), np.arange(3.0), np.zeros((3, 1))))
        >>> told.rows().steps.tolist()
        [1, 2]
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._steps = np.empty(_FIRST_REMEMBERED, np.int64)
        self._wall_times = np.empty(_FIRST_REMEMBERED, np.float64)

    def add(self, rows: Rows) -> None:
        """Remembers rows, without their values."""
        rows = rows[-self._most :]
        end = self._count + len(rows)
        if end > len(self._steps):
            end = self._make_room(len(rows))
        self._steps[self._count : end] = rows.steps
        self._wall_times[self._count : end] = rows.wall_times
        self._count = end

    def _make_room(self, coming: int) -> int:
        """Forgets the oldest and grows, so that this is seldom done; where the end will be."""
        begin = max(0, self._count + coming - self._most)
        kept = slice(min(begin, self._count), self._count)
        steps, times = self._steps[kept], self._wall_times[kept]
        size = min(2 * (len(steps) + coming), 2 * self._most)
        self._steps, self._wall_times = np.empty(size, np.int64), np.empty(size, np.float64)
        self._count = len(steps)
        self._steps[: self._count], self._wall_times[: self._count] = steps, times
        return self._count + coming

    def rows(self) -> Rows:
        """The remembered rows, with no columns."""
        last = slice(max(0, self._count - self._most), self._count)
        steps, times = self._steps[last], self._wall_times[last]
        return Rows(steps, times, np.empty((len(steps), 0)))


def without_repeated(before: Rows | None, rows: Rows) -> Rows:
    """The rows of a new part without those that the part before it holds already.

    A writer repeats its last rows in a new part when it cannot tell whether the disk has
    them (same step and same wall time).
    """
    if before is None or not len(before) or not len(rows):
        return rows
    maybe = np.flatnonzero(rows.wall_times <= before.wall_times.max())
    if not len(maybe):
        return rows
    held = set(zip(before.steps.tolist(), before.wall_times.tolist(), strict=True))
    some = rows[maybe]
    pairs = zip(some.steps.tolist(), some.wall_times.tolist(), strict=True)
    keep = np.ones(len(rows), np.bool_)
    keep[maybe] = [pair not in held for pair in pairs]
    return rows[keep]
