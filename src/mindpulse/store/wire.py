"""The few pieces of protobuf's wire encoding that a `.ms` file needs.

Written out here so that the training process needs no protobuf package, whose versions are
a common reason for two packages not to live together.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from mindpulse.errors import FormatError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_VARINT_BYTES = 10


def tag_byte(field: int, kind: int) -> bytes:
    """The key that precedes a field (one byte up to field 15)."""
    return varint(field << 3 | kind)


def varint(value: int) -> bytes:
    """A whole number from 0 up, seven bits a byte, lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int] | None:
    """(value, position behind it), or None where the data end before the number does.

    Raises:
        FormatError: longer than any 64-bit number.
    """
    value = 0
    for index in range(MAX_VARINT_BYTES):
        if at + index >= len(data):
            return None
        byte = data[at + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, at + index + 1
    raise FormatError(f"byte {at}: a number of more than {MAX_VARINT_BYTES} bytes")


def number(field: int, value: int) -> bytes:
    """A varint field."""
    return tag_byte(field, VARINT) + varint(value)


def double(field: int, value: float) -> bytes:
    """A double field."""
    return tag_byte(field, FIXED64) + struct.pack("<d", value)


def chunk(field: int, value: bytes) -> bytes:
    """A string, bytes or message field."""
    return tag_byte(field, BYTES) + varint(len(value)) + value


def text(field: int, value: str) -> bytes:
    """A string field."""
    return chunk(field, value.encode())


def fields(data: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Each field of a message: its number and its value (fixed64 read as a double).

    Raises:
        FormatError: the bytes are no message.
    """
    at = 0
    while at < len(data):
        key, at = _whole(read_varint(data, at))
        kind = key & 7
        if kind == VARINT:
            value, at = _whole(read_varint(data, at))
            yield key >> 3, value
            continue
        size = {FIXED64: 8, FIXED32: 4}.get(kind)
        if kind == BYTES:
            size, at = _whole(read_varint(data, at))
        if size is None or at + size > len(data):
            raise FormatError(f"byte {at}: field {key >> 3} of kind {kind} does not fit")
        yield key >> 3, _value(kind, data[at : at + size])
        at += size


def _whole(found: tuple[int, int] | None) -> tuple[int, int]:
    if found is None:
        raise FormatError("the message ends within a number")
    return found


def _value(kind: int, raw: bytes) -> int | float | bytes:
    if kind == BYTES:
        return raw
    unpacked: int | float = struct.unpack("<d" if kind == FIXED64 else "<I", raw)[0]
    return unpacked
