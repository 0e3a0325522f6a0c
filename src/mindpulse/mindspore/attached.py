"""How a training stood when the monitor came: what the doctor needs when something is missing."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import mindspore as ms

ATTACHED_NOTE = "attached"
_DEBUGGERS = ("debugpy", "pydevd")


def attached(
    cells: Iterable[Any],
    optimizers: Sequence[Any],
    intervals: Mapping[str, int],
    flush_interval_s: float,
) -> dict[str, Any]:
    """What the note says; asks the device once, for the optimizer's counter.

    Args:
        cells: the model, the training cell: whatever may be compiled already.
        intervals: tag -> steps between two measurements.
    """
    seldom = {tag: interval for tag, interval in intervals.items() if interval > 1}
    return {
        "compiled": [type(cell).__name__ for cell in cells if is_compiled(cell)],
        "optimizer_steps": max((steps_of(each) for each in optimizers), default=0),
        "intervals": seldom,
        "flush_interval_s": flush_interval_s,
        "debugger": debugger(),
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "device": device_in_use(),
    }


def device_in_use() -> int | None:
    """Which of the chips that this process can see it uses, from 0 up; None where it uses none.

    ASCEND_RT_VISIBLE_DEVICES picks some of them; the number in MindSpore's context counts these.
    """
    if ms.get_context("device_target") != "Ascend":
        return None
    number = int(ms.get_context("device_id"))
    picked = os.environ.get("ASCEND_RT_VISIBLE_DEVICES", "").replace(" ", "")
    if not picked:
        return number
    listed = [int(each) for each in picked.split(",") if each.isdecimal()]
    return listed[number] if number < len(listed) else None


def is_compiled(cell: Any) -> bool:
    """Whether MindSpore has made a graph of this cell already; what is planted then, may be
    ignored."""
    return bool(getattr(cell, "compile_cache", None) or getattr(cell, "_compiled", False))


def steps_of(optimizer: Any) -> int:
    """How many steps an optimizer has made, by its own counter; 0 where it has none."""
    counter = getattr(optimizer, "global_step", None)
    if counter is None:
        return 0
    return int(counter.asnumpy().reshape(-1)[0])


def debugger() -> str:
    """What debugs or traces this process, "" if nothing does."""
    found = next((name for name in _DEBUGGERS if name in sys.modules), "")
    trace = sys.gettrace()
    if found or trace is None:
        return found
    return str(getattr(trace, "__module__", None) or type(trace).__module__)
