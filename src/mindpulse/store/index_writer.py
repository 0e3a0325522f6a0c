"""Writes the index of a part while the part grows.

It reads what was just written, so it keeps no rows, and what it writes is what anybody could make
of the file later. An error here ends the index of this part and nothing else.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import numpy as np

from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.blocks import Blocks, blocks_of, joined, merged
from mindpulse.store.codec import Layout, RowCodec
from mindpulse.store.files import OS_FILES, FileLayer, make_folders
from mindpulse.store.index_format import (
    BLOCK_ROWS,
    FAN_OUT,
    HEADER_BYTES,
    MAX_BLOCK_BYTES,
    Identity,
    decode_entries,
    encode_entries,
    index_layout,
    index_path,
)
from mindpulse.store.part_file import PartFile
from mindpulse.store.pieces import Piece, Stretch

# Rows are taken up in portions: to open files for each block would cost more than the block.
_PORTION_BYTES = 1 << 20
MAX_LEVELS = 8


class IndexWriter:
    """Writes the levels of one part's index.

    Args:
        path: the part.
        start: offset of its first row.
        mark: the last bytes before that: the checksum of its metadata.
        spec: its series.
        files: the file system.
    """

    def __init__(
        self, path: Path, start: int, mark: bytes, spec: SeriesSpec, files: FileLayer = OS_FILES
    ) -> None:
        self._path, self._files = path, files
        self._codec = RowCodec(spec)
        self._start = start
        self._identity = Identity.of(mark, spec.width)
        self._layout = index_layout(spec.width)
        self._entries: list[int] = [0]
        block_bytes = BLOCK_ROWS * self._codec.row_bytes
        self._portion = max(1, min(4 * FAN_OUT, _PORTION_BYTES // block_bytes))
        # The index is begun when the part has so many rows.
        self._due: float = BLOCK_ROWS * self._portion
        if block_bytes > MAX_BLOCK_BYTES:
            self._due = float("inf")

    def grew(self, rows: int) -> str:
        """Writes the entries that are due now that the part has so many rows.

        Returns:
            why the index was given up just now, "" if it was not.
        """
        if rows < self._due:
            return ""
        try:
            while rows >= self._due:
                self._add_portion(self._portion)
                self._due = (self._entries[0] + self._portion) * BLOCK_ROWS
        except (OSError, ValueError, ArithmeticError, MemoryError) as error:
            self._due = float("inf")
            return str(error) or type(error).__name__
        return ""

    def finish(self, rows: int) -> None:
        """Writes the entries of all whole blocks that the part has.

        Raises:
            OSError: a file could not be read or written.
            ValueError: the rows cannot be indexed.
        """
        while self._due != float("inf") and rows >= (self._entries[0] + 1) * BLOCK_ROWS:
            left = rows // BLOCK_ROWS - self._entries[0]
            self._add_portion(min(self._portion, left))

    def _add_portion(self, count: int) -> None:
        stretch = (self._path, self._start, self._codec.layout)
        rows = _read(*stretch, self._entries[0] * BLOCK_ROWS, count * BLOCK_ROWS)
        self._append(0, _summary(rows, self._codec))
        level = 1
        while level < MAX_LEVELS and self._entries[level - 1] >= FAN_OUT * (self._count(level) + 1):
            self._append(level, self._merged(level))
            level += 1

    def _count(self, level: int) -> int:
        if level == len(self._entries):
            self._entries.append(0)
        return self._entries[level]

    def _merged(self, level: int) -> Blocks:
        """The next entries of a level, out of the level below."""
        first = self._entries[level] * FAN_OUT
        groups = self._entries[level - 1] // FAN_OUT - self._entries[level]
        path = index_path(self._path, level - 1)
        piece = _read(path, HEADER_BYTES, self._layout, first, groups * FAN_OUT)
        if piece.whole is not None:
            raise ValueError(f"{path}: what was written is damaged")
        below = decode_entries(piece.rows, self._identity.width)
        return merged(below, np.arange(0, len(below), FAN_OUT))

    def _append(self, level: int, blocks: Blocks) -> None:
        data = encode_entries(blocks, self._identity.width)
        path = index_path(self._path, level)
        done = self._entries[level]
        flags, offset = os.O_WRONLY, HEADER_BYTES + done * len(self._layout.blank)
        if not done:
            make_folders(self._files, path.parent)
            flags |= os.O_CREAT | os.O_TRUNC
            data, offset = self._identity.header(level) + data, 0
        fd = self._files.open(path, flags)
        try:
            written = self._files.pwrite(fd, data, offset)
        finally:
            self._files.close(fd)
        if written < len(data):
            raise ValueError("an index file could be written in part only")
        self._entries[level] += len(blocks)


def rebuild_index(path: Path) -> bool:
    """Writes the index of a part anew, out of its rows; False if it is too short to have one.

    The index ends before a block in which no row is whole.

    Raises:
        StoreError: the part cannot be read.
        OSError: the index cannot be written.

    Example:
        >>> rebuild_index(Path(folder) / "train_loss.ms")
        False
    """
    part = PartFile.at(path)
    for level in range(MAX_LEVELS):
        index_path(path, level).unlink(missing_ok=True)
    if part.header is None or part.header.salvaged or part.count < BLOCK_ROWS:
        return False
    writer = IndexWriter(path, part.header.size, part.mark, part.header.spec)
    with suppress(ValueError):  # what was written until then is right
        writer.finish(part.count)
    return index_path(path, 0).exists()


def _read(path: Path, start: int, layout: Layout, first: int, count: int) -> Piece:
    """Rows of a file that must be there.

    Raises:
        OSError: it cannot be read.
        ValueError: it is too short.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        piece = Stretch(fd, start, layout).read(first, count)
    finally:
        os.close(fd)
    if len(piece) < count:
        raise ValueError(f"{path}: shorter than what was written")
    return piece


def _summary(piece: Piece, codec: RowCodec) -> Blocks:
    """The blocks of rows, without those that are damaged.

    Raises:
        ValueError: no row of a block is whole.
    """
    if piece.whole is None:
        view = piece.rows
        steps, times = view["step"].astype(np.int64), view["wall_time"].astype(np.float64)
        return blocks_of(Rows(steps, times, view["values"]), BLOCK_ROWS)
    found = []
    for at in range(0, len(piece), BLOCK_ROWS):
        block = slice(at, at + BLOCK_ROWS)
        rows = codec.rows_of(piece.rows[block][piece.whole[block]])
        if not len(rows):
            raise ValueError("no row of a block is whole")
        found.append(blocks_of(rows, len(rows)))
    return joined(found)
