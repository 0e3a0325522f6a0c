"""Putting one flipped bit right: a checksum that does not fit may tell which bit it was.

CRC-32C is linear. The difference between the sum that is said and the sum that is found depends
only on which bits are wrong, and no two single bits of a message this short make the same one. So
the difference is run backwards, byte by byte, until it is that of a single bit.

Source: W. Peterson, D. Brown, "Cyclic codes for error detection", Proc. IRE 49, 1961.
"""

from __future__ import annotations

from mindpulse.store.crc import SUM_BYTES, checksum

POLYNOMIAL = 0x82F63B78  # of CRC-32C, lowest bit first


def _step(index: int) -> int:
    for _ in range(8):
        index = index >> 1 ^ (POLYNOMIAL if index & 1 else 0)
    return index


_TABLE = [_step(index) for index in range(256)]
# The first byte of an entry tells which entry it is: so a step can be taken back.
_BACK = {entry >> 24: index for index, entry in enumerate(_TABLE)}
_SINGLE = {_TABLE[1 << bit]: bit for bit in range(8)}
_IN_SUM = {1 << bit: bit for bit in range(8 * SUM_BYTES)}


def mend(message: bytes) -> bytes | None:
    """The message with its one wrong bit put right; None if more than one is wrong.

    Args:
        message: ends in its checksum, four bytes, little endian.

    Example:
        >>> whole = b"loss" + checksum(b"loss").to_bytes(4, "little")
        >>> mend(b"lgss" + whole[4:]) == whole, mend(b"mass" + whole[4:])
        (True, None)
    """
    body, said = message[:-SUM_BYTES], int.from_bytes(message[-SUM_BYTES:], "little")
    found = flipped_bit(checksum(body) ^ said, len(body))
    if found is None:
        return None
    fixed = bytearray(message)
    fixed[found[0]] ^= 1 << found[1]
    return bytes(fixed)


def flipped_bit(difference: int, size: int) -> tuple[int, int] | None:
    """(byte, bit) of the one bit that makes this difference of sums, None if no single one does.

    Args:
        difference: of the two checksums, combined by exclusive or.
        size: bytes under the checksum; the four bytes behind them hold it.
    """
    if difference in _IN_SUM:
        return size + _IN_SUM[difference] // 8, _IN_SUM[difference] % 8
    for at in range(size - 1, -1, -1):
        if difference in _SINGLE:
            return at, _SINGLE[difference]
        index = _BACK[difference >> 24]
        difference = (difference ^ _TABLE[index]) << 8 | index
    return None
