"""What `npu-smi info` prints: chips, processes, versions; whole, cut, or of one NPU only.

A number that is not told (`-`, `NA`, cut off, no such column) is None, never 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

MB = 1024 * 1024
MOST_PROBLEMS = 20
_VERSIONS = re.compile(r"npu-smi\s+(?P<tool>\S+)\s+Version:\s*(?P<driver>\S+)")
_PAIR = re.compile(r"(\d+)\s*/\s*(\d+)")
_KEY = re.compile(r"^\s*(?P<key>[A-Za-z][^:|]*?)\s*:\s*(?P<value>[^|]*?)\s*$")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip of the table.

    Attributes:
        npu, chip: as the table numbers them; an A3 has two chips in an NPU.
        device: the number in the column Phy-ID or Device; None where there is none.
        health: "OK", "Warning", "Alarm", "Critical", "Offline".
        power_w, temperature_c: watts, degrees Celsius.
        bus: "" where it is not told.
        ai_core: share of the time in use, 0 to 1.
        memory, hbm: (used, all) in bytes; None where the table has no such column.
    """

    npu: int
    name: str
    health: str
    chip: int | None = None
    device: int | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    bus: str = ""
    ai_core: float | None = None
    memory: tuple[int, int] | None = None
    hbm: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """A process on a chip; one process may stand on several. Memory in bytes."""

    npu: int
    chip: int
    pid: int
    name: str
    memory: int | None


@dataclass(slots=True)
class NpuSmi:
    """All that a text tells.

    Attributes:
        tool, driver: versions, "" where they are not told.
        values: `-t usages`, `-t health`, `-t common`: name -> text, as it is printed.
        problems: lines that are cut or of no known shape, quoted.
    """

    tool: str = ""
    driver: str = ""
    chips: list[Chip] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def looks_like(text: str) -> bool:
    """Whether a text was printed by npu-smi."""
    head = text[:4000]
    return bool(
        _VERSIONS.search(head)
        or re.search(r"(Usage Rate\(%\)|Health Status|NPU ID)\s*:", head)
        or re.search(r"\|\s*NPU\s+Name\s*\|\s*Health", head)
    )


def parse(text: str) -> NpuSmi:
    """Reads a text; what cannot be read is told in `problems`, nothing is raised.

    Example:
        >>> parse("| 0  910B2C | OK | 88.6  51  0 / 0 |").chips[0].power_w
        88.6
    """
    found = NpuSmi()
    reader = _Reader(found)
    for line in text.splitlines():
        reader.take(line)
    reader.end()
    return found


class _Reader:
    def __init__(self, found: NpuSmi) -> None:
        self._found = found
        self._open: Chip | None = None  # its second line is awaited
        self._has_hbm = True
        self._processes = False

    def take(self, line: str) -> None:
        """One line."""
        if (versions := _VERSIONS.search(line)) is not None:
            self._found.tool, self._found.driver = versions["tool"], versions["driver"]
        elif "Process id" in line:
            self.end()
            self._processes = True
        elif "Bus-Id" in line:
            self._has_hbm = "HBM-Usage" in line
        elif "|" in line and not re.search(r"NPU\s+Name|No running processes", line):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            whole = line.rstrip().endswith("|")
            if not (self._process(cells) if self._processes else self._chip(cells, whole)):
                self._tell(line)
        elif "|" not in line and (pair := _KEY.match(line)) is not None and pair["value"]:
            self._found.values.setdefault(pair["key"].strip(), pair["value"])

    def end(self) -> None:
        """A chip whose second line was cut off stays as far as it is known."""
        if self._open is not None:
            self._found.chips.append(self._open)
            self._tell(f"NPU {self._open.npu}: its second line is missing")
            self._open = None

    def _tell(self, line: str) -> None:
        if len(self._found.problems) < MOST_PROBLEMS:
            self._found.problems.append(line.strip()[:120])

    def _chip(self, cells: list[str], whole: bool) -> bool:
        first = cells[0].split(None, 1)
        if len(cells) < 2 or not first or not first[0].isdecimal():
            return False
        if len(first) == 2 and not first[1].isdecimal():
            self.end()
            numbers = cells[2].split() if len(cells) > 2 else []
            self._open = Chip(
                int(first[0]), first[1], cells[1],
                power_w=_number(numbers, 0), temperature_c=_number(numbers, 1),
            )  # fmt: skip
            return whole
        if self._open is None:
            return False
        self._found.chips.append(self._second(self._open, first, cells))
        self._open = None
        return whole

    def _second(self, chip: Chip, first: list[str], cells: list[str]) -> Chip:
        text = cells[2] if len(cells) > 2 else ""
        used = _number(text.split(), 0)
        pairs = [(int(a) * MB, int(b) * MB) for a, b in _PAIR.findall(text)]
        return replace(
            chip,
            chip=int(first[0]),
            device=int(first[1]) if len(first) == 2 else None,
            bus="" if cells[1] in ("NA", "-") else cells[1],
            ai_core=None if used is None else used / 100,
            memory=pairs[0] if pairs else None,
            hbm=pairs[1] if self._has_hbm and len(pairs) > 1 else None,
        )

    def _process(self, cells: list[str]) -> bool:
        place = cells[0].split()
        if len(cells) < 2 or len(place) != 2 or not all(p.isdecimal() for p in (*place, cells[1])):
            return False
        memory = _number(cells[3].split(), 0) if len(cells) > 3 else None
        self._found.processes.append(
            Process(
                int(place[0]), int(place[1]), int(cells[1]), cells[2] if len(cells) > 2 else "",
                None if memory is None else round(memory * MB),
            )
        )  # fmt: skip
        return len(cells) > 3


def _number(words: list[str], index: int) -> float | None:
    word = words[index] if index < len(words) else ""
    return float(word) if _NUMBER.fullmatch(word) else None
