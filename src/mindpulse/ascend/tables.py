"""The smaller tables of a profile: steps, memory, statistics, the L2 cache, bandwidths."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from mindpulse.ascend.attention import is_attention
from mindpulse.ascend.columns import Columns
from mindpulse.ascend.csv_file import NOTHING, CsvFile
from mindpulse.ascend.operators import BANDWIDTH, counter_pairs

MOST_MOMENTS = 1 << 18
TICK_US = 0.01  # the old step trace counts in steps of 10 ns
WHOLE = ("PTA+GE", "PTA", "MindSpore+GE", "MindSpore", "GE", "?")  # who holds the framework's pool
STEP_PARTS = {
    "computing": "computing",
    "communication": "communication",
    "communication(not overlapped)": "communication_not_overlapped",
    "overlapped": "overlapped",
    "free": "free",
    "stage": "stage",
    "bubble": "bubble",
    "preparing": "preparing",
}


@dataclass(frozen=True, slots=True)
class Step:
    """How the time of one step, or of one row of a cluster's table, was spent.

    Attributes:
        whose: "" for the profiled rank; "rank 3", "stage 0".
        parts: microseconds: "computing", "communication_not_overlapped", "free", "stage", ...
    """

    name: str
    whose: str
    parts: dict[str, float]


@dataclass(slots=True)
class Steps:
    """step_trace_time, and a cluster's."""

    rows: list[Step] = field(default_factory=list)

    def read(self, file: CsvFile) -> None:
        """Adds the steps of a file."""
        columns = Columns(file.header)
        for row in file:
            parts = {
                ours: file.number(columns.text(row, theirs)) for theirs, ours in STEP_PARTS.items()
            }
            kind, index = columns.text(row, "type"), columns.text(row, "index")
            whose = f"{kind} {index}" if kind else ""
            known = {name: value for name, value in parts.items() if math.isfinite(value)}
            self.rows.append(Step(columns.text(row, "step"), whose, known))

    def share(self, part: str) -> float:
        """Time of a part over the time of the steps; NaN where it is not told."""
        mine = [s.parts for s in self.rows if not s.whose.startswith("stage")]
        told = [parts for parts in mine if part in parts and "stage" in parts]
        whole = sum(parts["stage"] for parts in told)
        return sum(parts[part] for parts in told) / whole if whole else math.nan


@dataclass(slots=True)
class OldSteps:
    """step_trace_raw of MindSpore up to 2.2: ticks of 10 ns; the row "-" is the average.

    Attributes:
        total_us: of each step.
        average_us: what the file itself says; NaN where it does not.
    """

    total_us: list[float] = field(default_factory=list)
    average_us: float = math.nan

    def read(self, file: CsvFile) -> None:
        """Adds the steps of a file."""
        columns = Columns(file.header)
        for row in file:
            total = file.number(columns.text(row, "total")) * TICK_US
            if columns.text(row, "step_num") == "-":
                self.average_us = total
            else:
                self.total_us.append(total)


@dataclass(slots=True)
class Pool:
    """Memory of one component.

    Attributes:
        reserved, allocated: the most at a time, bytes; NaN where it is not told.
        idle_share: (reserved - allocated) / reserved when the most was allocated: memory that was
            taken from the device and served nobody even then.
    """

    rows: int = 0
    reserved: float = math.nan
    allocated: float = math.nan
    idle_share: float = math.nan


