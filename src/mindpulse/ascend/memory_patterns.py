"""How the messages about memory look, generation by generation.

Each function takes one line and returns the fields of a MemoryEvent that it holds, {} if it is not
one of its kind. What stands before the message, such as another logger's time and place, does not
matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Fields = dict[str, Any]

# Numbers have at most 18 digits: a damaged log holds longer ones, and nobody has such memory.
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = r"(\d{1,18}(?:\.\d{1,9})?)\s*([KMGT]?)(?:i?B|bytes)?\b"


def size(number: str, unit: str = "") -> int:
    """Bytes of a number with its unit; all of these loggers count in powers of 1024.

    Example:
        >>> size("1.5", "K"), size("32768", "M")
        (1536, 34359738368)
    """
    return round(float(number) * _UNITS[unit.upper()[:1]])


def _sized(text: str) -> re.Pattern[str]:
    return re.compile(text.replace("SIZE", _SIZE), re.IGNORECASE)


# MindSpore 1.x: "poll" is how it is written there.
_OLD = re.compile(
    r"Out of Memory!*\s*total\[(\d{1,18})\]\s*\(dynamic\[(\d{1,18})\]\s*"
    r"memory pol?o?l\[(\d{1,18})\]\)\s*malloc\[(\d{1,18})\]\s*failed"
)


def mindspore_1(line: str) -> Fields:
    """`Out of Memory!!! total[..] (dynamic[..] memory poll[..]) malloc[..] failed!`"""
    found = _OLD.search(line)
    if found is None:
        return {}
    total, dynamic, pool, asked = (int(text) for text in found.groups())
    return {
        "asks": (asked,),
        "total": total,
        "reserved": dynamic + pool,
        "free": max(0, total - dynamic - pool),
    }


_REQUEST = re.compile(r"Out of Memory[!.]*\s*Request memory size:\s*(\d{1,18})B?")
_KERNEL = re.compile(
    r"Device\(id:(\d{1,18})\) memory isn't enough and alloc failed, kernel name: (.{1,300}?), "
    r"alloc size: (\d{1,18})B?"
)
_DEVICE_FREE = re.compile(r"device free size:?\s*(\d{1,18})")


def mindspore_2(line: str) -> Fields:
    """`Out of Memory!!! Request memory size: 1088627200B, Memory Statistic:`, and who asked."""
    kernel = _KERNEL.search(line)
    if kernel is not None:
        device, node, asked = kernel.groups()
        return {"device": int(device), "node": node, "asks": (int(asked),)}
    found = _REQUEST.search(line)
    if found is None:
        return {}
    told: Fields = {"asks": (int(found.group(1)),)}
    left = _DEVICE_FREE.search(line)
    return told | ({"free": int(left.group(1))} if left else {})


_STATISTIC = {
    "total": _sized(r"Device (?:HBM|MOC) memory size:\s*SIZE"),
    "limit": _sized(r"MindSpore Used memory size:\s*SIZE"),
    "static": _sized(r"Total Static Memory size:\s*SIZE"),
    "dynamic": _sized(r"Total Dynamic memory size:\s*SIZE"),
    "peak_used": _sized(r"Used peak memory usage \(without fragments\):\s*SIZE"),
    "peak_actual": _sized(r"Actual peak memory usage(?: \(with fragments\))?:\s*SIZE"),
}


def statistic(line: str) -> Fields:
    """Lines of MindSpore's memory statistic; `static` and `dynamic` are not yet an event's."""
    found = {name: pattern.search(line) for name, pattern in _STATISTIC.items()}
    return {name: size(*match.groups()) for name, match in found.items() if match}


_POOL = re.compile(
    r"(?:mem pool info: Total allocated mem|dynamic memory pool total (?:allocated mem|size is))"
    r"[: ]\s*(\d{1,18})M"
)
_POOL_FIELDS = {
    "peak_used": re.compile(r"(?:, peak used mem:|used peak size is )(\d{1,18})M"),
    "peak_actual": re.compile(r"actual peak used mem:(\d{1,18})M"),
    "used": re.compile(r"(?:in used mem:|total used size is )(\d{1,18})M"),
    "idle": re.compile(r"total idle mem:(\d{1,18})M"),
}
_BLOCK_IDLE = re.compile(r"block size:\d+M idle size:(\d{1,18})M")


def mindspore_pool(line: str) -> Fields:
    """`[MS_RUNTIME_PROF]Common mem pool info: Total allocated mem:1024M, ...`, in MiB."""
    found = _POOL.search(line)
    if found is None:
        return {}
    told: Fields = {"reserved": size(found.group(1), "M")}
    for name, pattern in _POOL_FIELDS.items():
        match = pattern.search(line)
        if match:
            told[name] = size(match.group(1), "M")
    if "idle" not in told and "used" in told:
        told["idle"] = told["reserved"] - told["used"]
    told["block_idle"] = tuple(size(text, "M") for text in _BLOCK_IDLE.findall(line))
    return told


_DRIVER = re.compile(
    r"halMemAlloc failed|Malloc device memory failed|DevMemAlloc huge page failed"
    r"|Device malloc failed"
)
_DRIVER_SIZE = re.compile(r"size\s*[=\[:]\s*(\d{1,18})")
_DEVICE = re.compile(r"device_?id\s*[=:]\s*(\d{1,18})|Device (\d{1,18}) may be", re.IGNORECASE)


def driver(line: str) -> Fields:
    """`halMemAlloc failed: device_id=6, size=32212254720` and what the layers above it say."""
    if not _DRIVER.search(line):
        return {}
    found = _DRIVER_SIZE.search(line)
    told: Fields = {"asks": (int(found.group(1)),) if found else ()} | _device(line)
    if "other processes occupying" in line:
        told["elsewhere"] = True
    return told


_GE = re.compile(
    r"Call rtMalloc\w* fail|Memory_Allocation_Failure\(EL0004\)|Alloc GE memory failed"
)


def ge(line: str) -> Fields:
    """CANN's EL0004 and the `Call rtMalloc fail, ..., size:3221291008, device_id:0` below it."""
    if not _GE.search(line):
        return {}
    found = _DRIVER_SIZE.search(line)
    return {"asks": (int(found.group(1)),) if found else ()} | _device(line)


