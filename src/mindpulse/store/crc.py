"""CRC-32C of many rows at once.

Two properties of the checksum make it cheap. It is affine: the sum of a row is the sum of
the empty row, xor one table entry for each byte that may vary. And a message followed by
its own sum always leaves the register in the same state; so *any* n valid rows of one
length, one after the other, have the same checksum, and one call over a block of rows tells
whether all of them are whole.

Source: T. Kounavis, F. Berry, "A systematic approach to building high performance
software-based CRC generators", ISCC 2005 (tables); RFC 3720, section 12.1 (CRC-32C).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

SUM_BYTES = 4
BLOCK_BYTES = 1 << 16
# So much is tried at once, before it is looked at block by block.
WHOLE_BYTES = 1 << 20
# Below this number of rows one call a row is quicker; above this width it is always quicker.
MIN_TABLE_ROWS = 48
MAX_TABLE_BYTES = 64
_TABLE_BLOCK_ROWS = 8192

Bytes = NDArray[np.uint8]


def checksum(data: bytes | Bytes) -> int:
    """CRC-32C of contiguous bytes."""
    value: int = google_crc32c.value(data)
    return value


def row_sums(raw: Bytes, blank: bytes, varying: tuple[int, ...]) -> NDArray[np.uint32]:
    """Checksum of each row, without its last four bytes.

    Args:
        raw: (T, row bytes), contiguous.
        blank: a row whose varying bytes are zero.
        varying: positions of the bytes that differ between rows.
    """
    if len(raw) >= MIN_TABLE_ROWS and len(varying) <= MAX_TABLE_BYTES:
        return _by_tables(raw, blank, varying)
    end = raw.shape[1] - SUM_BYTES
    return np.fromiter((checksum(row[:end]) for row in raw), np.uint32, len(raw))


def _by_tables(raw: Bytes, blank: bytes, varying: tuple[int, ...]) -> NDArray[np.uint32]:
    start, tables = _tables(blank, varying)
    sums = np.full(len(raw), start, np.uint32)
    for at in range(0, len(raw), _TABLE_BLOCK_ROWS):  # blocks that stay in the cache
        block, part = raw[at : at + _TABLE_BLOCK_ROWS], sums[at : at + _TABLE_BLOCK_ROWS]
        for position, table in zip(varying, tables, strict=True):
            part ^= table[block[:, position]]
    return sums


@lru_cache(maxsize=8)
def _tables(blank: bytes, varying: tuple[int, ...]) -> tuple[int, NDArray[np.uint32]]:
    body = bytearray(blank[:-SUM_BYTES])
    start = checksum(bytes(body))
    tables = np.zeros((len(varying), 256), np.uint32)
    for row, position in enumerate(varying):
        for byte in range(1, 256):
            body[position] = byte
            tables[row, byte] = checksum(bytes(body)) ^ start
        body[position] = 0
    return start, tables


def damaged_rows(data: Bytes, blank: bytes) -> NDArray[np.bool_]:
    """(T,) True where a row's checksum does not fit.

    Args:
        data: whole rows, one after the other, contiguous.
        blank: a row of this length, any values, whose sum need not be right.
    """
    size = len(blank)
    damaged = np.zeros(len(data) // size, np.bool_)
    if len(data) <= WHOLE_BYTES and checksum(data) == _sum_of_valid_rows(blank, len(damaged)):
        return damaged
    rows_a_block = max(1, BLOCK_BYTES // size)
    for first in range(0, len(damaged), rows_a_block):
        count = min(rows_a_block, len(damaged) - first)
        block = data[first * size : (first + count) * size]
        if checksum(block) != _sum_of_valid_rows(blank, count):
            damaged[first : first + count] = _damaged_one_by_one(block.reshape(count, size))
    return damaged


def _damaged_one_by_one(raw: Bytes) -> list[bool]:
    said: list[Any] = raw[:, -SUM_BYTES:].copy().view("<u4")[:, 0].tolist()
    found = [checksum(row[:-SUM_BYTES]) for row in raw]
    return [a != b for a, b in zip(said, found, strict=True)]


@lru_cache(maxsize=256)
def _sum_of_valid_rows(blank: bytes, count: int) -> int:
    body = blank[:-SUM_BYTES]
    row = body + checksum(body).to_bytes(SUM_BYTES, "little")
    block = row * min(count, max(1, BLOCK_BYTES // len(row)))
    rows_a_block = len(block) // len(row)
    value = 0
    for _ in range(count // rows_a_block if count else 0):
        value = google_crc32c.extend(value, block)
    rest = block[: count % rows_a_block * len(row)] if count else b""
    return int(google_crc32c.extend(value, rest))
