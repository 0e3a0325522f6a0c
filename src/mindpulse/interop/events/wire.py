"""Where the fields of a protobuf message stand, so that a value can be found again in the next
message of the same shape."""

from __future__ import annotations

from collections.abc import Iterator

from mindpulse.errors import FormatError
from mindpulse.store.wire import BYTES, FIXED32, FIXED64, VARINT

Span = tuple[int, int, int, int]
_MAX_BITS = 70
_SIGN = 1 << 63


def spans(data: bytes, start: int, end: int) -> Iterator[Span]:
    """Each field of the message in data[start:end]: number, wire type, first byte, end of value.

    Raises:
        FormatError: the bytes are no message.
    """
    at = start
    while at < end:
        key, at = varint_at(data, at, end)
        kind = key & 7
        if kind == VARINT:
            _, stop = varint_at(data, at, end)
        elif kind == BYTES:
            size, at = varint_at(data, at, end)
            stop = at + size
        elif kind == FIXED32:
            stop = at + 4
        elif kind == FIXED64:
            stop = at + 8
        else:
            raise FormatError(f"byte {at}: wire type {kind} of field {key >> 3} is not known")
        if stop > end:
            raise FormatError(f"byte {at}: field {key >> 3} goes beyond the message")
        yield key >> 3, kind, at, stop
        at = stop


def varint_at(data: bytes, at: int, end: int) -> tuple[int, int]:
    """(value, position behind it).

    Raises:
        FormatError: the message ends within the number, or it is longer than 64 bits.
    """
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift >= _MAX_BITS:
            raise FormatError(f"byte {at}: a number of more than ten bytes")
    raise FormatError(f"byte {at}: the message ends within a number")


def signed_at(data: bytes, at: int, end: int) -> int:
    """An int32 or int64 field."""
    value = varint_at(data, at, end)[0] & 0xFFFFFFFFFFFFFFFF
    return value - (1 << 64) if value & _SIGN else value


def varints(data: bytes, start: int, end: int) -> list[int]:
    """A packed list of int64."""
    found = []
    while start < end:
        at = start
        _, start = varint_at(data, at, end)
        found.append(signed_at(data, at, start))
    return found


def text_at(data: bytes, at: int, end: int) -> str:
    """A string field; bytes that are no UTF-8 are shown escaped."""
    return data[at:end].decode("utf-8", "backslashreplace")
