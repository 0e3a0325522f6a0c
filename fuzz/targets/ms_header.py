"""The header of a `.ms` file, with a checksum that fits so that what is behind it is reached."""

from __future__ import annotations

import struct

import google_crc32c
from harness import REFUSED, example_files

from mindpulse.store import wire
from mindpulse.store.format import PAYLOAD_OFFSET, decode_header

PREFIX = b"MSFM\x01\x00\0\0\0\0"


def seeds() -> list[bytes]:
    """The metadata of real files, without their checksum."""
    found = []
    for data in example_files("*.ms"):
        size = wire.read_varint(data, PAYLOAD_OFFSET + 1)
        assert size
        found.append(data[size[1] : size[1] + size[0] - 5])
    return found


def one_input(data: bytes) -> None:
    """Any metadata, also those that make no sense."""
    with REFUSED:
        decode_header(data)
    summed = b"\x0a" + wire.varint(len(data) + 5) + data + b"\x7d"
    with REFUSED:
        decode_header(PREFIX + summed + struct.pack("<I", google_crc32c.value(summed)))
