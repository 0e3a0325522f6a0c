"""The beginning of a `.ms` file: magic, version, length, and what the series is.

The reasons, the table of bytes and a worked example are in docs/format.md; `summary.proto`
beside this file describes the payload to any protobuf library.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from mindpulse.errors import FormatError
from mindpulse.series import SeriesSpec
from mindpulse.store import wire
from mindpulse.store.codec import RowCodec
from mindpulse.store.crc import SUM_BYTES, checksum

MAGIC = b"MSFM"
VERSION = 1
LENGTH_OFFSET = 6
PAYLOAD_OFFSET = 10
MAX_META_BYTES = 1 << 28
VALUE_TYPES = {"float64": 1, "float32": 2}
_PREFIX = struct.Struct("<4sHI")
_META_FIELD, _LABEL_FIELD = 1, 1
# Field numbers of SummaryMeta.
_TAG, _PLUGIN, _START_TIME, _UNIT, _AXES, _COLUMNS, _WIDTH, _VALUE_TYPE = range(1, 9)
_REDUCTION, _RANK, _ATTEMPT, _ROW_BYTES, _VERSION, _CRC = 9, 10, 11, 12, 13, 15
_STRINGS = {_TAG: "tag", _PLUGIN: "plugin", _UNIT: "unit", _REDUCTION: "reduction"}


@dataclass(frozen=True, slots=True)
class Header:
    """What the beginning of a file says.

    Attributes:
        spec: the series.
        start_time: when the file was begun, seconds since the epoch.
        rank, attempt: who wrote it.
        size: bytes before the first row.
        length: payload length of the last flush; behind the file while a writer is at work.
        salvaged: rebuilt from a row, so labels, unit, rank and attempt are not known.
    """

    spec: SeriesSpec
    start_time: float
    rank: int
    attempt: int
    size: int
    length: int
    salvaged: bool = False

    @property
    def end(self) -> int:
        """Size of the file at the last flush, as the length field tells it."""
        return PAYLOAD_OFFSET + self.length


def encode_header(spec: SeriesSpec, start_time: float, rank: int, attempt: int) -> bytes:
    """The bytes of a file without rows."""
    meta = _encode_meta(spec, start_time, rank, attempt)
    size = wire.varint(len(meta) + SUM_BYTES)
    summed = wire.tag_byte(_META_FIELD, wire.BYTES) + size + meta
    payload = summed + checksum(summed).to_bytes(SUM_BYTES, "little")
    return _PREFIX.pack(MAGIC, VERSION, len(payload)) + payload


def _encode_meta(spec: SeriesSpec, start_time: float, rank: int, attempt: int) -> bytes:
    columns = (b"".join(wire.text(_LABEL_FIELD, label) for label in c) for c in spec.columns)
    return b"".join(
        [
            wire.text(_TAG, spec.tag),
            wire.text(_PLUGIN, spec.plugin),
            wire.double(_START_TIME, start_time),
            wire.text(_UNIT, spec.unit),
            *(wire.text(_AXES, axis) for axis in spec.axes),
            *(wire.chunk(_COLUMNS, column) for column in columns),
            wire.number(_WIDTH, spec.width),
            wire.number(_VALUE_TYPE, VALUE_TYPES[spec.dtype]),
            wire.text(_REDUCTION, spec.reduction),
            wire.number(_RANK, rank),
            wire.number(_ATTEMPT, attempt),
            wire.number(_ROW_BYTES, RowCodec(spec).row_bytes),
            wire.number(_VERSION, VERSION),
            wire.tag_byte(_CRC, wire.FIXED32),
        ]
    )


def decode_header(data: bytes) -> Header | None:
    """Reads the beginning of a file; None where more bytes are needed.

    Raises:
        FormatError: not one of our files, of a later version, or damaged.
    """
    if data[: len(MAGIC)] != MAGIC[: len(data)]:
        raise FormatError(f"starts with {data[:4]!r}, not with {MAGIC!r}: not a MindPulse file")
    if len(data) < PAYLOAD_OFFSET:
        return None
    _, version, length = _PREFIX.unpack_from(data)
    if version != VERSION:
        raise FormatError(f"format version {version}; this MindPulse reads {VERSION}: update it")
    return decode_meta(data, length)


def decode_meta(data: bytes, length: int) -> Header | None:
    """Reads what follows the first ten bytes; None where more bytes are needed.

    Raises:
        FormatError: the metadata are damaged.
    """
    begin = PAYLOAD_OFFSET + 1
    if len(data) < begin:
        return None
    if data[PAYLOAD_OFFSET:begin] != wire.tag_byte(_META_FIELD, wire.BYTES):
        raise FormatError(f"byte {PAYLOAD_OFFSET} is {data[begin - 1]:#x}: no metadata there")
    size = wire.read_varint(data, begin)
    if size is None:
        return None
    if not SUM_BYTES < size[0] <= MAX_META_BYTES:
        raise FormatError(f"metadata of {size[0]} bytes: not possible, the header is damaged")
    end = size[1] + size[0]
    if len(data) < end:
        return None
    summed = data[PAYLOAD_OFFSET : end - SUM_BYTES]
    if checksum(summed) != int.from_bytes(data[end - SUM_BYTES : end], "little"):
        raise FormatError("the checksum of the metadata does not fit: the header is damaged")
    return _decode_fields(data[size[1] : end], end, length)


def _decode_fields(meta: bytes, size: int, length: int) -> Header:
    found: dict[int, Any] = {}
    axes: list[str] = []
    columns: list[tuple[str, ...]] = []
    for field, value in wire.fields(meta):
        if field == _AXES:
            axes.append(_text(value))
        elif field == _COLUMNS and isinstance(value, bytes):
            columns.append(tuple(_text(label) for _, label in wire.fields(value)))
        else:
            found[field] = value
    try:
        spec = _spec(found, tuple(axes), tuple(columns))
        start_time = float(found[_START_TIME])
        rank, attempt = int(found[_RANK]), int(found[_ATTEMPT])
        agreed = (found[_WIDTH], found[_ROW_BYTES], found[_VERSION])
    except (KeyError, TypeError, ValueError) as error:  # UsageError is a ValueError
        raise FormatError(f"metadata that cannot be used: {error!r}") from None
    wanted = (spec.width, RowCodec(spec).row_bytes, VERSION)
    if agreed != wanted:
        raise FormatError(f"width, row bytes and version are {agreed}, wanted {wanted}")
    return Header(spec, start_time, rank, attempt, size, length)


def _spec(found: dict[int, Any], axes: tuple[str, ...], columns: Any) -> SeriesSpec:
    dtypes = {number: name for name, number in VALUE_TYPES.items()}
    texts = {name: _text(found[field]) for field, name in _STRINGS.items()}
    return SeriesSpec(axes=axes, columns=columns, dtype=dtypes[found[_VALUE_TYPE]], **texts)


def _text(value: object) -> str:
    if not isinstance(value, bytes):
        raise FormatError(f"{value!r} where a text was expected")
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"a text that is not UTF-8: {error}") from None
