"""CSV files of msprobe's monitor: statistics of each module or parameter, one wide series each.

Two generations of headers: `vpp_stage,name,step[,micro_step],OPS...,shape,dtype` and
`vpp_stage,step,module_name,scope[,micro_step],OPS...`.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mindpulse.errors import FormatError
from mindpulse.interop.aliases import MSPROBE
from mindpulse.interop.collect import Collector
from mindpulse.interop.loaded import LoadedRun
from mindpulse.interop.logs.text_log import collected
from mindpulse.interop.numbers import number, step_text
from mindpulse.interop.source import Line, lines
from mindpulse.interop.tables.csv_table import MISSING, cells_of
from mindpulse.series import Rows, Series, SeriesSpec

TITLE = "monitor files of msprobe"
_FIRST = b"vpp_stage,"
_LABELS = ("vpp_stage", "name", "module_name", "scope", "micro_step")
_NO_VALUES = {*_LABELS, "step", "shape", "dtype"}
_STEPS_IN_NAME = re.compile(r"_\d+-\d+$")
_RANK = re.compile(r"rank[_-]?(\d{1,9})", re.IGNORECASE)
# Files about parameters; all others are about modules, their inputs and outputs.
_OF_PARAMETERS = ("grad_", "weight_grad", "param_", "exp_avg", "optimizer")


def sniff(head: bytes, path: Path) -> bool:
    """Whether the header is one of the monitor's."""
    first = head.split(b"\n", 1)[0].replace(b" ", b"")
    return first.startswith(_FIRST) and b"step" in first


def read(path: Path) -> LoadedRun:
    """The run: a series per statistic, a column per module or parameter.

    Raises:
        StoreError: the file cannot be read.
        FormatError: it is no file of the monitor, or has no rows.
    """
    return read_all(path, [path])


def read_all(path: Path, files: Sequence[Path]) -> LoadedRun:
    """The run that several files make, one for each statistic and span of steps.

    Raises:
        StoreError, FormatError: as `read`.
    """
    collector = collected(path, MSPROBE, "msprobe-monitor")
    tables: dict[tuple[str, int], _Statistics] = {}
    for file in files:
        what = _STEPS_IN_NAME.sub("", file.name.removesuffix(".gz").removesuffix(".csv"))
        key = what, _rank_of(file)
        tables.setdefault(key, _Statistics(what, collector)).read(file)
    for (_, rank), table in tables.items():
        table.hand_over(rank)
    return collector.finish()


def _rank_of(file: Path) -> int:
    found = _RANK.search(file.parent.name) or _RANK.search(file.name)
    return int(found[1]) if found else 0


class _Statistics:
    """The cells of one kind of file, until all names and steps are known."""

    def __init__(self, what: str, collector: Collector) -> None:
        self.what, self.collector = what, collector
        self._header: list[str] = []
        self._labels: dict[tuple[str, ...], int] = {}
        self._steps: dict[int, int] = {}
        self._cells: dict[str, tuple[array[int], array[int], array[float]]] = {}

    def read(self, file: Path) -> None:
        header: list[str] = []
        for line in lines(file):
            if not header:
                header = [cell.strip() for cell in line.text.split(",")]
                self._check(header, file)
            elif line.text.strip():
                self._take(line)

    def hand_over(self, rank: int) -> None:
        """Gives the collector a wide series for each statistic."""
        order = np.argsort(np.array(list(self._steps), np.int64), kind="stable")
        steps = np.array(list(self._steps), np.int64)[order]
        axes, columns = self._columns()
        for name, (rows, places, values) in self._cells.items():
            matrix = np.full((len(steps), len(columns)), np.nan)
            matrix[np.array(rows, np.int64), np.array(places, np.int64)] = np.array(values)
            spec = SeriesSpec(f"{self.what}_{name}", "vector", axes=axes, columns=columns)
            times = np.full(len(steps), np.nan)
            self.collector.add_wide(Series(spec, Rows(steps, times, matrix[order])), rank)

    def _check(self, header: list[str], file: Path) -> None:
        if "step" not in header or not any(name in header for name in ("name", "module_name")):
            raise FormatError(f"{file}: the header {','.join(header)[:80]!r} is none of msprobe's")
        if self._header and set(header) != set(self._header):
            self.collector.remark(f"{file.name} has other columns than the files before it")
        self._header = header

    def _take(self, line: Line) -> None:
        cells = cells_of(line.text, ",")
        if not line.whole:
            self.collector.torn(line.text)
            return
        fields = dict(zip(self._header, cells, strict=False))
        step = step_text(fields.get("step", ""))
        if len(cells) != len(self._header) or step is None:
            self.collector.refuse("lines", f"line {line.number}: {line.text}")
            return
        labels = tuple(fields.get(name, "").strip() for name in _LABELS)
        row = self._steps.setdefault(step, len(self._steps))
        place = self._labels.setdefault(labels, len(self._labels))
        for name, cell in fields.items():
            if name not in _NO_VALUES:
                self._take_value(name, row, place, cell, line)

    def _take_value(self, name: str, row: int, place: int, cell: str, line: Line) -> None:
        value = number(cell)
        if value is None and cell.strip().lower() not in MISSING:
            self.collector.refuse("cells that are no numbers", f"line {line.number}: {cell}")
        rows, places, values = self._cells.setdefault(name, (array("q"), array("q"), array("d")))
        rows.append(row)
        places.append(place)
        values.append(math.nan if value is None else value)

    def _columns(self) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """The labels that tell columns apart; the name of what is measured always is one."""
        of_parameters = self.what.startswith(_OF_PARAMETERS)
        kept = [
            position
            for position, name in enumerate(_LABELS)
            if len({labels[position] for labels in self._labels}) > 1
            or (name in ("name", "module_name") and next(iter(self._labels), _LABELS)[position])
        ]
        names = {"name": "param" if of_parameters else "module"}
        names["module_name"] = names["name"]
        axes = tuple(names.get(_LABELS[position], _LABELS[position]) for position in kept)
        return axes, tuple(tuple(labels[p] for p in kept) for labels in self._labels)
