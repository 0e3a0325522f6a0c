"""Events as bytes, for TensorBoard and for MindSpore: many rows at a time where they are numbers.

The bytes of a number's event are the same but for wall time, step, value and sum. So one event is
written out and repeated, and the columns are filled in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.interop.events.frame import FOOT_BYTES, HEAD_BYTES, Bytes, head, masked_all
from mindpulse.interop.events.values import MINDSPORE, TENSORBOARD
from mindpulse.series import Rows
from mindpulse.store.crc import SUM_BYTES, checksum, row_sums
from mindpulse.store.wire import FIXED32, FIXED64, chunk, number, tag_byte, text, varint

BLOCK_BYTES = 1 << 22
# From this many rows on it pays to make tables of what each byte does to a sum.
_TABLE_ROWS = 4096
_TF_NUMBERS = {"<f4": 1, "<f8": 2}
_MS_NUMBERS = {"<f4": 11, "<f8": 12}
_ALL = 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True, slots=True)
class Part:
    """One value of an event, as a message with zeros where its numbers stand.

    Attributes:
        raw: the message.
        start: where its numbers begin.
        dtype: their type.
        count: how many.
    """

    raw: bytes
    start: int
    dtype: str
    count: int = 1


def scalar_part(dialect: str, tag: str, dtype: str | None = None) -> Part:
    """A number. TensorBoard has an older form, of single precision, and a newer one.

    Args:
        dtype: None for the older form, "<f4" or "<f8" for the newer one.
    """
    if dialect == MINDSPORE or dtype is None:
        key = tag_byte(3 if dialect == MINDSPORE else 2, FIXED32)
        raw = text(1, tag) + key + bytes(4)
        return Part(raw, len(raw) - 4, "<f4")
    return _tensor(tag, (), dtype, "scalars")


def tensor_part(dialect: str, tag: str, shape: tuple[int, ...], dtype: str) -> Part:
    """A tensor. MindSpore's holds its values in single precision whatever their type."""
    if dialect == TENSORBOARD:
        return _tensor(tag, shape, dtype, "")
    dims = b"".join(number(1, size) for size in shape)
    values = chunk(3, bytes(4 * prod(shape)))
    message = dims + number(2, _MS_NUMBERS["<f4"]) + values
    raw = text(1, tag) + chunk(8, message)
    return Part(raw, len(raw) - 4 * prod(shape), "<f4", prod(shape))


def _tensor(tag: str, shape: tuple[int, ...], dtype: str, plugin: str) -> Part:
    size = prod(shape) * int(dtype[2:])
    dims = b"".join(chunk(2, number(1, length)) for length in shape)
    message = number(1, _TF_NUMBERS[dtype]) + chunk(2, dims) + chunk(4, bytes(size))
    raw = text(1, tag) + chunk(8, message)
    start = len(raw) - size
    if plugin:
        raw += chunk(9, chunk(1, text(1, plugin)))
    return Part(raw, start, dtype, prod(shape))


def numeric_events(parts: Sequence[Part], rows: Rows) -> Iterator[bytes]:
    """One event a row that holds all parts, framed, in blocks of some MiB.

    Args:
        rows: (T, W) values, the numbers of the first part first.
    """
    size = 64 + sum(len(part.raw) + 8 for part in parts)
    most = max(1, BLOCK_BYTES // size)
    for start in range(0, len(rows), most):
        for run in _same_length(rows[start : start + most]):
            yield _events(parts, run)


def _same_length(rows: Rows) -> Iterator[Rows]:
    """Runs of rows whose steps take the same number of bytes."""
    steps = rows.steps.view(np.uint64)
    limits = np.uint64(1) << (np.uint64(7) * np.arange(1, 10, dtype=np.uint64))
    lengths = np.searchsorted(limits, steps, side="right")
    cuts = [0, *(np.flatnonzero(np.diff(lengths)) + 1).tolist(), len(rows)]
    for first, last in pairwise(cuts):
        if last > first:
            yield rows[first:last]


def _events(parts: Sequence[Part], rows: Rows) -> bytes:
    """The events of rows whose steps take the same number of bytes."""
    step = varint(int(rows.steps[0]) & _ALL)
    out, starts, step_at = _blank(parts, len(step), len(rows))
    _fill(out, HEAD_BYTES + 1, rows.wall_times.astype("<f8"))
    _fill_steps(out, step_at, rows.steps, len(step))
    varying = [*range(1, 9), *range(step_at - HEAD_BYTES, step_at - HEAD_BYTES + len(step))]
    column = 0
    for part, at in zip(parts, starts, strict=True):
        values = rows.values[:, column : column + part.count]
        with np.errstate(over="ignore"):  # beyond single precision: infinity
            _fill(out, at, values.astype(part.dtype))
        size = part.count * int(part.dtype[2:])
        varying += range(at - HEAD_BYTES, at - HEAD_BYTES + size)
        column += part.count
    _fill(out, out.shape[1] - FOOT_BYTES, masked_all(_sums(out, tuple(varying))).astype("<u4"))
    return out.tobytes()


def _blank(parts: Sequence[Part], step_bytes: int, count: int) -> tuple[Bytes, list[int], int]:
    """`count` events without their numbers; where the parts' numbers and the step stand."""
    before = tag_byte(1, FIXED64) + bytes(8) + b"\x10"
    messages = [chunk(1, part.raw) for part in parts]
    summary = tag_byte(5, 2) + varint(sum(len(message) for message in messages))
    at = HEAD_BYTES + len(before) + step_bytes + len(summary)
    starts = []
    for message, part in zip(messages, parts, strict=True):
        starts.append(at + len(message) - len(part.raw) + part.start)
        at += len(message)
    body = before + bytes(step_bytes) + summary + b"".join(messages)
    whole = np.frombuffer(head(len(body)) + body + bytes(FOOT_BYTES), np.uint8)
    return np.tile(whole, (count, 1)), starts, HEAD_BYTES + len(before)


def _fill(out: Bytes, at: int, values: NDArray[Any]) -> None:
    raw = np.ascontiguousarray(values).reshape(len(out), -1).view(np.uint8)
    out[:, at : at + raw.shape[1]] = raw


def _fill_steps(out: Bytes, at: int, steps: NDArray[np.int64], size: int) -> None:
    left = steps.view(np.uint64)
    for index in range(size):
        byte = (left >> np.uint64(7 * index)) & np.uint64(0x7F)
        out[:, at + index] = byte.astype(np.uint8) | (0x80 if index < size - 1 else 0)


def _sums(out: Bytes, varying: tuple[int, ...]) -> NDArray[np.uint32]:
    bodies = out[:, HEAD_BYTES:]
    if len(out) < _TABLE_ROWS:
        found = [checksum(row[:-SUM_BYTES]) for row in bodies]
        return np.array(found, np.uint32)
    blank = bodies[0].copy()
    blank[list(varying)] = 0
    return row_sums(np.ascontiguousarray(bodies), blank.tobytes(), varying)