@dataclass(slots=True)
class Memory:
    """memory_record and npu_module_mem.

    Attributes:
        pools: by component.
        times: how many different moments; counted up to `MOST_MOMENTS` a file.
    """

    pools: dict[str, Pool] = field(default_factory=dict)
    times: int = 0

    def read(self, file: CsvFile) -> None:
        """Adds the rows of a file."""
        columns = Columns(file.header)
        ns = round(1000 * columns.factor.get("timestamp", 1.0))
        last, seen = "", set[int]()
        for row in file:
            pool = self.pools.setdefault(columns.text(row, "component") or "?", Pool())
            pool.rows += 1
            reserved = _number(file, columns, row, "total reserved")
            allocated = _number(file, columns, row, "total allocated")
            if not reserved <= pool.reserved and math.isfinite(reserved):
                pool.reserved = reserved
            if not allocated <= pool.allocated and math.isfinite(allocated):
                pool.allocated = allocated
                known = reserved > 0 and allocated <= reserved
                pool.idle_share = (reserved - allocated) / reserved if known else math.nan
            moment = columns.text(row, "timestamp")
            if moment != last:
                last = moment
                time = file.time_ns(moment, ns)
                if time is not None and len(seen) < MOST_MOMENTS:
                    seen.add(time)
        self.times += len(seen)

    @property
    def whole(self) -> Pool | None:
        """The framework's pool: what holds its parts together, if that is told."""
        for name in WHOLE:
            if name in self.pools and math.isfinite(self.pools[name].allocated):
                return self.pools[name]
        return None


@dataclass(slots=True)
class Blocks:
    """operator_memory: one row for each block that an operator was given.

    Attributes:
        largest: (name, bytes).
        never_released: blocks without a release within the profile.
        allocated, reserved: the most at a time, bytes.
    """

    rows: int = 0
    largest: tuple[str, float] = ("", 0.0)
    never_released: int = 0
    allocated: float = math.nan
    reserved: float = math.nan

    def read(self, file: CsvFile) -> None:
        """Adds the rows of a file."""
        columns = Columns(file.header)
        for row in file:
            self.rows += 1
            size = _number(file, columns, row, "size")
            if size > self.largest[1]:
                self.largest = (columns.text(row, "name"), size)
            self.never_released += columns.text(row, "release time").lower() in NOTHING
            for when in ("allocation", "release"):
                for what in ("allocated", "reserved"):
                    value = _number(file, columns, row, f"{when} total {what}")
                    if not value <= getattr(self, what) and math.isfinite(value):
                        setattr(self, what, value)


@dataclass(frozen=True, slots=True)
class Statistic:
    """One row of op_statistic, api_statistic and their like."""

    name: str
    core: str
    count: float
    total_us: float


@dataclass(slots=True)
class Statistics:
    """Tables that are sums already: by type of operator, or by call of an interface."""

    rows: list[Statistic] = field(default_factory=list)

    def read(self, file: CsvFile) -> None:
        """Adds the rows of a file; MindSpore's own tables are in ms and do not say so."""
        columns = Columns(file.header)
        total = "total time" if columns.has("total time") else "time"
        factor = 1.0 if "(" in file.header[columns.at[total]] else 1000.0
        for row in file:
            name = columns.text(row, "type") or columns.text(row, "name")
            core = columns.text(row, "core") or columns.text(row, "level")
            count = file.number(columns.text(row, "count"))
            us = _number(file, columns, row, total) * factor
            self.rows.append(Statistic(name, core, count, us))

    @property
    def by_time(self) -> list[Statistic]:
        """The longest first."""
        known = [row for row in self.rows if math.isfinite(row.total_us)]
        return sorted(known, key=lambda row: -row.total_us)


@dataclass(slots=True)
class CacheRates:
    """l2_cache: rates that the profiler has worked out; most chips do not fill them.

    Attributes:
        rates: by name of the operator, the means of their rows; the first operator's is left out:
            it is not meaningful on the chips that tell it.
    """

    rows: int = 0
    rates: dict[str, list[float]] = field(default_factory=dict)
    victims: dict[str, float] = field(default_factory=dict)

    def read(self, file: CsvFile) -> None:
        """Adds the rows of a file."""
        columns = Columns(file.header)
        for row in file:
            self.rows += 1
            name = columns.text(row, "name")
            rate = file.share(columns.text(row, "hit rate"))
            victim = file.number(columns.text(row, "victim rate"))
            if math.isfinite(victim):
                self.victims[name] = max(victim, self.victims.get(name, 0.0))
            if math.isfinite(rate) and self.rows > 1:
                self.rates.setdefault(name, []).append(rate)

    def means(self, attention: bool) -> dict[str, float]:
        """Mean share of hits by operator; only attention if asked for."""
        return {
            name: sum(values) / len(values)
            for name, values in self.rates.items()
            if is_attention("", name) or not attention
        }


