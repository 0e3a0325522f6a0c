"""Long tables: a value a line, with the tag beside it, as `mindpulse export --layout long` writes.

The lines of a tag follow each other, so each tag has attempts of its own: its steps go back there.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np

from mindpulse.catalogue import MEASURES
from mindpulse.interop.collect import Collector
from mindpulse.interop.numbers import number, step_text
from mindpulse.interop.tables.csv_table import MISSING
from mindpulse.interop.tables.exported import attempts_in, axes_and_labels
from mindpulse.interop.tables.rows import (
    RANK_NAMES,
    STEP_NAMES,
    TAG_NAMES,
    TIME_NAMES,
    pick,
    rank_of,
    time_of,
)
from mindpulse.series import Rows, Series, SeriesSpec

_COLUMN_NAMES = ("column",)
_VALUE_NAMES = ("value",)


class LongTable:
    """Takes the cells of line after line.

    Args:
        names: of the columns of the table.
    """

    def __init__(self, collector: Collector, names: Sequence[str]) -> None:
        self.collector = collector
        wanted = (TAG_NAMES, STEP_NAMES, _VALUE_NAMES, TIME_NAMES, RANK_NAMES, _COLUMN_NAMES)
        found = [pick(names, known) for known in wanted]
        places = [-1 if name is None else names.index(name) for name in found]
        self._tag, self._step, self._value, self._time, self._rank, self._column = places
        self._time_name = "" if self._time < 0 else names[self._time]
        self._curves: dict[tuple[str, int], _Curve] = {}

    @staticmethod
    def fits(names: Sequence[str]) -> bool:
        """Whether the table has a column for the tag, for the step and for the value."""
        return all(pick(names, known) for known in (TAG_NAMES, STEP_NAMES, _VALUE_NAMES))

    def take(self, cells: Sequence[str], told: str) -> None:
        """One line; `told` says where it stands."""
        step = step_text(cells[self._step])
        tag, text = cells[self._tag].strip(), cells[self._value]
        value = number(text)
        if step is None or not tag:
            self.collector.refuse("rows without a step or a tag", told)
        elif value is not None:
            rank = rank_of(number(self._cell(cells, self._rank))) or 0
            time = self._cell(cells, self._time)
            seconds = number(time)
            wall_time = time_of(time if seconds is None else seconds, self._time_name)
            curve = self._curves.setdefault((tag, rank), _Curve())
            column = self._cell(cells, self._column)
            curve.append(step, math.nan if wall_time is None else wall_time, column, value)
        elif text.strip().lower() not in MISSING:
            self.collector.refuse("cells that are no numbers", told)

    def hand_over(self) -> None:
        """Gives the collector all series."""
        for (tag, rank), curve in self._curves.items():
            if not self.collector.is_usable(tag):
                continue
            for attempt, series in attempts_in(curve.series(tag)):
                self.collector.add_wide(series, rank, attempt)

    def _cell(self, cells: Sequence[str], place: int) -> str:
        return "" if place < 0 else cells[place]


class _Curve:
    """The rows of one tag of one rank; a row ends where its step or a column comes again."""

    def __init__(self) -> None:
        self._steps, self._wall_times = array("q"), array("d")
        self._rows, self._places, self._values = array("q"), array("q"), array("d")
        self._columns: dict[str, int] = {}
        self._filled: set[int] = set()

    def append(self, step: int, wall_time: float, column: str, value: float) -> None:
        place = self._columns.setdefault(column, len(self._columns))
        if not self._steps or self._steps[-1] != step or place in self._filled:
            self._steps.append(step)
            self._wall_times.append(wall_time)
            self._filled.clear()
        self._filled.add(place)
        self._rows.append(len(self._steps) - 1)
        self._places.append(place)
        self._values.append(value)

    def series(self, tag: str) -> Series:
        spec = self._spec(tag)
        values = np.full((len(self._steps), spec.width), np.nan, spec.dtype)
        values[np.array(self._rows, np.int64), np.array(self._places, np.int64)] = self._values
        steps, wall_times = np.array(self._steps, np.int64), np.array(self._wall_times, np.float64)
        return Series(spec, Rows(steps, wall_times, values))

    def _spec(self, tag: str) -> SeriesSpec:
        measure = MEASURES.get(tag)
        if list(self._columns) == [""]:
            return measure.spec() if measure and not measure.axes else SeriesSpec(tag)
        axes, labels = axes_and_labels(list(self._columns)) or (
            ("column",),
            tuple((name,) for name in self._columns),
        )
        if measure and measure.axes == axes:
            return measure.spec(labels)
        return SeriesSpec(tag, "vector", axes=axes, columns=labels)
