"""The shape of a table in a text: what parts the cells, what the columns are called."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass

from mindpulse.interop.numbers import number

DELIMITERS = (",", "\t", ";")
MISSING = {"", "n/a", "na", "none", "null", "-"}
_PROBED_LINES = 20


@dataclass(frozen=True, slots=True)
class Table:
    """The shape.

    Attributes:
        delimiter: what stands between two cells.
        names: of the columns, no two alike.
        has_header: the first line holds the names; else they are "column 1" and so on.
    """

    delimiter: str
    names: tuple[str, ...]
    has_header: bool


def cells_of(line: str, delimiter: str) -> list[str]:
    """The cells of one line; quotes are understood, a line break within them is not.

    Example:
        >>> cells_of('1,"a,b",', ",")
        ['1', 'a,b', '']
    """
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return line.split(delimiter)


def table_of(lines: Sequence[str], certain: bool) -> Table | None:
    """The shape of the table that begins with these lines; None if they are no table.

    Args:
        lines: the first lines of the file, without comments and empty lines.
        certain: the file is called a table; then a header without rows is one too.
    """
    if not lines:
        return None
    counts = {mark: len(cells_of(lines[0], mark)) for mark in DELIMITERS}
    delimiter = max(DELIMITERS, key=lambda mark: counts[mark])
    width = counts[delimiter]
    if width < 2 and not (certain and len(lines) > 1):
        return None
    first = [cell.strip() for cell in cells_of(lines[0], delimiter)]
    has_header = not all(_is_number(cell) for cell in first)
    rows = [cells_of(line, delimiter) for line in lines[1 if has_header else 0 : _PROBED_LINES]]
    if not _are_rows(rows, width, certain):
        return None
    return Table(delimiter, _unlike(first if has_header else [""] * width), has_header)


def _are_rows(rows: Sequence[Sequence[str]], width: int, certain: bool) -> bool:
    if not rows:
        return certain and width > 1
    good = sum(
        len(row) == width and any(_is_number(cell) and cell.strip() for cell in row) for row in rows
    )
    return good > 0 if certain else 2 * good > len(rows)


def _is_number(cell: str) -> bool:
    return cell.strip().lower() in MISSING or number(cell) is not None


def _unlike(names: Sequence[str]) -> tuple[str, ...]:
    """Names for all columns: a missing one is "column 3", the second "loss" is "loss (2)"."""
    found: dict[str, None] = {}
    for position, name in enumerate(names, 1):
        told = name.lstrip("#").strip() or f"column {position}"
        candidate, count = told, 1
        while candidate in found:
            count += 1
            candidate = f"{told} ({count})"
        found[candidate] = None
    return tuple(found)
