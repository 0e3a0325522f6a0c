"""The framing of event files, which TensorBoard and MindSpore share (TFRecord).

    u64 length | u32 masked CRC-32C of the length | body | u32 masked CRC-32C of the body

All numbers little endian. A sum is masked because a sum over data that hold sums is weak:
rotated right by 15 bits, plus a constant.

Source: tensorflow/core/lib/io/record_writer.h; mindspore/train/summary/_writer_pool.py.
"""

from __future__ import annotations

import struct
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mindpulse.store.crc import checksum

HEAD_BYTES = 12
FOOT_BYTES = 4
AROUND_BYTES = HEAD_BYTES + FOOT_BYTES
MASK_DELTA = 0xA282EAD8
_ALL = 0xFFFFFFFF
_SUM_AT = 8
_SEARCHED = 1 << 16

Bytes = NDArray[np.uint8]
Sums = NDArray[np.uint32]


def masked(crc: int) -> int:
    """The sum as it stands in the file.

    Example:
        >>> unmasked(masked(0x12345678)) == 0x12345678
        True
    """
    return ((crc >> 15 | crc << 17) + MASK_DELTA) & _ALL


def unmasked(stored: int) -> int:
    """The sum itself."""
    rotated = (stored - MASK_DELTA) & _ALL
    return (rotated >> 17 | rotated << 15) & _ALL


def masked_all(crcs: Sums) -> Sums:
    """`masked` of (T,) sums."""
    return (crcs >> np.uint32(15) | crcs << np.uint32(17)) + np.uint32(MASK_DELTA)


def unmasked_all(stored: Sums) -> Sums:
    """`unmasked` of (T,) sums."""
    rotated = stored - np.uint32(MASK_DELTA)
    return rotated >> np.uint32(17) | rotated << np.uint32(15)


@lru_cache(maxsize=4096)
def head(length: int) -> bytes:
    """The twelve bytes before a body of `length` bytes."""
    size = struct.pack("<Q", length)
    return size + struct.pack("<I", masked(checksum(size)))


def frame(body: bytes) -> bytes:
    """A whole record.

    Example:
        >>> frame(b"").hex()
        '000000000000000029039807d8ea82a2'
    """
    return head(len(body)) + body + struct.pack("<I", masked(checksum(body)))


def length_at(data: bytes | Bytes, at: int) -> int | None:
    """Length of the body that starts behind `at`, None where the sum of the length is wrong."""
    start = bytes(data[at : at + HEAD_BYTES])
    size, said = struct.unpack("<QI", start)
    return int(size) if said == masked(checksum(start[:_SUM_AT])) else None


def body_is_whole(record: bytes) -> bool:
    """Whether the sum of a whole record's body fits."""
    (said,) = struct.unpack("<I", record[-FOOT_BYTES:])
    return bool(said == masked(checksum(record[HEAD_BYTES:-FOOT_BYTES])))


def next_head(data: Bytes, start: int) -> int | None:
    """The first place from `start` on where the sum of a length fits, None if there is none.

    One place in four thousand million fits by chance.
    """
    end = len(data) - HEAD_BYTES + 1
    for first in range(start, end, _SEARCHED):
        found = _first_head(data, first, min(_SEARCHED, end - first))
        if found is not None:
            return found
    return None


def _first_head(data: Bytes, start: int, places: int) -> int | None:
    zero, tables = _length_tables()
    sums = np.full(places, zero, np.uint32)
    for index, table in enumerate(tables):
        sums ^= table[data[start + index : start + index + places]]
    windows = np.lib.stride_tricks.sliding_window_view(data[start + _SUM_AT :], 4)[:places]
    said = np.ascontiguousarray(windows).view("<u4")[:, 0]
    found = np.flatnonzero(said == masked_all(sums))
    return start + int(found[0]) if len(found) else None


@lru_cache(maxsize=1)
def _length_tables() -> tuple[int, Sums]:
    """Sum of eight zero bytes, and what each value of each of the eight bytes changes in it."""
    zero = checksum(bytes(_SUM_AT))
    tables = np.zeros((_SUM_AT, 256), np.uint32)
    for index in range(_SUM_AT):
        for byte in range(256):
            changed = bytearray(_SUM_AT)
            changed[index] = byte
            tables[index, byte] = checksum(bytes(changed)) ^ zero
    return zero, tables