def _device(line: str) -> Fields:
    found = _DEVICE.search(line)
    return {"device": int(found.group(1) or found.group(2))} if found else {}


_TRIED = _sized(r"(NPU|CUDA|HIP) out of memory\. Tried to allocate SIZE")
_TORCH = {
    "total": (
        _sized(r"; SIZE total capacity"),
        _sized(r"has a total capacity of SIZE"),
    ),
    "used": (_sized(r"; SIZE already allocated"), _sized(r"memory SIZE is allocated by PyTorch")),
    "free": (_sized(r"; SIZE free;"), _sized(r"of which SIZE is free")),
    "reserved": (_sized(r"; SIZE reserved in total"),),
    "idle": (_sized(r"SIZE is reserved by PyTorch but unallocated"),),
}
_TORCH_DEVICE = re.compile(r"(?:NPU|GPU) (\d{1,18})")


def torch(line: str) -> Fields:
    """`NPU out of memory. Tried to allocate 3.47 GiB (NPU 0; ...)`, and CUDA's, old and new."""
    found = _TRIED.search(line)
    if found is None:
        return {}
    told: Fields = {"asks": (size(*found.groups()[1:]),)}
    told["writer"] = "torch-npu" if found.group(1).upper() == "NPU" else "cuda"
    for name, patterns in _TORCH.items():
        match = next((m for pattern in patterns if (m := pattern.search(line))), None)
        if match:
            told[name] = size(*match.groups())
    if "reserved" in told and "used" in told:
        told["idle"] = max(0, told["reserved"] - told["used"])
    elif "idle" in told and "used" in told:
        told["reserved"] = told["idle"] + told["used"]
    device = _TORCH_DEVICE.search(line, found.end())
    return told | ({"device": int(device.group(1))} if device else {})


# In this order: what comes first is the more special.
WRITERS: tuple[tuple[str, Callable[[str], Fields]], ...] = (
    ("mindspore-1", mindspore_1),
    ("mindspore-2", mindspore_2),
    ("torch", torch),
    ("driver", driver),
    ("ge", ge),
)
_HINTS = ("memory", "malloc", "mem pool")


def may_tell(line: str) -> bool:
    """Whether a line can hold anything that the patterns match; most lines cannot."""
    small = line.lower()
    return any(hint in small for hint in _HINTS)
