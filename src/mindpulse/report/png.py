"""A picture of pixels as PNG bytes, with the standard library only."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"
EIGHT_BIT_RGBA = bytes([8, 6, 0, 0, 0])


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """The bytes of a PNG file.

    Args:
        pixels: (height, width, 4) uint8: red, green, blue, opacity; at least one pixel.

    Source: PNG specification, third edition (W3C 2025): chunks, filter type 0.

    Example:
        >>> encode_png(np.zeros((1, 1, 4), np.uint8))[:4]
        b'\\x89PNG'
    """
    height, width, _ = pixels.shape
    lines = np.zeros((height, 1 + 4 * width), np.uint8)  # each line begins with its filter type
    lines[:, 1:] = pixels.reshape(height, 4 * width)
    header = struct.pack(">II", width, height) + EIGHT_BIT_RGBA
    body = zlib.compress(lines.tobytes(), 9)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


def data_uri(pixels: NDArray[np.uint8]) -> str:
    """The picture as text for an `<img src>`, so that a page needs no second file."""
    return "data:image/png;base64," + base64.b64encode(encode_png(pixels)).decode("ascii")
