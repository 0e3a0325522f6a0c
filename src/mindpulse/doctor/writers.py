"""Who writes a run, with which clock, and in which version of the format."""

from __future__ import annotations

import itertools
import json
import math
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from mindpulse.doctor.result import Result, quoted
from mindpulse.doctor.rows import clock, shown
from mindpulse.doctor.traces import Trace
from mindpulse.store.folder import RUN_NAME
from mindpulse.store.format import MAGIC, VERSION

WRITERS, CLOCK, FORMAT = "summary.writers", "summary.clock", "summary.format"
AHEAD_S = 60.0  # a clock that is so far ahead is wrong
OLDEST = 1e9  # seconds since the epoch; a clock that says less was never set
_PREFIX = struct.Struct("<4sH")


def check_writers(found: Sequence[Trace]) -> list[Result]:
    """Two trainings at once in one folder: the later one hides the steps of the earlier."""
    results = [
        Result(
            WRITERS,
            "problem",
            "writers_two_now" if first.held and second.held else "writers_overlap",
            {"first": first.name, "second": second.name, "since": clock(second.first_time)},
            f"mindpulse analyze {quoted(first.folder.parent.parent)}",
            0.8 if first.held and second.held else 0.5,
        )
        for first, second in _pairs(found)
        if (first.held and second.held) or first.last_time > second.first_time
    ]
    if results:
        return results
    if found and all(trace.held is None for trace in found):
        return [Result(WRITERS, "unknown", "writers_no_locks", weight=0.1)]
    busy = [trace.name for trace in found if trace.held]
    if busy:
        return [Result(WRITERS, "ok", "writers_at_work", {"names": shown(busy)})]
    return [Result(WRITERS, "ok", "writers_none")] if found else []


def _pairs(found: Sequence[Trace]) -> Iterator[tuple[Trace, Trace]]:
    """Each attempt of a rank and the next one of the same rank."""
    by_rank = sorted(found, key=lambda trace: (trace.rank, trace.attempt))
    for first, second in itertools.pairwise(by_rank):
        if first.rank == second.rank:
            yield first, second


def check_clock(found: Sequence[Trace], now: float) -> list[Result]:
    """Times in the future, or from before any training.

    Args:
        now: seconds since the epoch, by the clock of this machine.
    """
    for trace in found:
        values: dict[str, object] = {"name": trace.name, "now": clock(now)}
        if trace.last_time > now + AHEAD_S:
            values |= {"time": clock(trace.last_time), "ahead": f"{trace.last_time - now:.0f}"}
            return [Result(CLOCK, "problem", "clock_ahead", values, "date -u", 0.4)]
        if trace.first_time < OLDEST:
            values["time"] = clock(trace.first_time)
            return [Result(CLOCK, "problem", "clock_unset", values, "date -u", 0.4)]
    known = any(math.isfinite(trace.first_time) for trace in found)
    return [Result(CLOCK, "ok", "clock_fine")] if known else []


def check_format(run_dir: Path, found: Sequence[Trace]) -> list[Result]:
    """Files that a later MindPulse wrote, which this one cannot read."""
    values: dict[str, object] = {"ours": VERSION, "path": run_dir}
    told = _told_version(run_dir)
    later = [
        (report.path, version)
        for trace in found
        for report in trace.reports
        if (version := _version(report.path)) not in (None, VERSION)
    ]
    if later or told > VERSION:
        values["theirs"] = later[0][1] if later else told
        values["files"] = shown([str(path.relative_to(run_dir)) for path, _ in later]) or RUN_NAME
        command = "pip install --upgrade mindpulse"
        return [Result(FORMAT, "problem", "format_later", values, command, 0.9)]
    return [Result(FORMAT, "ok", "format_fits", values)]


def _version(path: Path) -> int | None:
    """The version that a file says it has; None where it says none."""
    try:
        with path.open("rb") as file:
            head = file.read(_PREFIX.size)
    except OSError:
        return None
    if len(head) < _PREFIX.size or head[: len(MAGIC)] != MAGIC:
        return None
    return int(_PREFIX.unpack(head)[1])


def _told_version(run_dir: Path) -> int:
    """The version in run.json, 0 where it is not told."""
    told: object = None
    with suppress(OSError, ValueError, RecursionError):
        told = json.loads((run_dir / RUN_NAME).read_bytes())
    version = told.get("format_version") if isinstance(told, dict) else None
    return version if isinstance(version, int) else 0
