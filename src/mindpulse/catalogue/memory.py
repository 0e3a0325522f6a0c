"""Measures of memory: how much, how much at once, and in how many pieces the rest lies.

A pool is described by its blocks in the order of their addresses. Devices tell some of these
numbers themselves; the references say what the numbers mean.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import ArrayLike

from mindpulse.catalogue.measure import Measure


def allocated(sizes: ArrayLike, used: ArrayLike) -> float:
    """Bytes of the pool that hold tensors.

    Args:
        sizes: (blocks,), bytes, in the order of addresses.
        used: (blocks,), true where a block holds a tensor.

    Example:
        >>> allocated([4, 2, 6], [True, False, True])
        10.0
    """
    return float((np.asarray(sizes, np.float64) * np.asarray(used, bool)).sum())


def reserved(sizes: ArrayLike) -> float:
    """Bytes that the pool took from the device, used or not.

    Args:
        sizes: (blocks,), bytes.

    Example:
        >>> reserved([4, 2, 6])
        12.0
    """
    return float(np.asarray(sizes, np.float64).sum())


def total(device_bytes: float) -> float:
    """Bytes of memory that the device has, whoever uses them.

    Args:
        device_bytes: as the device's properties tell it.

    Example:
        >>> total(68719476736)
        68719476736.0
    """
    return float(device_bytes)


def peak(allocations: ArrayLike) -> float:
    """Most bytes that were allocated at once since the start of the process.

    Args:
        allocations: (T,), bytes allocated after each change.

    Example:
        >>> peak([2, 10, 4])
        10.0
    """
    return float(np.asarray(allocations, np.float64).max(initial=0.0))


def free(sizes: ArrayLike, used: ArrayLike) -> float:
    """Bytes of the pool that hold nothing: reserved - allocated.

    Args:
        sizes: (blocks,), bytes, in the order of addresses.
        used: (blocks,), true where a block holds a tensor.

    Example:
        >>> free([4, 2, 6], [True, False, True])
        2.0
    """
    return reserved(sizes) - allocated(sizes, used)


def largest_free(sizes: ArrayLike, used: ArrayLike) -> float:
    """Bytes of the largest contiguous free piece; free blocks that touch count as one.

    Args:
        sizes: (blocks,), bytes, in the order of addresses.
        used: (blocks,), true where a block holds a tensor.

    Example:
        >>> largest_free([4, 2, 6, 3], [True, False, False, True])
        8.0
    """
    best = run = 0.0
    for size, taken in zip(np.asarray(sizes, np.float64), np.asarray(used, bool), strict=True):
        run = 0.0 if taken else run + float(size)
        best = max(best, run)
    return best


def contiguity(largest: float, total: float) -> float:
    """Largest free piece / all that is free.

    Args:
        largest: bytes of the largest contiguous free piece.
        total: bytes that are free.

    Returns:
        1 when all that is free lies in one piece; NaN when nothing is free.

    Example:
        >>> contiguity(6, 8)
        0.75
    """
    return largest / total if total > 0 else float("nan")


def fragmentation(largest: float, total: float) -> float:
    """1 - contiguity: the part of the free memory that one large request cannot get.

    Args:
        largest: bytes of the largest contiguous free piece.
        total: bytes that are free.

    Returns:
        0 when all that is free lies in one piece; NaN when nothing is free.

    Example:
        >>> fragmentation(6, 8)
        0.25
    """
    return 1.0 - contiguity(largest, total)


def resident(status: str) -> float:
    """Resident bytes of a process on the host, from the text of /proc/PID/status.

    Returns:
        NaN where the text does not say (a kernel thread, another system).

    Example:
        >>> resident("Name: python\\nVmRSS:\\t    2048 kB\\n")
        2097152.0
    """
    found = re.search(r"^VmRSS:\s*(\d+) kB$", status, re.MULTILINE)
    return float(found[1]) * 1024 if found else float("nan")


_STATS = "mindspore.runtime.memory_stats"

MEASURES = (
    Measure(
        tag="memory_allocated",
        formula="bytes of the device's memory pool that hold tensors",
        unit="bytes",
        axes=(),
        reduction="max",
        source=f"{_STATS}: total_allocated_memory",
        reference=allocated,
        family="memory",
        place="host",
        within="last",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="memory_reserved",
        formula="bytes that the memory pool took from the device",
        unit="bytes",
        axes=(),
        reduction="max",
        source=f"{_STATS}: total_reserved_memory",
        reference=reserved,
        family="memory",
        place="host",
        within="last",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="memory_total",
        formula="bytes of memory that the device has",
        unit="bytes",
        axes=(),
        reduction="max",
        source="MindSpore: mindspore.hal.get_device_properties: total_memory",
        reference=total,
        family="memory",
        place="host",
        within="last",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="memory_peak",
        formula="most bytes that were allocated at once since the start of the process",
        unit="bytes",
        axes=(),
        reduction="max",
        source=f"{_STATS}: max_allocated_memory",
        reference=peak,
        family="memory",
        place="host",
        within="last",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="memory_free",
        formula="memory_reserved - memory_allocated",
        unit="bytes",
        axes=(),
        reduction="min",
        source=f"{_STATS}: total_idle_memory",
        reference=free,
        family="memory",
        place="host",
        within="last",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="memory_largest_free",
        formula="bytes of the largest contiguous free piece of the pool",
        unit="bytes",
        axes=(),
        reduction="min",
        source="the device's memory log; MindSpore's Python interface does not tell it",
        reference=largest_free,
        family="memory",
        place="host",
        within="last",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="memory_contiguity",
        formula="memory_largest_free / memory_free",
        unit="",
        axes=(),
        reduction="min",
        source="the ratio that the article which this project started from calls fragmentation",
        reference=contiguity,
        family="memory",
        place="host",
        within="last",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="memory_fragmentation",
        formula="1 - memory_largest_free / memory_free",
        unit="",
        axes=(),
        reduction="max",
        source="external fragmentation as it is usually meant; the article has it upside down",
        reference=fragmentation,
        family="memory",
        place="host",
        within="last",
        cost="cheap",
        level="cheap",
    ),
    Measure(
        tag="host_memory_rss",
        formula="resident bytes of the training process on the host",
        unit="bytes",
        axes=(),
        reduction="max",
        source="proc(5): VmRSS in /proc/PID/status",
        reference=resident,
        family="memory",
        place="host",
        within="last",
        cost="cheap",
        level="cheap",
    ),
)
