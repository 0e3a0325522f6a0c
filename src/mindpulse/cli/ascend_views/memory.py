"""Logs that speak of memory, and the blocks of MindSpore's memory tracker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mindpulse.ascend.memory_event import MemoryEvent
from mindpulse.ascend.memory_log import read_memory_log
from mindpulse.ascend.memory_replay import Moment, PoolReplay, replay_file
from mindpulse.cli.ascend_views.view import MB, View

SIZES = ("total", "limit", "reserved", "used", "idle", "free", "largest_free")
WORDS = {"out_of_memory": "memory refused", "pool": "the pool", "peak": "peaks"}


def view_of_log(path: Path, limit: int) -> View | None:
    """What a log tells of memory, `limit` messages of it; None where it tells nothing.

    Raises:
        StoreError: it cannot be read.
    """
    events = list(read_memory_log(path))
    if not events:
        return None
    refused = sum(event.kind == "out_of_memory" for event in events)
    lines = [f"{path}  messages about memory: {len(events)}, refusals: {refused}"]
    lines += [f"  {_event(event)}" for event in events[:limit]]
    values = {"what": "memory_log", "path": str(path)}
    return View(lines, values | {"events": [_values(event) for event in events]}, not refused)


def _values(event: MemoryEvent) -> dict[str, Any]:
    worked_out = {"basis": event.basis, "fragmentation": event.fragmentation}
    cause = event.cause if event.kind == "out_of_memory" else ""
    return {**asdict(event), "cause": cause, **worked_out}


def _event(event: MemoryEvent) -> str:
    told = [f"line {event.line}: {WORDS[event.kind]} ({event.writer})"]
    told += [f"device {event.device}"] if event.device is not None else []
    told += [event.node] if event.node else []
    told += [f"asked {', '.join(map(_mb, event.asks))}"] if event.asks else []
    for name in SIZES:
        size = getattr(event, name)
        told += [f"{name.replace('_', ' ')} {_mb(size)}"] if size is not None else []
    if event.peak_used is not None and event.peak_actual is not None:
        told.append(f"peak {_mb(event.peak_used)}, {_mb(event.peak_actual)} with fragments")
    if event.kind == "out_of_memory":
        told.append(f"cause: {event.cause.replace('_', ' ')}")
    if event.fragmentation is not None:
        told.append(f"fragmentation {event.fragmentation:.0%} ({event.basis.replace('_', ' ')})")
    return ", ".join(told)


def view_of_blocks(path: Path, limit: int) -> View:
    """The replay of a `memory_block.csv`; the `limit` largest holders of each pool.

    Raises:
        FormatError, StoreError: it cannot be read.
    """
    found = replay_file(path)
    lines = [f"{path}  {sum(pool.blocks for pool in found.pools):,} blocks of memory"]
    for pool in found.pools:
        lines += _pool(pool, limit)
    rows = found.problems.rows
    if rows:
        lines.append(f"! {rows} rows cannot be used; the first: {found.problems.first}")
    pools = [_pool_values(pool) for pool in found.pools]
    values = {"what": "memory_blocks", "path": str(path), "damaged": rows, "pools": pools}
    return View(lines, values, not rows)


def _pool(pool: PoolReplay, limit: int) -> Iterator[str]:
    yield f"  pool {pool.pool}: {pool.blocks:,} blocks"
    for what, moment in (("most in use", pool.peak), ("most in pieces", pool.worst)):
        yield f"    {what}, at operation {moment.time:,}: {_moment(moment)}"
    for name, size in pool.holders[:limit]:
        yield f"    {size / MB:>12,.1f} MB at the peak  {name}"
    if pool.left:
        yield f"    {pool.left:,} blocks never came back, {_mb(pool.left_bytes)}"
        for name, size in pool.left_holders[:limit]:
            yield f"    {size / MB:>12,.1f} MB left over    {name}"


def _moment(moment: Moment) -> str:
    free = f"{_mb(moment.free)} free in {moment.pieces:,} pieces"
    largest = f"the largest {_mb(moment.largest_free)}, fragmentation {moment.fragmentation:.0%}"
    return f"{_mb(moment.used)} in use, {free}, {largest}"


def _pool_values(pool: PoolReplay) -> dict[str, Any]:
    told = asdict(pool)
    for moment, values in ((pool.peak, told["peak"]), (pool.worst, told["worst"])):
        values["fragmentation"] = moment.fragmentation
    for moment, values in zip(pool.curve, told["curve"], strict=True):
        values["fragmentation"] = moment.fragmentation
    return told


def _mb(size: float) -> str:
    return f"{size / MB:,.1f} MB"
