"""kernel_details and op_summary: one row for each run of an operator, in every variant."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from mindpulse.ascend.attention import is_attention
from mindpulse.ascend.columns import Columns
from mindpulse.ascend.csv_file import CsvFile

COMMUNICATION = ("hccl", "communication")
COUNTER = re.compile(
    r"^(?:aic_|aiv_|ai_core_)?(?:"
    r"(?P<hit>write_cache_hit|r[01]_read_cache_hit|(?:read|write)_local_l2_hit)|"
    r"(?P<miss>write_cache_miss_allocate|r[01]_read_cache_miss_allocate|(?:read|write)_local_l2_miss)"
    r")$"
)
PAIRS = (("_hit", "_miss_allocate"), ("_hit", "_miss"))
BANDWIDTH = re.compile(r"^(?:aic_|aiv_)?(?P<memory>[a-z0-9_]+?)_(?P<way>read|write)_bw(?:_cube)?$")


@dataclass(slots=True)
class Kind:
    """All runs of one type of operator.

    Attributes:
        count, total_us: how often, and how long together.
        hits, lookups: of the L2 cache, over all cores.
    """

    count: int = 0
    total_us: float = 0.0
    hits: float = 0.0
    lookups: float = 0.0


@dataclass(slots=True)
class Weighted:
    """A mean weighted by time."""

    total: float = 0.0
    weight: float = 0.0

    def add(self, value: float, weight: float) -> None:
        """Takes a value in, unless one of the two is no number."""
        if math.isfinite(value) and weight > 0:
            self.total += value * weight
            self.weight += weight

    @property
    def mean(self) -> float:
        """NaN where nothing was added."""
        return self.total / self.weight if self.weight else math.nan


@dataclass(slots=True)
class Operators:
    """Sums over the rows of one file.

    Attributes:
        kinds: by type; where the profiler gave no types (level 0) all are "N/A".
        longest: (name, us).
        first_ns, last_ns: starts, since the epoch of the device's clock.
        cube, vector: utilisation of the units as shares, weighted by time.
        best_cube: (share, name).
        bandwidth: ("main_mem", "read") -> bytes per second, weighted by time.
        by_kind: the same of each type, for the main memory and L2.
    """

    kinds: dict[str, Kind] = field(default_factory=dict)
    total_us: float = 0.0
    longest: tuple[str, float] = ("", 0.0)
    first_ns: int | None = None
    last_ns: int | None = None
    cube: Weighted = field(default_factory=Weighted)
    vector: Weighted = field(default_factory=Weighted)
    best_cube: tuple[float, str] = (math.nan, "")
    bandwidth: dict[tuple[str, str], Weighted] = field(default_factory=dict)
    by_kind: dict[str, dict[tuple[str, str], Weighted]] = field(default_factory=dict)

    def read(self, file: CsvFile) -> None:
        """Adds all rows of a file."""
        columns = Columns(file.header)
        reader = _Row(file, columns)
        for row in file:
            self._add(reader, row)

    def _add(self, reader: _Row, row: Sequence[str]) -> None:
        name, kind = reader.text(row, "name"), reader.text(row, "type") or "N/A"
        duration = reader.number(row, "duration")
        found = self.kinds.setdefault(kind, Kind())
        found.count += 1
        self._time(reader, row)
        if not math.isfinite(duration):
            return
        found.total_us += duration
        self.total_us += duration
        if duration > self.longest[1]:
            self.longest = (name, duration)
        self._units(reader, row, name, duration)
        for hit, miss, _ in reader.counters:
            hits, misses = reader.at(row, hit), reader.at(row, miss)
            if hits >= 0 and misses >= 0:
                found.lookups += hits + misses
                found.hits += hits
        for key, index, factor in reader.bandwidths:
            value = reader.at(row, index) * factor
            self.bandwidth.setdefault(key, Weighted()).add(value, duration)
            self.by_kind.setdefault(kind, {}).setdefault(key, Weighted()).add(value, duration)

    def _time(self, reader: _Row, row: Sequence[str]) -> None:
        start = reader.start_ns(row)
        if start is not None:
            self.first_ns = start if self.first_ns is None else min(self.first_ns, start)
            self.last_ns = start if self.last_ns is None else max(self.last_ns, start)

    def _units(self, reader: _Row, row: Sequence[str], name: str, duration: float) -> None:
        if reader.text(row, "core").lower() in COMMUNICATION:
            return
        cube = reader.number(row, "cube_utilization")
        self.cube.add(cube, duration)
        if math.isfinite(cube) and not cube <= self.best_cube[0]:
            self.best_cube = (cube, name)
        vector = reader.number(row, "aiv_vec_time") / duration if duration > 0 else math.nan
        if math.isnan(vector):
            vector = reader.number(row, "vec_ratio")  # 910A: one kind of core
        self.vector.add(vector, duration)

    def l2_kinds(self, attention: bool) -> dict[str, Kind]:
        """The types of operators whose L2 accesses were counted; only attention if asked for."""
        return {
            name: kind
            for name, kind in self.kinds.items()
            if kind.lookups and (is_attention(name) or not attention)
        }


def counter_pairs(columns: Columns) -> list[tuple[int, int, str]]:
    """(column of hits, column of misses, name of the hits): one without the other is no rate.

    Example:
        >>> header = ["aic_write_cache_hit", "aic_write_cache_miss_allocate", "r0_read_cache_hit"]
        >>> counter_pairs(Columns(header))
        [(0, 1, 'aic_write_cache_hit')]
    """
    return [
        (columns.at[name], columns.at[missed], name)
        for name in columns.at
        if (match := COUNTER.match(name)) and match["hit"]
        for hit, miss in PAIRS
        if (missed := name.removesuffix(hit) + miss) in columns.at
    ]


class _Row:
    """Cells of a row by our names; which columns are counters, and which bandwidths."""

    def __init__(self, file: CsvFile, columns: Columns) -> None:
        self._file, self._columns = file, columns
        self.text = columns.text
        self.counters = counter_pairs(columns)
        self.bandwidths = [
            ((match["memory"], match["way"]), index, columns.factor[name])
            for index, name in enumerate(columns.names)
            if (match := BANDWIDTH.match(name)) and columns.factor[name] > 1
        ]
        self._start = columns.at.get("start time", -1)
        self._ns = round(1000 * columns.factor.get("start time", 1.0))

    def at(self, row: Sequence[str], index: int) -> float:
        """The number in a column."""
        return self._file.number(row[index]) if 0 <= index < len(row) else math.nan

    def number(self, row: Sequence[str], name: str) -> float:
        """The number in a column, in our unit."""
        index = self._columns.at.get(name, -1)
        return self.at(row, index) * self._columns.factor.get(name, 1.0)

    def start_ns(self, row: Sequence[str]) -> int | None:
        """When the operator began."""
        if not 0 <= self._start < len(row):
            return None
        return self._file.time_ns(row[self._start], self._ns)
