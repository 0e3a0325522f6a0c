"""Series as text: `1x100 80..20x5 nan 1~0.1x30` and what it stands for.

value      3 | 1e-4 | nan | inf | -inf
run        VALUE x COUNT         the value COUNT times; once without a count
           A..B x COUNT          COUNT values from A to B, in equal steps
           A+D x COUNT           A, A+D, A+2D ... (or A-D)
           ~S behind any of them normal noise of standard deviation S, the same at each call
           _ x COUNT             steps without a row
wide rows  [RUN RUN*K ...]xCOUNT a run for each column; *K repeats it for K columns
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindpulse.errors import RuleError

MAX_VALUES = 2_000_000
_NUMBER = r"[+-]?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|nan|inf)"
_SIZE = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_RUN = rf"(?P<a>{_NUMBER})(?:\.\.(?P<b>{_NUMBER})|(?P<d>[+-]{_SIZE}))?(?:~(?P<s>{_SIZE}))?"
_COUNT = r"(?:x(?P<n>\d{1,7}))?"
_SPACE = re.compile(r"\s+")
_GAP = re.compile(rf"_{_COUNT}(?=\s|\Z)")
_PLAIN = re.compile(rf"{_RUN}{_COUNT}(?=\s|\Z)")
_WIDE = re.compile(rf"\[(?P<columns>[^\[\]]*)\]{_COUNT}(?=\s|\Z)")
_COLUMN = re.compile(rf"{_RUN}(?:\*(?P<k>\d{{1,5}}))?(?=\s|\Z)")

Table = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Values:
    """Rows of a series.

    Attributes:
        places: (T,) at which of the series' own steps each row stands: 0, 1, 2...; gaps leave out.
        table: (T, W).
    """

    places: NDArray[np.int64]
    table: Table


def read_values(text: str, width: int, seed: Sequence[int] = (0,)) -> Values:
    """The rows that a text stands for.

    Args:
        width: columns; 0 takes as many as the widest part of the text has.
        seed: of the noise.

    Raises:
        RuleError: a part is not in the notation, or too large; points at the character.

    Example:
        >>> read_values("1x2 5..3x3 _x2 [1 2*2]", 3).table[:, 0].tolist()
        [1.0, 1.0, 5.0, 4.0, 3.0, 1.0]
        >>> read_values("1 _x2 7+2x2", 0).places.tolist()
        [0, 3, 4]
    """
    parts = _parts(text)
    width = width or max((len(columns) for _, columns, _ in parts), default=1)
    total = sum(count for count, columns, _ in parts if columns)
    if total * width > MAX_VALUES:
        raise RuleError(f"{total:,} rows of {width:,} columns: at most {MAX_VALUES:,} values", text)
    random = np.random.default_rng([*seed, width])
    blocks, places, at = [np.empty((0, width))], [np.empty(0, np.int64)], 0
    for count, columns, column in parts:
        if columns and len(columns) not in (1, width):
            raise RuleError(f"{len(columns)} columns, where there are {width}", text, column)
        if columns:
            blocks.append(_block(columns, count, width, random))
            places.append(np.arange(at, at + count))
        at += count
    return Values(np.concatenate(places), np.concatenate(blocks))


_Column = dict[str, str | None]


def _parts(text: str) -> list[tuple[int, list[_Column], int]]:
    """(count, a run for each column, where it stands) of each part; no columns for a gap."""
    found, at = [], 0
    while at < len(text):
        if space := _SPACE.match(text, at):
            at = space.end()
            continue
        columns: list[_Column] = []
        if part := _WIDE.match(text, at):
            columns = _columns(part["columns"], text, at + 1)
        elif part := _PLAIN.match(text, at):
            columns = [part.groupdict()]
        elif not (part := _GAP.match(text, at)):
            raise RuleError(
                "not in the notation: want for example 1x100, 5..3x10 or [1 2]", text, at
            )
        found.append((_count(part["n"], text, at), columns, at))
        at = part.end()
    return found


def _columns(text: str, whole: str, begin: int) -> list[_Column]:
    columns: list[_Column] = []
    at = 0
    while at < len(text):
        if space := _SPACE.match(text, at):
            at = space.end()
        elif part := _COLUMN.match(text, at):
            columns += [part.groupdict()] * _count(part["k"], whole, begin + at)
            at = part.end()
        else:
            raise RuleError("not a column: want for example 0.5 or 0.5~0.1*4", whole, begin + at)
    if not columns:
        raise RuleError("no column: want for example [1 2]", whole, begin)
    return columns


def _count(written: str | None, text: str, at: int) -> int:
    count = int(written) if written else 1
    if not 1 <= count <= MAX_VALUES:
        raise RuleError(f"a count of {count}: want 1 to {MAX_VALUES:,}", text, at)
    return count


def _block(
    columns: Sequence[_Column], count: int, width: int, random: np.random.Generator
) -> Table:
    table = np.stack([_run(column, count) for column in columns], axis=1)
    table = np.broadcast_to(table, (count, width))
    noise = np.array([float(column["s"] or 0) for column in columns])
    return table + noise * random.standard_normal((count, width)) if noise.any() else table


def _run(column: _Column, count: int) -> Table:
    begin = float(column["a"] or "nan")
    if column["b"]:
        return np.linspace(begin, float(column["b"]), count)
    return begin + float(column["d"] or 0) * np.arange(count)
