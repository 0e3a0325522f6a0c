"""Reads the index of a part, and believes only what fits to the rows.

An index may be missing, cut, damaged, of another part with the same name, or ahead of rows that a
power failure took. Entries that lie within the part are used if their checksums fit and some of
them agree with the rows themselves; else the rows are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindpulse.errors import StoreError
from mindpulse.store.blocks import Blocks
from mindpulse.store.index_format import (
    BLOCK_ROWS,
    HEADER_BYTES,
    Identity,
    block_rows,
    decode_entries,
    index_layout,
    index_path,
)
from mindpulse.store.part_file import PartFile, opened
from mindpulse.store.pieces import Stretch

_CHECKED_ENTRIES = 5
_LOOKED_AT_ROWS = 16


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the index of a part.

    Attributes:
        path: its file.
        width: columns of the series.
        rows: of the part, that an entry tells of.
        count: entries that lie wholly within the part, damaged ones included.
    """

    path: Path
    width: int
    rows: int
    count: int

    def read(
        self, first: int, stop: int, columns: NDArray[np.intp] | None = None
    ) -> Iterator[tuple[NDArray[np.int64], Blocks]]:
        """The undamaged entries from `first` to `stop`: their positions and what they tell.

        Raises:
            StoreError: the file cannot be read.
        """
        with opened(self.path) as fd:
            stretch = Stretch(fd, HEADER_BYTES, index_layout(self.width))
            for piece in stretch.pieces(first, stop):
                rows = piece.rows if piece.whole is None else piece.rows[piece.whole]
                places = piece.first + np.arange(len(piece))
                places = places if piece.whole is None else places[piece.whole]
                yield places, decode_entries(rows, self.width, columns)


def levels_of(part: PartFile) -> list[Level]:
    """The levels that can be trusted, the finest first; none where there is no index."""
    found: list[Level] = []
    if part.header is None or part.header.salvaged or part.count < BLOCK_ROWS:
        return found
    try:
        identity = Identity.of(part.mark, part.header.spec.width)
        while level := _level(part, identity, len(found)):
            found.append(level)
    except StoreError:  # no such file, or none that can be read: then the rows are
        pass
    return found


def _level(part: PartFile, identity: Identity, number: int) -> Level | None:
    path = index_path(part.path, number)
    layout = index_layout(identity.width)
    with opened(path) as fd:
        if os.pread(fd, HEADER_BYTES, 0) != identity.header(number):
            return None
        entries = (os.fstat(fd).st_size - HEADER_BYTES) // len(layout.blank)
    rows = block_rows(number)
    level = Level(path, identity.width, rows, min(entries, part.count // rows))
    return level if level.count and _agrees(level, part) else None


def _agrees(level: Level, part: PartFile) -> bool:
    """Whether the first, the last and some entries between them begin as their rows do."""
    places = np.unique(np.linspace(0, level.count - 1, _CHECKED_ENTRIES).astype(np.int64))
    return all(_fits(level, part, int(place)) for place in places)


def _fits(level: Level, part: PartFile, place: int) -> bool:
    ((places, entry),) = level.read(place, place + 1)
    if not len(places):
        return True  # damaged, and so found out when it is read
    first = place * level.rows
    for piece in part.pieces(first, first + level.rows, most=_LOOKED_AT_ROWS):
        rows = piece.rows if piece.whole is None else piece.rows[piece.whole]
        if len(rows):
            begins = (int(rows["step"][0]), float(rows["wall_time"][0]))
            return begins == (int(entry.first_steps[0]), float(entry.first_times[0]))
    return False
