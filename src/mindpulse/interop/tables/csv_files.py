"""CSV files: a column a series, or what `mindpulse export` wrote."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mindpulse.catalogue import MEASURES
from mindpulse.errors import FormatError
from mindpulse.interop.collect import Collector
from mindpulse.interop.loaded import LoadedRun
from mindpulse.interop.logs.text_log import collected
from mindpulse.interop.numbers import number, step_text
from mindpulse.interop.source import Line, lines
from mindpulse.interop.tables.csv_long import LongTable
from mindpulse.interop.tables.csv_table import MISSING, Table, cells_of, table_of
from mindpulse.interop.tables.exported import attempts_in, axes_and_labels, rank_and_tag
from mindpulse.interop.tables.rows import (
    RANK_NAMES,
    STEP_NAMES,
    TIME_NAMES,
    pick,
    rank_of,
    time_of,
)
from mindpulse.series import Rows, Series, SeriesSpec

TITLE = "a CSV file"
_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_HEAD_LINES = 21


def sniff(head: bytes, path: Path) -> bool:
    """Whether the first lines have the same number of cells, with numbers in them."""
    return _table(head.decode("utf-8", "replace").splitlines(), path) is not None


def read(path: Path) -> LoadedRun:
    """The run.

    The step is the first of `rows.STEP_NAMES` that is a column, else the number of the row from
    1 up. A column of which no cell is a number is no series.

    Raises:
        StoreError: the file cannot be read.
        FormatError: it is no table, or has no numbers.
    """
    table = _table([line.text for line in _some(lines(path))], path)
    if table is None:
        raise FormatError(f"{path} is no table of numbers with the same columns in each line")
    reader = _Reader(collected(path, "", "csv"), table)
    for line in lines(path):
        reader.take(line)
    return reader.finish()


def _some(found: Iterator[Line]) -> Iterator[Line]:
    for _, line in zip(range(_HEAD_LINES + 20), found, strict=False):
        yield line


def _table(texts: list[str], path: Path) -> Table | None:
    useful = [text for text in texts if text.strip() and not _is_comment(text)][:_HEAD_LINES]
    return table_of(useful, path.name.lower().endswith(_ENDINGS))


def _is_comment(text: str) -> bool:
    """A line after "#" is none of the table, unless it is a header that begins so."""
    return text.startswith("#") and not any(mark in text for mark in ",\t;")


class _Reader:
    """Takes line after line."""

    def __init__(self, collector: Collector, table: Table) -> None:
        self.collector, self.table = collector, table
        names = table.names
        step, time, rank = (pick(names, known) for known in (STEP_NAMES, TIME_NAMES, RANK_NAMES))
        self._step, self._time, self._rank_column = (
            None if name is None else names.index(name) for name in (step, time, rank)
        )
        self._steps_of_epochs = step is not None and step.lower() == "epoch"
        self._file_rank, self._file_tag = rank_and_tag(collector.path)
        self._header_seen = not table.has_header
        self._row = 0
        self._texts: dict[int, tuple[int, str]] = {}
        self._numeric: set[int] = set()
        self._long = LongTable(collector, names) if LongTable.fits(names) else None
        self._values = self._value_columns()
        self._wide = self._wide_axes()

    def take(self, line: Line) -> None:
        if not line.text.strip() or _is_comment(line.text):
            return
        if not self._header_seen:
            self._header_seen = True
            return
        cells = cells_of(line.text, self.table.delimiter)
        if not line.whole and not line.text.endswith('"'):
            self.collector.torn(line.text)
            cells[-1] = ""
            if len(cells) < len(self.table.names) or self._wide is not None:
                return
        self._take_cells(cells, line)

    def finish(self) -> LoadedRun:
        for column, (count, example) in self._texts.items():
            if column in self._numeric:
                self.collector.refuse("cells that are no numbers", example, count)
        if self._wide is not None:
            self._wide.hand_over(self.collector)
        if self._long is not None:
            self._long.hand_over()
        return self.collector.finish()

    def _value_columns(self) -> list[tuple[int, str]]:
        used = {self._step, self._time, self._rank_column}
        columns = [(i, name) for i, name in enumerate(self.table.names) if i not in used]
        if len(columns) == 1 and columns[0][1].lower() == "value":
            return [(columns[0][0], self._file_tag)]
        return columns

    def _wide_axes(self) -> _Wide | None:
        found = axes_and_labels([name for _, name in self._values])
        if found is None or self._step is None:
            return None
        measure = MEASURES.get(self._file_tag)
        if measure is not None and measure.axes == found[0]:
            spec = measure.spec(found[1])
        else:
            spec = SeriesSpec(self._file_tag, "vector", axes=found[0], columns=found[1])
        return _Wide(spec, self._file_rank)

    def _take_cells(self, cells: list[str], line: Line) -> None:
        width = len(self.table.names)
        if len(cells) > width and not any(cell.strip() for cell in cells[width:]):
            cells = cells[:width]
        if len(cells) != width:
            what = f"lines with another number of cells than {width}"
            self.collector.refuse(what, f"line {line.number}: {line.text}")
            return
        if self._long is not None:
            self._long.take(cells, f"line {line.number}: {line.text}")
            return
        self._row += 1
        step = self._step_in(cells)
        if step is None:
            self.collector.refuse("rows without a step", f"line {line.number}: {line.text}")
            return
        wall_time = self._time_in(cells)
        rank = None
        if self._rank_column is not None:
            rank = rank_of(number(cells[self._rank_column]))
        values = self._numbers(cells, line)
        if self._wide is not None:
            row = [values.get(name, math.nan) for _, name in self._values]
            self._wide.append(step, wall_time, row)
        elif values:
            self.collector.add(step, values, wall_time, self._file_rank if rank is None else rank)

    def _step_in(self, cells: list[str]) -> int | None:
        if self._step is None:
            self.collector.remark("no column is a step: rows are numbered from 1 up")
            return self._row
        step = step_text(cells[self._step])
        if step is None and self._steps_of_epochs and self._row == 1:
            self._values.insert(0, (self._step, self.table.names[self._step]))
            self._step = None  # fractions of an epoch count nothing
            return self._step_in(cells)
        return step

    def _time_in(self, cells: list[str]) -> float:
        if self._time is None:
            return math.nan
        value = number(cells[self._time])
        name = self.table.names[self._time]
        found = time_of(cells[self._time] if value is None else value, name)
        if found is None and value is not None and math.isfinite(value) and self._row == 1:
            # Called "time", and holds seconds of something: a series like the others.
            self._values.append((self._time, name))
            self._time = None
        return math.nan if found is None else found

    def _numbers(self, cells: list[str], line: Line) -> dict[str, float]:
        plain = line.text.isascii() and "_" not in line.text
        found: dict[str, float] = {}
        for column, name in self._values:
            cell = cells[column]
            try:
                value = float(cell) if plain else number(cell)
            except ValueError:
                value = None
            if value is not None:
                found[name] = value
                self._numeric.add(column)
            elif cell.strip().lower() not in MISSING:
                told = f"{cell.strip()[:30]} in line {line.number}, column {name}"
                count, example = self._texts.get(column, (0, told))
                self._texts[column] = count + 1, example
        return found


class _Wide:
    """The rows of one series with many columns."""

    def __init__(self, spec: SeriesSpec, rank: int) -> None:
        self.spec, self.rank = spec, rank
        self._steps, self._wall_times, self._values = array("q"), array("d"), array("d")

    def append(self, step: int, wall_time: float, row: list[float]) -> None:
        self._steps.append(step)
        self._wall_times.append(wall_time)
        self._values.extend(row)

    def hand_over(self, collector: Collector) -> None:
        steps = np.array(self._steps, np.int64)
        values = np.array(self._values, np.float64).reshape(len(steps), self.spec.width)
        rows = Rows(steps, np.array(self._wall_times, np.float64), values.astype(self.spec.dtype))
        for attempt, series in attempts_in(Series(self.spec, rows)):
            collector.add_wide(series, self.rank, attempt)
