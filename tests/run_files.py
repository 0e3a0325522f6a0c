"""Writes run folders byte by byte: parts, attempts, repeated rows and damage of any kind."""

from __future__ import annotations

from pathlib import Path

from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.codec import RowCodec
from mindpulse.store.folder import attempt_name, rank_name
from mindpulse.store.format import encode_header
from mindpulse.store.names import file_name


def part_path(run: Path, spec: SeriesSpec, attempt: int = 1, part: int = 1, rank: int = 0) -> Path:
    """Where a part lies; its folder is made."""
    folder = run / attempt_name(attempt) / rank_name(rank)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / file_name(spec.tag, part)


def write_part(
    path: Path, spec: SeriesSpec, rows: Rows, damaged: set[int] | None = None, attempt: int = 1
) -> None:
    """A file as a writer leaves it, with one byte of each of the `damaged` rows turned over."""
    header = encode_header(spec, 1.7e9, 0, attempt)
    codec = RowCodec(spec)
    data = bytearray(header + codec.encode(rows))
    data[6:10] = (len(data) - 10).to_bytes(4, "little")
    for row in damaged or set():
        data[len(header) + row * codec.row_bytes + 21] ^= 0x10
    path.write_bytes(data)
