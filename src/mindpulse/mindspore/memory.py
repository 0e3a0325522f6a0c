"""Memory of the device's pool and of the process, read on the host between two steps.

The runtime keeps these numbers on the host, so nothing waits for the device. On the CPU it tells
none (all are 0), and no device tells the largest free piece: what is not known is left out, never
written as 0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mindspore as ms

from mindpulse.catalogue.memory import contiguity, fragmentation

STATM = Path("/proc/self/statm")
RUNTIME_ERRORS = (RuntimeError, ValueError, TypeError, AttributeError, NotImplementedError)


class MemoryReader:
    """Reads what is known of the memory family now.

    Args:
        stats: returns the pool's numbers under the names of `mindspore.runtime.memory_stats`, which
            is the default.
        total: returns all bytes of the device, None where they are not known; asked once.
        largest_free: returns the bytes of the largest contiguous free piece of the pool, None while
            it is not known. MindSpore's Python interface has no such function.
        statm: where the system tells the pages of this process, see proc(5).

    Attributes:
        problem: why the pool is not asked any more; "" while it answers.

    Example:
        >>> pool = {"total_reserved_memory": 1024, "total_allocated_memory": 256,
        ...         "max_allocated_memory": 512}
        >>> found = MemoryReader(lambda: pool, total=lambda: 4096, largest_free=lambda: 576).read()
        >>> found["memory_free"], found["memory_fragmentation"]
        (768.0, 0.25)
    """

    def __init__(
        self,
        stats: Callable[[], Mapping[str, Any]] | None = None,
        *,
        total: Callable[[], float | None] | None = None,
        largest_free: Callable[[], float | None] | None = None,
        statm: Path = STATM,
    ) -> None:
        self.problem = ""
        self._stats: Callable[[], Mapping[str, Any]] | None = stats or ms.runtime.memory_stats
        self._ask_total: Callable[[], float | None] | None = total or device_bytes
        self._total: float | None = None
        self._largest_free = largest_free
        self._statm = str(statm)
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")

    def read(self) -> dict[str, float]:
        """Tag -> value, for those of the family that are known; takes some ten microseconds."""
        found: dict[str, float] = {}
        if self._stats is not None:
            try:
                found = self._pool(self._stats())
            except RUNTIME_ERRORS as error:
                self.problem = f"{type(error).__name__}: {error}"
                self._stats = None
        resident = self._resident()
        if resident is not None:
            found["host_memory_rss"] = resident
        return found

    def _pool(self, stats: Mapping[str, Any]) -> dict[str, float]:
        reserved = float(stats.get("total_reserved_memory", 0))
        if reserved <= 0:
            return {}
        found = {"memory_reserved": reserved}
        if self._ask_total is not None:
            self._total, self._ask_total = self._ask_total(), None
        if self._total is not None:
            found["memory_total"] = float(self._total)
        if "total_allocated_memory" in stats:
            allocated = float(stats["total_allocated_memory"])
            found |= {"memory_allocated": allocated, "memory_free": reserved - allocated}
            found |= self._pieces(reserved - allocated)
        if "max_allocated_memory" in stats:
            found["memory_peak"] = float(stats["max_allocated_memory"])
        return found

    def _pieces(self, free: float) -> dict[str, float]:
        largest = self._largest_free() if self._largest_free is not None else None
        if largest is None:
            return {}
        return {
            "memory_largest_free": float(largest),
            "memory_contiguity": contiguity(largest, free),
            "memory_fragmentation": fragmentation(largest, free),
        }

    def _resident(self) -> float | None:
        """Resident bytes of this process: what VmRSS says, at a tenth of the price."""
        try:
            descriptor = os.open(self._statm, os.O_RDONLY)
            try:
                return float(int(os.read(descriptor, 256).split()[1]) * self._page_bytes)
            finally:
                os.close(descriptor)
        except (OSError, IndexError, ValueError):  # not Linux
            return None


def device_bytes() -> int | None:
    """All memory of the device in bytes, None where MindSpore does not tell it (on the CPU)."""
    try:
        properties = ms.hal.get_device_properties(ms.context.get_context("device_id"))
        return int(properties.total_memory) or None
    except RUNTIME_ERRORS:
        return None
