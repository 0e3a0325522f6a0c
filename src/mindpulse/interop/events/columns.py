"""Windows of an event file turned into rows of one series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.errors import FormatError, StoreError
from mindpulse.interop.events.decode import tensor
from mindpulse.interop.events.histogram import histogram
from mindpulse.interop.events.layout import Group
from mindpulse.interop.events.tensors import HISTOGRAM, Slot
from mindpulse.interop.events.window import Single, Window
from mindpulse.series import Rows, SeriesSpec

COUNTS, LEFT, RIGHT, STATISTICS = "counts", "left", "right", "statistics"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a series comes from.

    Attributes:
        spec: as it is called and described here.
        prefix: the folder of its files.
        tag, kind: as the files call it.
        shape: of a row; of a histogram (bins,).
        part: of a histogram: "counts", "left", "right" or "statistics".
        divide: our values are theirs divided by this.
        theirs: the name in the files, with its folder.
        members: of a series whose columns are tags of their own, these tags; `tag` is the first.
    """

    spec: SeriesSpec
    prefix: str
    tag: bytes
    kind: str
    shape: tuple[int, ...] = ()
    part: str = ""
    divide: float = 1.0
    theirs: str = ""
    members: tuple[bytes, ...] = ()

    @property
    def place(self) -> tuple[str, bytes, str]:
        """Folder, tag and kind."""
        return self.prefix, self.tag, self.kind

    def renamed(self, tag: str) -> Source:
        """The same under another name."""
        return replace(self, spec=replace(self.spec, tag=tag))


@dataclass(slots=True)
class Found:
    """The places of one tag in a window: in records read as columns, and in single ones."""

    groups: list[tuple[Group, Slot]] = field(default_factory=list)
    singles: list[tuple[Single, Slot]] = field(default_factory=list)


Places = dict[tuple[bytes, str], Found]


def found_in(window: Window, wanted: frozenset[bytes] | None = None) -> Places:
    """The places of all tags of a window, or of some."""
    found: Places = {}
    for group in window.groups:
        for slot in group.layout.slots:
            if wanted is None or slot.tag in wanted:
                found.setdefault((slot.tag, slot.kind), Found()).groups.append((group, slot))
    for single in window.singles:
        for slot in single.event.slots:
            if wanted is None or slot.tag in wanted:
                found.setdefault((slot.tag, slot.kind), Found()).singles.append((single, slot))
    return found


def rows_of(
    source: Source, places: Places, dialect: str, columns: Sequence[int] | None = None
) -> Rows:
    """The rows of a series in a window, in the order of the file.

    Raises:
        StoreError: columns that stood together in every record do so no longer.
    """
    if not source.members:
        found = places.get((source.tag, source.kind))
        return _rows(source, found, dialect, columns)
    chosen = range(len(source.members)) if columns is None else columns
    tags = [source.members[index] for index in chosen]
    parts = [_rows(source, places.get((tag, source.kind)), dialect, None) for tag in tags]
    if len({len(part) for part in parts}) > 1:
        raise StoreError(f"{source.theirs!r}: the file was changed while it was read; read again")
    values = np.concatenate([part.values for part in parts], axis=1)
    return Rows(parts[0].steps, parts[0].wall_times, values)


def _rows(source: Source, found: Found | None, dialect: str, columns: Sequence[int] | None) -> Rows:
    offsets: list[NDArray[np.int64]] = []
    blocks: list[Rows] = []
    for group, slot in found.groups if found else ():
        if len(slot.shape) == len(source.shape):
            values = _fit(group.values(slot), slot.shape, source.shape)
            offsets.append(group.offsets)
            blocks.append(Rows(group.steps(), group.wall_times(), _picked(values, columns)))
    for single, slot in found.singles if found else ():
        for values in _decoded(source, single, slot, dialect):
            step, wall_time = single.time()
            offsets.append(np.array([single.offset], np.int64))
            one = Rows(np.array([step]), np.array([wall_time]), _picked(values, columns))
            blocks.append(one)
    width = 1 if source.members else source.spec.width
    rows = _in_order(offsets, blocks, width if columns is None else len(columns), source)
    if source.divide == 1.0:
        return rows
    return Rows(rows.steps, rows.wall_times, rows.values / source.divide)


def _in_order(
    offsets: list[NDArray[np.int64]], blocks: list[Rows], width: int, source: Source
) -> Rows:
    dtype = source.spec.dtype
    if not blocks:
        return Rows.empty(width, dtype)
    joined = Rows.concat(blocks)
    rows = Rows(joined.steps, joined.wall_times, joined.values.astype(dtype, copy=False))
    if len(blocks) == 1:
        return rows
    return rows[np.argsort(np.concatenate(offsets), kind="stable")]


def _picked(values: NDArray[Any], columns: Sequence[int] | None) -> NDArray[Any]:
    return values if columns is None else values[:, list(columns)]


def _decoded(
    source: Source, single: Single, slot: Slot, dialect: str
) -> Iterator[NDArray[np.float64]]:
    """(1, W) of a value that is decoded; nothing for one that cannot be, or has other axes."""
    try:
        if source.kind == HISTOGRAM:
            yield _of_histogram(source, single.data, slot, dialect)
        elif len(slot.shape) == len(source.shape):
            yield _fit(_numbers(single.data, slot, dialect), slot.shape, source.shape)
    except FormatError:  # told when the file was indexed
        return


def _numbers(data: bytes, slot: Slot, dialect: str) -> NDArray[np.float64]:
    if slot.dtype:
        return np.frombuffer(data[slot.start : slot.end], slot.dtype)[None, :].astype(np.float64)
    return tensor(dialect, data, slot).reshape(1, -1)


def _of_histogram(source: Source, data: bytes, slot: Slot, dialect: str) -> NDArray[np.float64]:
    found = histogram(dialect, data, slot)
    if source.part == STATISTICS:
        names = (labels[0] for labels in source.spec.columns)
        return np.array([[found.statistics.get(name, np.nan) for name in names]])
    values = {COUNTS: found.counts, LEFT: found.left, RIGHT: found.right}[source.part]
    return _fit(values[None, :], (len(values),), source.shape)


def _fit(values: NDArray[Any], shape: tuple[int, ...], wanted: tuple[int, ...]) -> NDArray[Any]:
    """(T, W) values of one shape in the columns of a larger one; NaN in the others."""
    if shape == wanted:
        return values
    out = np.full((len(values), *wanted), np.nan)
    out[(slice(None), *(slice(0, size) for size in shape))] = values.reshape(len(values), *shape)
    return out.reshape(len(values), -1)
