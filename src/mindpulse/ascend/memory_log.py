"""Messages about memory in the logs of MindSpore, CANN, the driver, torch_npu and PyTorch.

A log is read line by line, however large, and a message that several layers repeat, or that goes
over several lines, is one event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from mindpulse.ascend.memory_event import MemoryEvent
from mindpulse.ascend.memory_patterns import WRITERS, Fields, may_tell, mindspore_pool, statistic
from mindpulse.errors import StoreError

MAX_LINE = 1 << 16  # bytes of a line that are looked at
MAX_APART = 60  # lines between two layers that report the same refusal
_READ_BYTES = 1 << 20


def read_memory_log(path: Path) -> Iterator[MemoryEvent]:
    """The events of a log file in order.

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            yield from memory_events(_lines(file))
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}; give a log file") from error


def _lines(file: Any) -> Iterator[str]:
    """Lines of a binary file; of a longer one its beginning, and of a file without any too."""
    while True:
        raw = file.readline(MAX_LINE)
        if not raw:
            return
        yield raw.decode("utf-8", "replace")
        while not raw.endswith(b"\n"):
            raw = file.readline(_READ_BYTES)
            if not raw:
                return


def memory_events(lines: Iterable[str]) -> Iterator[MemoryEvent]:
    """The events in lines of text.

    Example:
        >>> lines = ["NPU out of memory. Tried to allocate 2 GiB (NPU 0; 8 GiB total capacity; "
        ...          "4 GiB already allocated; 1 GiB free; 7 GiB reserved in total by PyTorch)"]
        >>> event = next(memory_events(lines))
        >>> event.cause, round(event.fragmentation, 3)
        ('fragmented', 0.333)
    """
    open_event: MemoryEvent | None = None
    statistics: Fields = {}
    for number, line in enumerate(lines, 1):
        if not may_tell(line):
            continue
        fresh = _event(line, number)
        block = statistic(line)
        if fresh is not None:
            if open_event is not None and _same(open_event, fresh):
                open_event = _joined(open_event, fresh)
            else:
                if open_event is not None:
                    yield _closed(open_event, statistics)
                open_event, statistics = fresh, {}
        if block:
            if open_event is None or not _takes(open_event, statistics, block, number):
                if open_event is not None:
                    yield _closed(open_event, statistics)
                open_event, statistics = MemoryEvent("peak", "mindspore-2", number), {}
            statistics |= block
            open_event = replace(open_event, last_line=number)
    if open_event is not None:
        yield _closed(open_event, statistics)


def _event(line: str, number: int) -> MemoryEvent | None:
    """The event that begins in a line."""
    pool = mindspore_pool(line)
    if pool:
        return MemoryEvent("pool", "mindspore-pool", number, number, **pool)
    for writer, read in WRITERS:
        told = read(line)
        if told:
            name = told.pop("writer", writer)
            return MemoryEvent("out_of_memory", name, number, number, **told)
    return None


def _takes(event: MemoryEvent, known: Fields, block: Fields, number: int) -> bool:
    """Whether a line of a statistic belongs to the event before it."""
    near = number - event.last_line <= MAX_APART if event.last_line else True
    ours = event.kind == "peak" or event.writer == "mindspore-2"
    return near and ours and not any(name in known for name in block)


def _same(event: MemoryEvent, fresh: MemoryEvent) -> bool:
    """Whether both are about one refusal, told by two layers or again in a traceback."""
    if event.kind != fresh.kind or event.kind != "out_of_memory":
        return False
    layers = {"driver", "ge"}
    alike = event.writer == fresh.writer or {event.writer, fresh.writer} <= layers
    devices = {event.device, fresh.device} - {None}
    if not alike or len(devices) > 1 or fresh.line - event.last_line > MAX_APART:
        return False
    return fresh.writer == "ge" or not event.asks or set(fresh.asks) <= set(event.asks)


def _joined(event: MemoryEvent, fresh: MemoryEvent) -> MemoryEvent:
    """Both as one; what the first did not say is taken from the second."""
    return replace(
        event,
        last_line=fresh.line,
        asks=tuple(dict.fromkeys((*event.asks, *fresh.asks))),
        device=event.device if event.device is not None else fresh.device,
        elsewhere=event.elsewhere or fresh.elsewhere,
        node=event.node or fresh.node,
    )


def _closed(event: MemoryEvent, statistics: Fields) -> MemoryEvent:
    """The event with what its statistic says: what is free lies between static and dynamic."""
    told = dict(statistics)
    static, dynamic = told.pop("static", None), told.pop("dynamic", None)
    if event.kind == "out_of_memory" and "limit" in told and static is not None:
        taken = static + (dynamic or 0)
        told |= {"reserved": taken, "free": max(0, told["limit"] - taken)}
    return replace(event, **told)
