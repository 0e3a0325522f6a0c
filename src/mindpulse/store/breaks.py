"""Where rows stand out of line: bytes were put into a file, or are missing in its middle.

A file in order is known by its last row: if that is whole, so is the line that it stands in. Only
where it is not are whole rows looked for, behind the last one that stands in line.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from mindpulse.store.codec import Layout
from mindpulse.store.pieces import Break, Stretch
from mindpulse.store.resync import RowSearch

# Each break costs another look at the rest of the file.
MAX_BREAKS = 16
_SEARCHED_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class Line:
    """The rows of a file by position.

    Attributes:
        breaks: where a new line of rows begins, in order; empty in a file in order.
        count: rows, damaged ones included.
        torn_bytes: bytes behind the last of them.
    """

    breaks: tuple[Break, ...]
    count: int
    torn_bytes: int


def line_up(fd: int, start: int, size: int, layout: Layout) -> Line:
    """Where the rows of a file stand, the first of them at `start`.

    Raises:
        OSError: the file cannot be read.
    """
    row_bytes = len(layout.blank)
    first, breaks = 0, list[Break]()
    while True:
        rows, torn = divmod(max(0, size - start), row_bytes)
        after = None
        if len(breaks) < MAX_BREAKS:
            in_line = _rows_in_line(Stretch(fd, start, layout), rows)
            after = next_line(fd, start + in_line * row_bytes, size, layout)
        if after is None:
            return Line(tuple(breaks), first + rows, torn)
        first += in_line + rows_between(start + in_line * row_bytes, after, row_bytes)
        start = after
        breaks.append(Break(first, start))


def next_line(fd: int, end: int, size: int, layout: Layout) -> int | None:
    """Where the next whole row begins, behind the end of a line of them; None if nowhere.

    Raises:
        OSError: the file cannot be read.
    """
    if size - end <= len(layout.blank):
        return None
    return RowSearch(os.pread(fd, min(size - end, _SEARCHED_BYTES), end), layout).next_row(1, end)


def rows_between(end: int, start: int, row_bytes: int) -> int:
    """Rows that were lost between two lines; so later ones keep the positions that they had."""
    return max(1, round((start - end) / row_bytes))


def _rows_in_line(stretch: Stretch, rows: int) -> int:
    """How many rows there are up to the last whole one."""
    for piece in stretch.pieces_backwards(0, rows, most=1):
        if piece.whole is None:
            return piece.first + len(piece)
        if piece.whole.any():
            return piece.first + int(piece.whole.nonzero()[0][-1]) + 1
    return 0
