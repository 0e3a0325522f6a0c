"""Rows <-> bytes: every row of a file has the same length, and only its values vary.

    0x12 length | 0x09 step | 0x11 wall time | 0x19 value | 0x35 crc32c            34 bytes
    0x12 length | 0x09 step | 0x11 wall time | 0x22 or 0x2A size values | 0x35 crc32c

The key and length bytes are protobuf's; as they never change, NumPy sees the rows as one
structured array.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.errors import UsageError
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store import crc, wire

VALUES_FIELD = 2
STEP, WALL_TIME, VALUE, DOUBLES, FLOATS, CRC = 1, 2, 3, 4, 5, 6
_SUM_BYTES = crc.SUM_BYTES


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts of a row lie.

    Attributes:
        blank: a row with all values and the checksum zero.
        dtype: structured view of a row: step, wall_time, values (W,), crc.
        varying: positions of the bytes of step, wall time and values.
    """

    blank: bytes
    dtype: np.dtype[Any]
    varying: tuple[int, ...]


@lru_cache(maxsize=64)
def layout_of(width: int, dtype: str, plain: bool) -> Layout:
    """The layout of rows of `width` values; `plain` = one float64 without columns."""
    head = b"\0" * 8
    if plain and dtype == "float64":
        before = wire.tag_byte(VALUE, wire.FIXED64)
    else:
        size = width * np.dtype(dtype).itemsize
        field = DOUBLES if dtype == "float64" else FLOATS
        before = wire.tag_byte(field, wire.BYTES) + wire.varint(size)
    payload = width * np.dtype(dtype).itemsize
    step = wire.tag_byte(STEP, wire.FIXED64) + head
    wall = wire.tag_byte(WALL_TIME, wire.FIXED64) + head
    tail = wire.tag_byte(CRC, wire.FIXED32) + b"\0" * _SUM_BYTES
    body = step + wall + before + b"\0" * payload + tail
    start = wire.tag_byte(VALUES_FIELD, wire.BYTES) + wire.varint(len(body))
    return _placed(start + body, len(start), len(before), width, dtype)


def _placed(blank: bytes, start: int, before: int, width: int, dtype: str) -> Layout:
    little = np.dtype(dtype).newbyteorder("<")
    step, wall = start + 1, start + 10
    values = start + 18 + before
    sizes = ((step, 8), (wall, 8), (values, width * little.itemsize))
    return Layout(
        blank,
        np.dtype(
            {
                "names": ["step", "wall_time", "values", "crc"],
                "formats": ["<i8", "<f8", (little, (width,)), "<u4"],
                "offsets": [step, wall, values, len(blank) - _SUM_BYTES],
                "itemsize": len(blank),
            }
        ),
        tuple(at + index for at, size in sizes for index in range(size)),
    )


class RowCodec:
    """Encodes and decodes the rows of one series.

    Example:
        >>> codec = RowCodec(SeriesSpec("train_loss"))
        >>> data = codec.encode(Rows.one(1, 1.7e9, 2.5))
        >>> len(data), codec.decode(data)[0].values
        (34, array([[2.5]]))
    """

    def __init__(self, spec: SeriesSpec) -> None:
        self.spec = spec
        self.layout = layout_of(spec.width, spec.dtype, not spec.columns)
        self.row_bytes = len(self.layout.blank)

    def encode(self, rows: Rows) -> bytes:
        """The bytes of the rows.

        Raises:
            UsageError: the values are not (T, W).
        """
        shape = (len(rows), self.spec.width)
        if rows.values.shape != shape or rows.wall_times.shape != shape[:1]:
            raise UsageError(f"{self.spec.tag!r}: values are {rows.values.shape}, wanted {shape}")
        raw = np.empty((len(rows), self.row_bytes), np.uint8)
        raw[:] = np.frombuffer(self.layout.blank, np.uint8)
        view = raw.reshape(-1).view(self.layout.dtype)
        view["step"], view["wall_time"], view["values"] = rows.steps, rows.wall_times, rows.values
        view["crc"] = crc.row_sums(raw, self.layout.blank, self.layout.varying)
        return raw.tobytes()

    def decode(self, data: bytes | NDArray[np.uint8]) -> tuple[Rows, NDArray[np.bool_]]:
        """The whole rows in `data`, and (T,) True where a row is damaged.

        A damaged row is still returned, with whatever its bytes say. Bytes behind the last
        whole row are left alone.
        """
        raw = np.frombuffer(data, np.uint8)
        raw = raw[: len(raw) // self.row_bytes * self.row_bytes]
        return self.rows_of(raw.view(self.layout.dtype)), crc.damaged_rows(raw, self.layout.blank)

    def rows_of(self, view: NDArray[Any]) -> Rows:
        """A copy of rows in the layout of the file, (T,) structured."""
        return Rows(
            view["step"].astype(np.int64),
            view["wall_time"].astype(np.float64),
            view["values"].astype(self.spec.dtype, order="C"),
        )
