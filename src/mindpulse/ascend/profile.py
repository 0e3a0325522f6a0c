"""A profile: the files that belong to one rank, read together, and what follows from them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from mindpulse.ascend.attention import is_attention
from mindpulse.ascend.columns import Columns
from mindpulse.ascend.csv_file import CsvFile
from mindpulse.ascend.json_files import MOST_BYTES, Told, read_json, take
from mindpulse.ascend.kinds import Table, kind_of
from mindpulse.ascend.memory_block import is_memory_block
from mindpulse.ascend.operators import Operators
from mindpulse.ascend.tables import (
    CacheRates,
    Cores,
    DeviceBandwidth,
    Memory,
    Statistics,
    Steps,
)
from mindpulse.errors import FormatError, MindPulseError, StoreError, UsageError

LOW_L2 = 0.6
SUFFIXES = (".csv", ".json", ".txt")
_RANK = re.compile(r"(?<![a-z0-9])rank[_-]?(\d+)(?![a-z0-9])")  # not "lowrank16"
_INFO = re.compile(r"profiler_info_(\d+)\.json")
_TABLE = re.compile(r"\.csv$|^profiler_info|^communication|^trace_view")
_FOLDERS = ("ASCEND_PROFILER_OUTPUT", "mindstudio_profiler_output", "FRAMEWORK")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class FileRead:
    """What became of one file.

    Attributes:
        kind: "" for one that could not be read, or is none that is known.
        rows, columns: 0 where there are none.
        damaged, ruined: rows that are not whole, cells that cannot be trusted.
        problems: sentences about them.
    """

    path: Path
    kind: str
    rows: int = 0
    columns: int = 0
    damaged: int = 0
    ruined: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """Something worth a sentence: a key of the catalogue of messages, and its values.

    Attributes:
        bad: whether it is to be mended; else it says why something is unknown.
    """

    key: str
    values: dict[str, object]
    bad: bool = True


@dataclass(slots=True)
class Profile:
    """The files of one rank, or of one device.

    Attributes:
        path: the folder, or the file.
        rank: None where nothing tells it. The number of a device is not a rank.
        devices: the numbers of devices that the tables name.
        tables: what was read, by kind of file.
    """

    path: Path
    rank: int | None = None
    devices: set[str] = field(default_factory=set)
    files: list[FileRead] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)
    told: Told = field(default_factory=Told)

    def of(self, kind: type[Found]) -> Iterator[Found]:
        """The tables of one type."""
        return (table for table in self.tables.values() if isinstance(table, kind))

    @property
    def damaged(self) -> int:
        """Damaged rows, ruined cells and unreadable files."""
        broken = sum(1 for f in self.files if f.problems and not f.kind)
        return broken + sum(f.damaged + f.ruined for f in self.files)

    def l2_by_operator(self) -> dict[str, float]:
        """Share of L2 hits of each attention operator; of all operators where none is attention.

        From counters of hits and misses, added up over cores and runs; from rates that the
        profiler worked out only where there are no counters.
        """
        for attention in (True, False):
            found: dict[str, float] = {}
            for rates in self.of(CacheRates):
                found |= rates.means(attention)
            for operators in self.of(Operators):
                kinds = operators.l2_kinds(attention)
                found |= {name: kind.hits / kind.lookups for name, kind in kinds.items()}
            if found:
                return found
        cores = [c.rate for c in self.of(Cores) if math.isfinite(c.rate)]
        return {"operator": cores[0]} if cores else {}

    def figures(self) -> dict[str, float]:
        """One number for each series that the profile tells; what is not told is missing.

        Shares from 0 to 1, bytes, bytes per second.
        """
        told = {
            "l2_hit_rate": self._l2(),
            "cube_utilization": _first(o.cube.mean for o in self.of(Operators)),
            "vector_utilization": _first(o.vector.mean for o in self.of(Operators)),
            "hbm_read_bandwidth": self._bandwidth(0),
            "hbm_write_bandwidth": self._bandwidth(1),
            "comm_not_overlapped_share": _first(
                s.share("communication_not_overlapped") for s in self.of(Steps)
            ),
            "device_free_share": _first(s.share("free") for s in self.of(Steps)),
            "profile_memory_peak": _first(
                m.whole.reserved for m in self.of(Memory) if m.whole is not None
            ),
            "profile_memory_idle": _first(
                m.whole.idle_share for m in self.of(Memory) if m.whole is not None
            ),
        }
        return {name: value for name, value in told.items() if math.isfinite(value)}

    def _l2(self) -> float:
        """Hits over lookups of the operators of `l2_by_operator`, all together."""
        for attention in (True, False):
            for operators in self.of(Operators):
                if kinds := operators.l2_kinds(attention).values():
                    return sum(k.hits for k in kinds) / sum(k.lookups for k in kinds)
        return _first(iter(self.l2_by_operator().values()), mean=True)

    def _bandwidth(self, way: int) -> float:
        for device in self.of(DeviceBandwidth):
            return device.mean[way]
        key = ("main_mem", ("read", "write")[way])
        return _first(o.bandwidth[key].mean for o in self.of(Operators) if key in o.bandwidth)

    def findings(self) -> list[Finding]:
        """What is to be said about the numbers."""
        return [*self._l2_findings(), *self._unreadable()]

    def _l2_findings(self) -> Iterator[Finding]:
        rates = self.l2_by_operator()
        low = {n: r for n, r in rates.items() if r < LOW_L2 and is_attention(n)}
        if low:
            named = ", ".join(f"{n} {r:.0%}" for n, r in sorted(low.items(), key=lambda x: x[1]))
            yield Finding("l2_low", {"operators": named, "bound": f"{LOW_L2:.0%}"})
        empty = [c for c in self.of(CacheRates) if c.rows and not c.rates]
        if not rates and empty:
            yield Finding("l2_not_filled", {"rows": empty[0].rows}, bad=False)
        elif not rates and any(True for _ in self.of(Operators)):
            metrics = self.told.settings.get("aic_metrics", "?")
            yield Finding("l2_not_asked", {"metrics": metrics}, bad=False)

    def _unreadable(self) -> Iterator[Finding]:
        damaged = sum(f.damaged for f in self.files)
        ruined = sum(f.ruined for f in self.files)
        if damaged:
            yield Finding("rows_damaged", {"count": damaged})
        if ruined:
            yield Finding("cells_ruined", {"count": ruined})


def read_profile(path: Path) -> Profile:
    """Reads a profiler's folder, or one file of it.

    Where a folder holds the profiles of several ranks, `profiles_below` lists them.

    Raises:
        StoreError: it cannot be read.
        UsageError: there is nothing of a profiler in it.
    """
    if not path.exists():
        raise StoreError(f"{path}: no such file or folder")
    profile = Profile(path, rank=_rank_of(path))
    names = [path] if path.is_file() else sorted(_files_of(path))
    for name in names:
        profile.files.append(_read(name, profile, alone=path.is_file()))
    if profile.told.rank is not None:
        profile.rank = profile.told.rank
    if not any(f.kind or f.problems for f in profile.files):
        raise UsageError(
            f"{path}: nothing in it was written by a profiler of Ascend; give a folder such as "
            "*_ascend_ms, *_ascend_pt, PROF_* or OPPROF_*, or one of its CSV files"
        )
    return profile


def profiles_below(path: Path) -> list[Path]:
    """The folders of profiles at a path and below it, each of one rank.

    Raises:
        StoreError: there is no such path.
    """
    if not path.exists():
        raise StoreError(f"{path}: no such file or folder")
    if path.is_file() or any((path / name).is_dir() for name in _FOLDERS):
        return [path]
    if any(
        _TABLE.search(f.name) and f.is_file() and not is_memory_block(f) for f in path.iterdir()
    ):
        return [path]
    found: list[Path] = []
    for folder in sorted(p for p in path.iterdir() if p.is_dir() and not p.is_symlink()):
        found += profiles_below(folder)
    return found


def _files_of(folder: Path) -> Iterator[Path]:
    # What msprof left in PROF_* is the same once more.
    twice = any(folder.glob("ASCEND_PROFILER_OUTPUT/kernel_details*.csv"))
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if "logs" in parts or (twice and parts[0].startswith("PROF_")):
            continue
        known = path.suffix in SUFFIXES or ".json" in path.name
        if known and path.is_file() and not is_memory_block(path):
            yield path


def _read(path: Path, profile: Profile, alone: bool) -> FileRead:
    try:
        if ".json" in path.name:
            return _read_json(path, profile)
        return _read_csv(CsvFile(path), profile)
    except FormatError as error:
        text = path.suffix == ".txt" and not alone  # logs and lists that are no tables
        return FileRead(path, "", problems=() if text else (str(error),))
    except MindPulseError as error:
        return FileRead(path, "", problems=(str(error),))


def _read_json(path: Path, profile: Profile) -> FileRead:
    size = path.stat().st_size
    if size > MOST_BYTES:  # nothing is wrong with it
        return FileRead(path, "not read", problems=(f"{size / 1e6:.0f} MB of JSON are not read",))
    kind = take(read_json(path), profile.told)
    if profile.told.rank is None and (match := _INFO.fullmatch(path.name)):
        profile.told.rank = int(match[1])
    return FileRead(path, kind)


def _read_csv(file: CsvFile, profile: Profile) -> FileRead:
    kind = kind_of(file)
    if kind is None:
        return FileRead(file.path, "", columns=len(file.header))
    table = profile.tables.get(kind.name)
    if table is None:
        table = profile.tables[kind.name] = kind.make()
    index = Columns(file.header).at.get("device_id", len(file.header))
    file.on_row = lambda row: profile.devices.update(
        cell.strip() for cell in row[index : index + 1]
    )
    table.read(file)
    trouble = file.trouble
    return FileRead(
        file.path, kind.name, file.rows, len(file.header), trouble.damaged, trouble.ruined,
        tuple(trouble.told),
    )  # fmt: skip


def _rank_of(path: Path) -> int | None:
    for part in reversed(path.resolve().parts):
        match = _RANK.search(part)
        if match:
            return int(match[1])
    return None


def _first(values: Iterator[float], mean: bool = False) -> float:
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return math.nan
    return sum(known) / len(known) if mean else known[0]


def by_time(profile: Profile) -> list[tuple[str, float, float]]:
    """(type, runs, microseconds) of the operators, the longest first.

    Out of single runs where they were recorded, else out of the profiler's own sums.
    """
    for operators in profile.of(Operators):
        if operators.total_us:
            kinds = operators.kinds.items()
            return sorted(((n, k.count, k.total_us) for n, k in kinds), key=lambda x: -x[2])
    for name in ("op_statistic", "cpu_op_type_info", "aicore_intermediate_type"):
        table = profile.tables.get(name)
        if isinstance(table, Statistics) and table.rows:
            return [(row.name, row.count, row.total_us) for row in table.by_time]
    return []
