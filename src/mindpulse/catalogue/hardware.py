"""Measures of the hardware: what the watcher learns beside the training.

From `npu-smi info`, every few seconds, one column for each chip that the rank's process is on; and
from a profile, one row at the first step of its window.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from mindpulse.catalogue.measure import Measure

ALARMS = ("OK", "Warning", "Alarm", "Critical")


def share_of_percent(percent: float) -> float:
    """A share from 0 to 1.

    Args:
        percent: as the table prints it.

    Example:
        >>> share_of_percent(37)
        0.37
    """
    return float(percent) / 100


def bytes_of(megabytes: float) -> float:
    """Bytes.

    Args:
        megabytes: as the table prints them, of 1024 * 1024 bytes.

    Example:
        >>> bytes_of(65536)
        68719476736.0
    """
    return float(megabytes) * 1024 * 1024


def as_told(value: float) -> float:
    """The number that the table prints.

    Args:
        value: degrees Celsius, or watts.

    Example:
        >>> as_told(88.6)
        88.6
    """
    return float(value)


def alarm(health: str) -> float:
    """How bad the health of a chip is: 0 OK, 1 Warning, 2 Alarm, 3 Critical, 4 anything else.

    Args:
        health: the word in the column Health; "" where it was cut off.

    Returns:
        NaN where nothing is told.

    Example:
        >>> alarm("OK"), alarm("Alarm"), alarm("Offline")
        (0.0, 2.0, 4.0)
    """
    if health in ("", "-", "NA"):
        return float("nan")
    return float(ALARMS.index(health) if health in ALARMS else len(ALARMS))


def hit_rate(hits: ArrayLike, misses: ArrayLike) -> float:
    """Hits / (hits + misses), added up first; NaN where nothing was looked up.

    Args:
        hits, misses: (cores,), counts of one type of operator.

    Example:
        >>> hit_rate([30, 10], [10, 30])
        0.5
    """
    found, lost = float(np.sum(hits)), float(np.sum(misses))
    return found / (found + lost) if found + lost else float("nan")


def by_time(values: ArrayLike, durations: ArrayLike) -> float:
    """The mean weighted by time; NaN where there is no time.

    Args:
        values: (operators,).
        durations: (operators,), in any unit.

    Example:
        >>> by_time([0.25, 0.75], [1, 3])
        0.625
    """
    weights = np.asarray(durations, np.float64)
    total = float(weights.sum())
    return float((np.asarray(values, np.float64) * weights).sum()) / total if total else np.nan


def share(parts: ArrayLike, steps: ArrayLike) -> float:
    """Time of a part of the steps / time of the steps; NaN where there is no time.

    Args:
        parts, steps: (steps,), in the same unit.

    Example:
        >>> share([1, 3], [10, 10])
        0.2
    """
    total = float(np.sum(steps))
    return float(np.sum(parts)) / total if total else float("nan")


def highest(reserved: ArrayLike) -> float:
    """The most at a time, bytes.

    Args:
        reserved: (T,), bytes that the pool had taken after each change.

    Example:
        >>> highest([4, 9, 8])
        9.0
    """
    return float(np.max(reserved))


def idle_at_peak(allocated: ArrayLike, reserved: ArrayLike) -> float:
    """(reserved - allocated) / reserved when the most was allocated.

    Args:
        allocated, reserved: (T,), bytes.

    Example:
        >>> idle_at_peak([2, 6, 3], [4, 8, 8])
        0.25
    """
    used, taken = np.asarray(allocated, np.float64), np.asarray(reserved, np.float64)
    at = int(used.argmax())
    return float((taken[at] - used[at]) / taken[at]) if taken[at] > 0 else float("nan")


def _measure(
    tag: str,
    formula: str,
    unit: str,
    reduction: str,
    source: str,
    reference: Callable[..., float],
    axes: tuple[str, ...] = (),
) -> Measure:
    return Measure(
        tag=tag,
        formula=formula,
        unit=unit,
        axes=axes,
        reduction=reduction,
        source=source,
        reference=reference,
        family="hardware",
        place="watcher",
        within="last",
        cost="cheap",
        level="cheap",
    )


_SMI, _PROFILE = "npu-smi info", "the profiler of MindSpore on Ascend"
_CHIP, _OPERATOR = ("chip",), ("operator",)

MEASURES = (
    _measure(
        "npu_utilization", "share of the time in which the AI cores were in use", "", "mean",
        f"{_SMI}: AICore(%)", share_of_percent, _CHIP,
    ),
    _measure(
        "npu_memory_used", "bytes of the chip's memory in use, by whomever", "bytes", "max",
        f"{_SMI}: HBM-Usage(MB); Memory-Usage(MB) where a chip has no HBM", bytes_of, _CHIP,
    ),
    _measure(
        "npu_memory_total", "bytes of memory that the chip has", "bytes", "max",
        f"{_SMI}: HBM-Usage(MB); Memory-Usage(MB) where a chip has no HBM", bytes_of, _CHIP,
    ),
    _measure("npu_temperature", "temperature of the chip", "C", "max",
             f"{_SMI}: Temp(C)", as_told, _CHIP),
    _measure("npu_power", "power that the NPU takes", "W", "sum",
             f"{_SMI}: Power(W)", as_told, _CHIP),
    _measure(
        "npu_alarm", "0 OK, 1 Warning, 2 Alarm, 3 Critical, 4 anything else (Offline)", "", "max",
        f"{_SMI}: Health", alarm, _CHIP,
    ),
    _measure(
        "l2_hit_rate", "hits / (hits + misses) of the L2 cache, of each type of attention operator",
        "", "min", f"{_PROFILE}: kernel_details.csv, l2_cache.csv", hit_rate, _OPERATOR,
    ),
    _measure(
        "cube_utilization", "use of the matrix units, mean over the operators weighted by time",
        "", "mean", f"{_PROFILE}: kernel_details.csv", by_time,
    ),
    _measure(
        "vector_utilization", "use of the vector units, mean over the operators weighted by time",
        "", "mean", f"{_PROFILE}: kernel_details.csv", by_time,
    ),
    _measure(
        "hbm_read_bandwidth", "bytes read from HBM in a second, mean", "bytes/s", "mean",
        f"{_PROFILE}: hbm_*.csv, kernel_details.csv", by_time,
    ),
    _measure(
        "hbm_write_bandwidth", "bytes written to HBM in a second, mean", "bytes/s", "mean",
        f"{_PROFILE}: hbm_*.csv, kernel_details.csv", by_time,
    ),
    _measure(
        "comm_not_overlapped_share", "time of communication that nothing hid / time of the steps",
        "", "max", f"{_PROFILE}: step_trace_time.csv", share,
    ),
    _measure(
        "device_free_share", "time in which the device waited for the host / time of the steps",
        "", "max", f"{_PROFILE}: step_trace_time.csv", share,
    ),
    _measure(
        "profile_memory_peak", "most bytes that the framework's pool reserved at a time", "bytes",
        "max", f"{_PROFILE}: memory_record.csv", highest,
    ),
    _measure(
        "profile_memory_idle", "(reserved - allocated) / reserved when the most was allocated",
        "", "max", f"{_PROFILE}: memory_record.csv", idle_at_peak,
    ),
)  # fmt: skip
