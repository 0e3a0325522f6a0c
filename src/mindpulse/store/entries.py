"""What the training hands to the recorder, before it is rows."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mindpulse.errors import UsageError
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.backlog import block_bytes

# What a scalar takes in memory while it waits in a dictionary.
SCALAR_BYTES = 100


class Scalars(NamedTuple):
    """Numbers of one step, by tag."""

    step: int
    wall_time: float
    values: Mapping[str, float]


class Block(NamedTuple):
    """Rows of one series."""

    spec: SeriesSpec
    rows: Rows


class Told(NamedTuple):
    """A note."""

    note: dict[str, Any]


class Snapshot(NamedTuple):
    """Arrays for a file of their own."""

    name: str
    step: int
    arrays: Mapping[str, NDArray[Any]]


Entry = Scalars | Block | Told | Snapshot


def rows_in(entry: Entry) -> int:
    """Rows that are lost with an entry."""
    if isinstance(entry, Scalars):
        return len(entry.values)
    return len(entry.rows) if isinstance(entry, Block) else 0


def size_of(entry: Entry) -> int:
    """Memory that a waiting entry takes, roughly."""
    if isinstance(entry, Scalars):
        return SCALAR_BYTES * len(entry.values)
    if isinstance(entry, Block):
        return block_bytes(entry.rows)
    if isinstance(entry, Told):
        return SCALAR_BYTES * len(entry.note)
    return sum(getattr(array, "nbytes", SCALAR_BYTES) for array in entry.arrays.values())


def columns(
    tags: tuple[str, ...], entries: list[Scalars]
) -> Iterator[tuple[str, Rows | UsageError]]:
    """Blocks by tag, out of entries that all have these tags; an error for each bad value."""
    try:
        yield from list(_table(tags, entries))
    except (TypeError, ValueError, OverflowError):
        yield from _one_by_one(entries)


def _table(tags: tuple[str, ...], entries: list[Scalars]) -> Iterator[tuple[str, Rows]]:
    steps = np.array([entry.step for entry in entries], np.int64)
    wall_times = np.array([entry.wall_time for entry in entries], np.float64)
    table = np.array([list(entry.values.values()) for entry in entries])
    # Asked for floats at once, NumPy would read None as NaN and the text "1" as a number.
    if table.shape != (len(entries), len(tags)) or table.dtype.kind not in "fiub":
        raise ValueError("a value is not a single number")
    table = table.astype(np.float64, copy=False)
    for index, tag in enumerate(tags):
        yield tag, Rows(steps, wall_times, table[:, index : index + 1])


def _one_by_one(entries: list[Scalars]) -> Iterator[tuple[str, Rows | UsageError]]:
    """The slow way, for entries in which something is no number."""
    for step, wall_time, values in entries:
        for tag, value in values.items():
            try:
                if isinstance(value, str | bytes):
                    raise TypeError(f"{value!r:.40} is text")
                yield tag, Rows.one(step, wall_time, float(value))
            except (TypeError, ValueError, OverflowError) as error:
                yield tag, UsageError(f"{tag!r} at step {step!r}: {error}")


def npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of a `.npz` file.

    Raises:
        TypeError: an array holds Python objects, which could only be pickled.
    """
    checked = {name: np.asarray(value) for name, value in arrays.items()}
    for name, value in checked.items():
        if value.dtype.hasobject:
            raise TypeError(f"snapshot array {name!r} holds Python objects; give numbers")
    out = io.BytesIO()
    np.savez(out, **checked)
    return out.getvalue()
