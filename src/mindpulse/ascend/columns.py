"""Columns by one name, whatever a version calls them, with their units."""

from __future__ import annotations

import re
from collections.abc import Sequence

# unit as it is written -> factor to what we use: microseconds, bytes, bytes per second, shares
UNITS = {
    "ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6,
    "b": 1.0, "byte": 1.0, "kb": 1024.0, "mb": 1024.0**2, "gb": 1024.0**3,
    "mb/s": 1e6, "gb/s": 1e9, "%": 0.01,
}  # fmt: skip
# name in another version, without unit and in lower case -> the name that we use
ALIASES = {
    "op name": "name", "op_name": "name", "full_kernel_name": "name", "full_op_name": "name",
    "api name": "name",
    "op type": "type", "op_type": "type", "kernel_type": "type",
    "task type": "core", "accelerator core": "core", "core type": "core",
    "task start time": "start time", "task duration": "duration", "task wait time": "wait time",
    "block num": "block dim", "mix block num": "mix block dim",
    "device": "device type", "device_type": "device type",
    "execution_time": "total time", "total_time": "total time", "total_compute_time": "total time",
    "op_total_time": "total time",
    "execution_frequency": "count", "type_occurrences": "count", "op_occurrences": "count",
    "stream id": "stream", "stream_id": "stream", "task id": "task",
}  # fmt: skip
_BRACKET = re.compile(r"^(?P<name>.*?)\s*[(（](?P<unit>[^()（）]*)[)）]\s*(?P<rest>\(estimate\))?$")


class Columns:
    """Where the columns of a header are.

    Attributes:
        names: the header, by our names.

    Example:
        >>> columns = Columns(["Op Name", "Task Duration(ms)", "Size(KB)"])
        >>> columns.names, columns.at["duration"], columns.factor["duration"]
        (['name', 'duration', 'size'], 1, 1000.0)
    """

    def __init__(self, header: Sequence[str]) -> None:
        self.names: list[str] = []
        self.at: dict[str, int] = {}
        self.factor: dict[str, float] = {}
        for index, written in enumerate(header):
            name, factor = canonical(written)
            self.names.append(name)
            if name not in self.at:  # of two alike the first counts
                self.at[name], self.factor[name] = index, factor

    def has(self, *names: str) -> bool:
        """Whether there are all of these."""
        return all(name in self.at for name in names)

    def text(self, row: Sequence[str], name: str) -> str:
        """A cell as text, "" where there is none."""
        index = self.at.get(name, -1)
        return row[index].strip() if 0 <= index < len(row) else ""


def canonical(written: str) -> tuple[str, float]:
    """Our name of a column and the factor of its unit; an unknown unit stays part of the name.

    Example:
        >>> canonical("Total Reserved(MB)"), canonical("Communication(Not Overlapped)")
        (('total reserved', 1048576.0), ('communication(not overlapped)', 1.0))
    """
    text = written.strip().lower()
    match = _BRACKET.match(text)
    factor = 1.0
    if match and match["unit"].strip() in UNITS:
        factor = UNITS[match["unit"].strip()]
        text = match["name"].strip()
    return ALIASES.get(text, text), factor
