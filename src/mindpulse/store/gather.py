"""One series out of its files, without holding more of them than the rows that are asked for.

Parts of one attempt follow each other, without the rows that a writer repeated; an attempt hides
the rows of earlier attempts from its lowest step on; a part with other columns is matched by
label. All that is decided piece by piece, while the rows are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.series import Rows, Series, SeriesSpec
from mindpulse.store.merge import lower
from mindpulse.store.part_file import PartFile
from mindpulse.store.pieces import Piece
from mindpulse.store.repeats import repeated_rows

MISSING = -1
_LARGE_PAGE = 1 << 21


@dataclass(frozen=True)
class Source:
    """A part of the series that is asked for.

    Attributes:
        part: the file.
        before: the earlier parts of the attempt, in order.
        spec: the series as it will be handed out.
        take: (W wanted,) positions of the wanted columns in this file, -1 where it lacks one;
            None where the columns are those of the file.
        alone: no other attempt hides rows of this one, or is hidden by it.
    """

    part: PartFile
    before: tuple[PartFile, ...]
    spec: SeriesSpec
    take: NDArray[np.intp] | None
    alone: bool = False

    @cached_property
    def repeated(self) -> NDArray[np.bool_]:
        """Of the first rows of the file, which stand in an earlier part too."""
        return repeated_rows(self.part, self.before)

    def wanted(self, piece: Piece) -> NDArray[np.bool_] | None:
        """(T,) which rows of a piece count; None where all do."""
        head = self.repeated[piece.first : piece.first + len(piece)]
        if not head.any():
            return piece.whole
        kept = np.ones(len(piece), np.bool_) if piece.whole is None else piece.whole.copy()
        kept[: len(head)] &= ~head
        return kept

    def values(self, rows: NDArray[Any]) -> NDArray[Any]:
        """(T, W wanted) of rows as they stand in the file; a view where that is possible."""
        values: NDArray[Any] = rows["values"]
        if self.take is None:
            return values
        if len(self.take) == 1 and self.take[0] != MISSING:
            return values[:, self.take[0] : self.take[0] + 1]
        picked = np.empty((len(rows), len(self.take)), self.spec.dtype)
        for target, column in enumerate(self.take):
            picked[:, target] = np.nan if column == MISSING else values[:, column]
        return picked


@dataclass(frozen=True)
class Gathered:
    """The files of one series of one rank.

    Attributes:
        spec: the series as it is handed out.
        attempts: the parts by attempt, in order.
        starts: first step of an attempt, where its training said so; empty where the rows of all
            attempts are asked for, one after the other.
        hides: False where every row of every attempt is asked for.
    """

    spec: SeriesSpec
    attempts: Mapping[int, Sequence[Source]]
    starts: Mapping[int, int] = field(default_factory=dict)
    hides: bool = True

    @property
    def order(self) -> list[int]:
        """The attempts, and those of which only a start is known, the latest first."""
        return sorted({*self.attempts, *self.starts}, reverse=True)

    def limit_after(self, limit: int | None, attempt: int, lowest: int | None) -> int | None:
        """The step from which on earlier attempts are hidden, once `attempt` is known."""
        return lower(limit, self.starts.get(attempt), lowest) if self.hides else None


def sources(
    parts: Mapping[int, Sequence[tuple[PartFile, SeriesSpec]]],
    columns: Sequence[int] | None,
    alone: bool = False,
) -> tuple[SeriesSpec, dict[int, list[Source]]]:
    """The wanted columns of parts that may have others; the last part says which there are.

    Args:
        parts: files and their descriptions by attempt; at least one.
        alone: no attempt hides rows of another.

    Raises:
        UsageError: there is no such column.
    """
    latest = parts[max(parts)][-1][1]
    spec = latest if columns is None else latest.pick(columns)
    found = {}
    for attempt, files in parts.items():
        found[attempt] = [
            Source(
                part,
                tuple(other for other, _ in files[:index]),
                spec,
                _take(own, spec, columns if own.columns == latest.columns else None),
                alone,
            )
            for index, (part, own) in enumerate(files)
        ]
    return spec, found


def _take(
    own: SeriesSpec, spec: SeriesSpec, columns: Sequence[int] | None
) -> NDArray[np.intp] | None:
    if own.columns == spec.columns:
        return None
    if columns is not None:
        return np.array(columns, np.intp)
    place = {labels: index for index, labels in enumerate(own.columns or ((),))}
    wanted = spec.columns or ((),)
    return np.array([place.get(labels, MISSING) for labels in wanted], np.intp)


def read_all(gathered: Gathered) -> Series:
    """All rows, in arrays that are made once for each attempt."""
    kept: list[Rows] = []
    limit: int | None = None
    for attempt in gathered.order:
        rows, lowest = _fill(gathered.attempts.get(attempt, ()), gathered.spec, limit)
        kept.append(rows)
        limit = gathered.limit_after(limit, attempt, lowest)
    full = [rows for rows in reversed(kept) if len(rows)]
    return Series(gathered.spec, Rows.concat(full or kept[:1]))


def _fill(parts: Sequence[Source], spec: SeriesSpec, limit: int | None) -> tuple[Rows, int | None]:
    room = _room(sum(source.part.count for source in parts), spec)
    kept, lowest = 0, None
    for source in parts:
        for piece in source.part.pieces():
            rows, low = visible(source, piece, limit)
            lowest = lower(lowest, low)
            target = slice(kept, kept + len(rows))
            room.steps[target], room.wall_times[target] = rows["step"], rows["wall_time"]
            room.values[target] = source.values(rows)
            kept += len(rows)
    return room[:kept], lowest


def _room(count: int, spec: SeriesSpec) -> Rows:
    """Rows to be filled: in one stretch of memory, which the system hands out in large pages."""
    row = np.dtype(spec.dtype).itemsize * spec.width
    size = count * (16 + row)
    spare = _LARGE_PAGE if size >= 2 * _LARGE_PAGE else 0
    memory = np.empty(size + 2 * spare, np.uint8)
    start = -memory.__array_interface__["data"][0] % _LARGE_PAGE if spare else 0
    memory = memory[start : start + size]
    return Rows(
        memory[: 8 * count].view(np.int64),
        memory[8 * count : 16 * count].view(np.float64),
        memory[16 * count :].view(spec.dtype).reshape(count, spec.width),
    )


def visible(source: Source, piece: Piece, limit: int | None) -> tuple[NDArray[Any], int | None]:
    """The rows of a piece below the limit, and the lowest step of all that count.

    Where the series has one attempt only there is no limit, and nobody asks for the lowest step.
    """
    mask = source.wanted(piece)
    rows = piece.rows if mask is None else piece.rows[mask]
    if source.alone or not len(rows):
        return rows, None
    steps = rows["step"].astype(np.int64)
    return rows if limit is None else rows[steps < limit], int(steps.min())


def copied(source: Source, rows: NDArray[Any]) -> Rows:
    """Rows that stay when the next piece is read."""
    values = source.values(rows)
    return Rows(
        rows["step"].astype(np.int64),
        rows["wall_time"].astype(np.float64),
        values.astype(source.spec.dtype, order="C"),
    )


def blocks(gathered: Gathered) -> Iterator[Series]:
    """The rows of `read_all`, a piece at a time; steps of restarted trainings are read twice."""
    limits = _limits(gathered)
    for attempt in sorted(gathered.attempts):
        for source in gathered.attempts[attempt]:
            for piece in source.part.pieces():
                rows, _ = visible(source, piece, limits[attempt])
                if len(rows):
                    yield Series(gathered.spec, copied(source, rows))


def _limits(gathered: Gathered) -> dict[int, int | None]:
    """The step from which on later attempts hide the rows of an attempt."""
    limits: dict[int, int | None] = {}
    limit: int | None = None
    order = gathered.order
    for attempt in order:
        limits[attempt] = limit
        if gathered.hides and attempt != order[-1]:
            lows = [_lowest(source) for source in gathered.attempts.get(attempt, ())]
            limit = gathered.limit_after(limit, attempt, lower(*lows))
    return limits


def _lowest(source: Source) -> int | None:
    return lower(*(visible(source, piece, None)[1] for piece in source.part.pieces()))


def last(gathered: Gathered, count: int) -> Series:
    """The last `count` rows of `read_all`, read from the end."""
    found: list[Rows] = []
    limit: int | None = None
    for attempt in gathered.order:
        lowest: int | None = None
        for source in reversed(gathered.attempts.get(attempt, ())):
            for piece in source.part.pieces_backwards(max(1, count)):
                rows, low = visible(source, piece, limit)
                lowest = lower(lowest, low)
                found.append(copied(source, rows[max(0, len(rows) - count) :]))
                count -= len(found[-1])
                if count <= 0:
                    return Series(gathered.spec, Rows.concat(found[::-1]))
        limit = gathered.limit_after(limit, attempt, lowest)
    return Series(gathered.spec, Rows.concat(found[::-1] or [_room(0, gathered.spec)]))