@dataclass(slots=True)
class Cores:
    """L2Cache and Memory of `msprof op`: one row for each core that ran one operator.

    Attributes:
        hits, lookups: of the L2 cache by kind of core ("aic", "aiv"), all accesses.
        read_hits, reads: the same of reads alone.
        bandwidth: ("aiv", "main_mem", "read") -> bytes per second, the sum over the cores.
    """

    rows: int = 0
    hits: dict[str, float] = field(default_factory=dict)
    lookups: dict[str, float] = field(default_factory=dict)
    read_hits: dict[str, float] = field(default_factory=dict)
    reads: dict[str, float] = field(default_factory=dict)
    bandwidth: dict[tuple[str, str, str], float] = field(default_factory=dict)

    def read(self, file: CsvFile) -> None:
        """Adds the rows of a file."""
        columns = Columns(file.header)
        wanted = [
            (index, name) for index, name in enumerate(columns.names) if BANDWIDTH.match(name)
        ]
        pairs = counter_pairs(columns)
        for row in file:
            self.rows += 1
            for index, name in wanted:
                value = file.number(row[index]) if index < len(row) else math.nan
                if math.isfinite(value):
                    self._bandwidth(name, value, columns.factor[name])
            for hit, miss, name in pairs:
                if max(hit, miss) < len(row):
                    self._lookup(name, file.number(row[hit]), file.number(row[miss]))

    def _lookup(self, name: str, hits: float, misses: float) -> None:
        if not (hits >= 0 and misses >= 0):  # NaN too: a count without the other is no rate
            return
        core = name[:3]
        self.hits[core] = self.hits.get(core, 0.0) + hits
        self.lookups[core] = self.lookups.get(core, 0.0) + hits + misses
        if "read" in name:
            self.read_hits[core] = self.read_hits.get(core, 0.0) + hits
            self.reads[core] = self.reads.get(core, 0.0) + hits + misses

    def _bandwidth(self, name: str, value: float, factor: float) -> None:
        if (found := BANDWIDTH.match(name)) is not None and factor > 1:
            key = (name[:3], found["memory"], found["way"])
            self.bandwidth[key] = self.bandwidth.get(key, 0.0) + value * factor

    @property
    def rate(self) -> float:
        """Share of hits over all cores; NaN where there were no accesses, or none are told."""
        lookups = sum(self.lookups.values())
        return sum(self.hits.values()) / lookups if lookups else math.nan


@dataclass(slots=True)
class DeviceBandwidth:
    """hbm and ddr: bytes per second of the whole device, read and written, by metric."""

    rows: dict[str, tuple[float, float]] = field(default_factory=dict)

    def read(self, file: CsvFile) -> None:
        """Adds the rows of a file."""
        columns = Columns(file.header)
        for row in file:
            read, write = (_number(file, columns, row, way) for way in ("read", "write"))
            self.rows[columns.text(row, "metric") or f"row {file.rows}"] = (read, write)

    @property
    def mean(self) -> tuple[float, float]:
        """(read, written): what the file calls the average, else the mean of its rows."""
        for name, pair in self.rows.items():
            if name.lower().startswith("average"):
                return pair
        pairs = [pair for pair in self.rows.values() if all(map(math.isfinite, pair))]
        if not pairs:
            return math.nan, math.nan
        return sum(p[0] for p in pairs) / len(pairs), sum(p[1] for p in pairs) / len(pairs)


@dataclass(slots=True)
class Plain:
    """A table that is counted and not worked on."""

    rows: int = 0
    first: dict[str, str] = field(default_factory=dict)

    def read(self, file: CsvFile) -> None:
        """Counts the rows of a file."""
        for row in file:
            if not self.first:
                self.first = dict(zip(file.header, (cell.strip() for cell in row), strict=False))
            self.rows += 1


def _number(file: CsvFile, columns: Columns, row: list[str], name: str) -> float:
    index = columns.at.get(name, -1)
    if not 0 <= index < len(row):
        return math.nan
    return file.number(row[index]) * columns.factor[name]
