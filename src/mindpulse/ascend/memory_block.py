"""MindSpore's memory tracker: its `memory_block.csv`, and what the pool looked like at each moment.

MindSpore writes it with `MS_ALLOC_CONF=memory_tracker:True` when the process ends: one row a block,
in the order in which they were given out. The time is no clock but the number of the pool's
operation; a block that never came back has the largest 64-bit number as its end. Fields are not
quoted, and a stack of Python may hold commas, so the columns behind it are counted from the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mindpulse.errors import FormatError, StoreError

NEVER = (1 << 63) - 1
BEGINS = "start_time_stamp,end_time_stamp,"
_STACK = "python_stack"
_MAX_LINE = 1 << 20


@dataclass(frozen=True, slots=True)
class Block:
    """One block that the pool gave out.

    Attributes:
        line: its number in the file, from 1.
        start, end: operation of the pool that gave it out and that took it back; NEVER if none did.
        address, size: in bytes; `size` is what the pool set aside for it.
        pool: its kind, as the tracker names it.
        in_use, peak: bytes that the pool counted when it gave the block out; None if not told.
        holder: the operator, else the task, else the type that asked for it.
        kept: whether it is meant to stay, as weights are.
    """

    line: int
    start: int
    end: int
    address: int
    size: int
    pool: str
    in_use: int | None
    peak: int | None
    holder: str
    kept: bool


@dataclass
class Problems:
    """What of a file could not be used: rows, and the first of them in words."""

    rows: int = 0
    first: str = ""

    def add(self, line: int, reason: str) -> None:
        self.rows += 1
        self.first = self.first or f"line {line}: {reason}"


def is_memory_block(path: Path) -> bool:
    """Whether a file begins as the tracker's does."""
    try:
        with path.open("rb") as file:
            return file.read(len(BEGINS) + 3).decode("utf-8-sig", "replace").startswith(BEGINS)
    except OSError:
        return False


def read_blocks(path: Path, problems: Problems | None = None) -> Iterator[Block]:
    """The blocks of a `memory_block.csv`, one at a time.

    Args:
        problems: counts rows that cannot be used; they are left out.

    Raises:
        FormatError: it is not such a file.
        StoreError: it cannot be read.
    """
    try:
        with path.open("r", encoding="utf-8-sig", errors="replace", newline="\n") as file:
            header = file.readline(_MAX_LINE)
            if not header.startswith(BEGINS):
                raise FormatError(
                    f"{path} does not begin with {BEGINS!r}; give the memory_block.csv that "
                    "MindSpore wrote with MS_ALLOC_CONF=memory_tracker:True"
                )
            yield from blocks_of(header, file, problems)
    except FormatError:
        raise
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}; give a readable file") from error


def blocks_of(
    header: str, lines: Iterable[str], problems: Problems | None = None
) -> Iterator[Block]:
    """The blocks in lines under a header.

    Example:
        >>> header = "start_time_stamp,end_time_stamp,device_addr,pool_type,size,task_name,"
        >>> next(blocks_of(header, ["1,4,0x200,dynamic,512,Add,"])).holder
        'Add'
    """
    names = header.strip().rstrip(",").split(",")
    told = problems if problems is not None else Problems()
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        try:
            block = _block(number, _row(names, line.rstrip("\r\n")))
        except (KeyError, ValueError) as error:
            told.add(number, f"{type(error).__name__} {error}")
            continue
        if block.size > 0 and block.end >= block.start:
            yield block
        else:
            told.add(number, f"size {block.size}, from {block.start} to {block.end}")


def _row(names: list[str], line: str) -> dict[str, str]:
    """The fields by name: those before the stack from the front, those behind it from the end.

    Raises:
        ValueError: the row has fewer fields than the header, as where a file was cut.
    """
    fields = line.removesuffix(",").split(",")
    if len(fields) < len(names):
        raise ValueError(f"{len(fields)} fields where {len(names)} are wanted")
    if len(fields) == len(names) or _STACK not in names:
        return dict(zip(names, fields, strict=False))
    before = names.index(_STACK)
    behind = len(names) - before - 1
    front, end = fields[:before], fields[len(fields) - behind :]
    stack = ",".join(fields[before : len(fields) - behind])
    return dict(zip(names, [*front, stack, *end], strict=True))


def _block(line: int, row: dict[str, str]) -> Block:
    holder = row.get("node_name") or row.get("task_name") or row.get("type") or "?"
    return Block(
        line=line,
        start=int(row["start_time_stamp"]),
        end=int(row["end_time_stamp"]),
        address=int(row["device_addr"], 0),
        size=int(row["size"]),
        pool=row.get("pool_type", "").strip() or "?",
        in_use=_number(row.get("actual_used_memory", "")),
        peak=_number(row.get("actual_peak_memory", "")),
        holder=holder.strip(),
        kept=row.get("is_persistent", "").strip() in ("1", "true", "True"),
    )


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdecimal() else None
