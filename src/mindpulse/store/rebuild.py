"""One damaged file becomes a new one, out of what can be read of it. Nothing is written here."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mindpulse.errors import FormatError, StoreError
from mindpulse.series import SeriesSpec
from mindpulse.store import wire
from mindpulse.store.codec import RowCodec
from mindpulse.store.flips import mend
from mindpulse.store.format import (
    LENGTH_OFFSET,
    PAYLOAD_OFFSET,
    Header,
    decode_header,
    decode_meta,
    encode_header,
)
from mindpulse.store.names import parse_name
from mindpulse.store.resync import Found, RowSearch
from mindpulse.store.salvage import salvage_header

# Whose labels a file takes that has lost its own: by tag, width and type of the values.
Sibling = Callable[[SeriesSpec], "tuple[SeriesSpec, str] | None"]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a damaged file can become.

    Attributes:
        pieces: the bytes of the new file, in order.
        rows: whole rows in it.
        mended: how many of them had one flipped bit, which was put right.
        lost_bytes: bytes that are no row, or that are missing at the end.
        row_bytes: length of a row.
        header: what was done about the header: "kept", "put right", "labels from ...",
            "labels lost".
    """

    pieces: list[bytes]
    rows: int
    mended: int
    lost_bytes: int
    row_bytes: int
    header: str

    @property
    def lost_rows(self) -> int:
        """Rows that `lost_bytes` may have held, rounded up."""
        return -(-self.lost_bytes // self.row_bytes)


def rebuild(path: Path, rank: int, attempt: int, sibling: Sibling) -> Rebuilt | None:
    """What a file can become, or None if there is nothing in it that could be kept.

    Args:
        rank, attempt: of the folder, for a header that has lost them.

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    header, done = _header(data, path)
    if header is None:
        return None
    codec = RowCodec(header.spec)
    found = RowSearch(data, codec.layout).run(header.size)
    if header.salvaged:
        spec, done = sibling(header.spec) or (header.spec, "labels lost")
        header = replace(header, spec=spec, rank=rank, attempt=attempt)
        header = replace(header, start_time=_first_time(found, codec))
    return _as_file(header, found, codec.row_bytes, done, _missing(data, header))


def _missing(data: bytes, header: Header) -> int:
    """Bytes that the length tells of and the file does not have; a damaged length tells nothing."""
    row_bytes = RowCodec(header.spec).row_bytes
    told = header.end - len(data)
    whole = (header.end - header.size) % row_bytes == 0
    return told if told > 0 and whole and header.end > header.size else 0


def _header(data: bytes, path: Path) -> tuple[Header | None, str]:
    """The header as it is, as it was before a bit flipped, or as rows tell it."""
    try:
        header = decode_header(data)
    except FormatError:
        header = None
    if header is not None:
        return header, "kept"
    named = parse_name(path.name)
    known = salvage_header(data, named[0]) if named is not None else None
    if known is not None and not known.salvaged:
        # The magic, the version or the length: what the length was is not known any more.
        return known, "put right"
    mended = _mended_meta(data, known)
    return (mended, "put right") if mended is not None else (known, "labels lost")


def _mended_meta(data: bytes, known: Header | None) -> Header | None:
    """The metadata with one bit put right; their size, or the first row, tells where they end."""
    ends = {known.size} if known is not None else set()
    try:
        size = wire.read_varint(data, PAYLOAD_OFFSET + 1)
    except FormatError:
        size = None
    if size is not None and size[0] + size[1] <= len(data):
        ends.add(size[0] + size[1])
    for end in ends:
        meta = mend(data[PAYLOAD_OFFSET:end])
        if meta is not None:
            fixed = data[:PAYLOAD_OFFSET] + meta
            try:
                return decode_meta(fixed, _length(data))
            except FormatError:
                continue
    return None


def _length(data: bytes) -> int:
    if data[:LENGTH_OFFSET] != b"MSFM\x01\x00":
        return len(data) - PAYLOAD_OFFSET
    length: int = struct.unpack_from("<I", data, LENGTH_OFFSET)[0]
    return length


def _first_time(found: Found, codec: RowCodec) -> float:
    """Time of the first row, for the time at which the file was begun."""
    for piece in found.pieces:
        times = codec.decode(piece)[0].wall_times
        finite = times[np.isfinite(times)]
        if len(finite):
            return float(finite[0])
    return 0.0


def _as_file(header: Header, found: Found, row_bytes: int, done: str, missing: int) -> Rebuilt:
    beginning = encode_header(header.spec, header.start_time, header.rank, header.attempt)
    length = len(beginning) - PAYLOAD_OFFSET + found.rows * row_bytes
    beginning = beginning[:LENGTH_OFFSET] + struct.pack("<I", length) + beginning[PAYLOAD_OFFSET:]
    pieces = [beginning, *found.pieces]
    lost = found.lost_bytes + missing
    return Rebuilt(pieces, found.rows, found.mended, lost, row_bytes, done)
