"""What the messages of a log say: why memory was refused, and how the pool lay."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mindpulse.ascend.memory_event import MemoryEvent
from mindpulse.ascend.memory_log import read_memory_log
from mindpulse.doctor.memory_settings import cure_of
from mindpulse.doctor.result import Result
from mindpulse.doctor.sizes import human, share

TOO_MUCH = 0.7  # fragmentation from which on it is a finding
APART = 0.1  # of the peak that was lost between the pieces
WEIGHTS = {"fragmented": 0.9, "full": 0.8, "too_large": 0.9, "occupied": 0.9, "unknown": 0.6}


def check_log(path: Path, environ: Mapping[str, str]) -> list[Result]:
    """Findings of one log: one for each kind of refusal, the last state of each pool.

    Raises:
        StoreError: it cannot be read.
    """
    refused: dict[tuple[str, str], tuple[MemoryEvent, int]] = {}
    states: dict[str, MemoryEvent] = {}
    for event in read_memory_log(path):
        if event.kind == "out_of_memory":
            key = (event.writer, event.cause)
            refused[key] = (event, refused.get(key, (event, 0))[1] + 1)
        elif event.fragmentation is not None:
            states[event.basis] = event
    found = [_refused(path, event, count, environ) for event, count in refused.values()]
    found += [_state(path, event, environ) for event in states.values()]
    return found or [Result("memory.log", "unknown", "memory_nothing", {"path": path})]


def _refused(path: Path, event: MemoryEvent, count: int, environ: Mapping[str, str]) -> Result:
    values = {
        "path": path,
        "line": event.line,
        "count": count,
        "asked": ", ".join(human(size) for size in event.asks) or "?",
        "node": event.node or "?",
        "total": human(event.total),
        "limit": human(event.limit),
        "idle": human(event.idle),
        "free": human(event.free),
        "left": human((event.idle or 0) + (event.free or 0)),
        "device": "?" if event.device is None else event.device,
        "share": share(event.fragmentation),
        "setting": cure_of(event.writer, environ),
    }
    finding = {
        "fragmented": "memory_fragmented",
        "full": "memory_full",
        "too_large": "memory_too_large",
        "occupied": "memory_occupied",
        "unknown": "memory_refused",
    }[event.cause]
    if event.cause == "too_large" and (event.total is None or (event.asked or 0) <= event.total):
        finding = "memory_limit"
    if event.cause == "fragmented" and event.fragmentation is None:
        finding = "memory_fragmented_device"
    command = "npu-smi info" if event.cause in ("occupied", "unknown") else ""
    weight = WEIGHTS[event.cause]
    return Result("memory.refused", "problem", finding, values, command, weight)


def _state(path: Path, event: MemoryEvent, environ: Mapping[str, str]) -> Result:
    """The last state of a pool, or the peaks that the end of a run tells."""
    fragmentation = event.fragmentation or 0.0
    values = {
        "path": path,
        "line": event.line,
        "share": share(fragmentation),
        "idle": human(event.idle),
        "largest": human(max(event.block_idle, default=None)),
        "used_peak": human(event.peak_used),
        "actual_peak": human(event.peak_actual),
        "limit": human(event.limit),
        "setting": cure_of("mindspore-2", environ),
    }
    peaks = event.basis == "peaks"
    wrong = fragmentation > (APART if peaks else TOO_MUCH)
    name = "memory_peaks" if peaks else "memory_pool"
    finding = f"{name}_fragmented" if wrong else f"{name}_fine"
    return Result("memory.pool", "problem" if wrong else "ok", finding, values, weight=0.7)
