"""The bytes of an index: what is known of blocks of rows, beside the file that holds the rows.

Everything in it can be made again from the rows. Level k has an entry for each 256 * 32^k rows of
a part, in a file of its own: `index/train_loss.0002.ms.0` and so on. Entry i tells of the rows
i * n to (i + 1) * n - 1. After a header of 24 bytes an entry is a row as in a `.ms` file, with its
own checksum: step and wall time are those of the first undamaged row.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindpulse.store import crc
from mindpulse.store.blocks import Blocks
from mindpulse.store.codec import Layout, layout_of

INDEX_FOLDER = "index"
BLOCK_ROWS = 256
FAN_OUT = 32
# Above this a block would take too much memory in the training: such wide rows have no index.
MAX_BLOCK_BYTES = 32 << 20
MAGIC, VERSION = b"MSIX", 1
_HEADER = struct.Struct("<4sHHIII")
HEADER_BYTES = _HEADER.size + crc.SUM_BYTES
# Values of an entry that are not for each column, and those that are.
_OF_BLOCK, _OF_COLUMN = 5, 8
_NAME = re.compile(r"(?P<part>.+\.ms)\.(?P<level>\d)")
# Differences of steps are stored as float64: exact below this.
_MAX_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Identity:
    """Which part an index belongs to.

    Attributes:
        checksum: of the part's metadata, which hold tag, columns, start time, rank and attempt.
        width: number of columns.
    """

    checksum: int
    width: int

    @classmethod
    def of(cls, header: bytes, width: int) -> Identity:
        """The identity of a file whose header ends with these bytes."""
        return cls(int.from_bytes(header[-crc.SUM_BYTES :], "little"), width)

    def header(self, level: int) -> bytes:
        """The first bytes of a level's file."""
        head = _HEADER.pack(MAGIC, VERSION, level, block_rows(level), self.width, self.checksum)
        return head + crc.checksum(head).to_bytes(crc.SUM_BYTES, "little")


def block_rows(level: int) -> int:
    """Rows that an entry of a level tells of.

    Example:
        >>> block_rows(0), block_rows(1)
        (256, 8192)
    """
    return int(BLOCK_ROWS * FAN_OUT**level)


def index_path(part: Path, level: int) -> Path:
    """Where a level of the index of a part lies.

    Example:
        >>> index_path(Path("rank-0000/train_loss.0002.ms"), 1).as_posix()
        'rank-0000/index/train_loss.0002.ms.1'
    """
    return part.parent / INDEX_FOLDER / f"{part.name}.{level}"


def index_layout(width: int) -> Layout:
    """The layout of the entries for a series of `width` columns."""
    return layout_of(_OF_BLOCK + _OF_COLUMN * width, "float64", False)


def encode_entries(blocks: Blocks, width: int) -> bytes:
    """The bytes of entries.

    Raises:
        ValueError: steps lie so far apart that their differences cannot be told exactly.
    """
    layout = index_layout(width)
    raw = np.empty((len(blocks), len(layout.blank)), np.uint8)
    raw[:] = np.frombuffer(layout.blank, np.uint8)
    view = raw.reshape(-1).view(layout.dtype)
    view["step"], view["wall_time"] = blocks.first_steps, blocks.first_times
    view["values"] = _values(blocks)
    view["crc"] = crc.row_sums(raw, layout.blank, layout.varying)
    return raw.tobytes()


def _values(blocks: Blocks) -> NDArray[np.float64]:
    first = blocks.first_steps
    span = blocks.high_steps.astype(np.float64) - blocks.low_steps.astype(np.float64)
    if np.any(span >= _MAX_EXACT):
        raise ValueError("steps of a block lie 2^53 or more apart")
    of_block = (
        blocks.counts,
        _offset(blocks.last_steps, first),
        _offset(blocks.low_steps, first),
        _offset(blocks.high_steps, first),
        blocks.last_times,
    )
    of_column = (
        blocks.minimum,
        blocks.maximum,
        blocks.mean,
        _offset(blocks.min_steps, first[:, None]),
        _offset(blocks.max_steps, first[:, None]),
        blocks.nonfinite,
        _offset(blocks.nonfinite_steps, first[:, None]),
        blocks.nonfinite_values,
    )
    return np.concatenate([np.stack(of_block, axis=1), *of_column], axis=1)


def _offset(steps: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.float64]:
    return (steps - first).astype(np.float64)


def decode_entries(
    rows: NDArray[np.void], width: int, columns: NDArray[np.intp] | None = None
) -> Blocks:
    """The blocks of undamaged entries.

    Args:
        rows: (N,) structured as `index_layout` says.
        width: columns of the series.
        columns: positions of the wanted columns, None for all.
    """
    first = rows["step"].astype(np.int64)
    values = rows["values"]
    wanted = slice(width) if columns is None else columns
    column = [
        values[:, _OF_BLOCK + index * width : _OF_BLOCK + (index + 1) * width][:, wanted]
        for index in range(_OF_COLUMN)
    ]
    return Blocks(
        values[:, 0].astype(np.int64),
        first,
        first + values[:, 1].astype(np.int64),
        first + values[:, 2].astype(np.int64),
        first + values[:, 3].astype(np.int64),
        rows["wall_time"].astype(np.float64),
        values[:, 4].astype(np.float64),
        column[0].astype(np.float64),
        column[1].astype(np.float64),
        column[2].astype(np.float64),
        first[:, None] + column[3].astype(np.int64),
        first[:, None] + column[4].astype(np.int64),
        column[5].astype(np.int64),
        first[:, None] + column[6].astype(np.int64),
        column[7].astype(np.float64),
    )


def parse_index_name(name: str) -> tuple[str, int] | None:
    """(name of the part, level) of a file in the index folder, None if it is not one of ours.

    Example:
        >>> parse_index_name("train_loss.ms.1"), parse_index_name("notes.txt")
        (('train_loss.ms', 1), None)
    """
    match = _NAME.fullmatch(name)
    return (match["part"], int(match["level"])) if match else None
