"""Rows of a file whose beginning is damaged.

The header is the one place where a flipped bit could cost a whole file. But each row tells
its own length and carries its own checksum, so rows can be found without it; only the labels
of the columns, unit and reduction are lost, and a sibling file may still know them.
"""

from __future__ import annotations

import re

import numpy as np

from mindpulse.errors import FormatError
from mindpulse.series import SeriesSpec
from mindpulse.store import codec, crc, wire
from mindpulse.store.format import PAYLOAD_OFFSET, Header, decode_meta

LOST_AXIS = "column"
_SEARCHED_BYTES = 1 << 22
# key and length of a row, key of the step, the step, key of the time, the time, key of values.
_ROW = re.compile(
    rb"(?=\x12(?P<size>[\x80-\xff]{0,3}[\x00-\x7f])\x09.{8}\x11.{8}(?P<key>[\x19\x22\x2a]))",
    re.DOTALL,
)


def salvage_header(data: bytes, tag: str) -> Header | None:
    """A header that lets the rows be read, or None if there is not one whole row.

    Args:
        data: the file from its beginning.
        tag: the series, as the file name has it.
    """
    return _good_meta(data) or _from_rows(data, tag)


def _good_meta(data: bytes) -> Header | None:
    """Only the first ten bytes are damaged: the metadata have a checksum of their own."""
    try:
        return decode_meta(data, len(data) - PAYLOAD_OFFSET)
    except FormatError:
        return None


def _from_rows(data: bytes, tag: str) -> Header | None:
    for match in _ROW.finditer(data, 0, _SEARCHED_BYTES):
        spec = _spec_of_row(data, match.start(), match["size"], match["key"], tag)
        if spec is not None:
            length = len(data) - PAYLOAD_OFFSET
            return Header(spec, 0.0, 0, 0, match.start(), length, salvaged=True)
    return None


def _spec_of_row(data: bytes, at: int, size: bytes, key: bytes, tag: str) -> SeriesSpec | None:
    body = wire.read_varint(size, 0)
    end = at + 1 + len(size) + body[0] if body else len(data) + 1
    if end > len(data):
        return None
    row = data[at:end]
    if crc.checksum(row[: -crc.SUM_BYTES]) != int.from_bytes(row[-crc.SUM_BYTES :], "little"):
        return None
    spec = _guess(key, end - at, tag)
    return spec if codec.RowCodec(spec).row_bytes == len(row) else None


def _guess(key: bytes, row_bytes: int, tag: str) -> SeriesSpec:
    if key == wire.tag_byte(codec.VALUE, wire.FIXED64):
        return SeriesSpec(tag or "unknown")
    dtype = "float64" if key == wire.tag_byte(codec.DOUBLES, wire.BYTES) else "float32"
    itemsize = np.dtype(dtype).itemsize
    # key, length, step, time, key, checksum: 25 bytes and the digits of two lengths.
    width = max(1, (row_bytes - 25) // itemsize)
    while codec.RowCodec(_numbered(tag, width, dtype)).row_bytes > row_bytes and width > 1:
        width -= 1
    return _numbered(tag, width, dtype)


def _numbered(tag: str, width: int, dtype: str) -> SeriesSpec:
    labels = tuple((str(index),) for index in range(width))
    return SeriesSpec(tag or "unknown", "vector", "", (LOST_AXIS,), labels, dtype)
