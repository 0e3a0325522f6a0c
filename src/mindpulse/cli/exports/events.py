"""TensorBoard and MindSpore event files of `mindpulse export`: one file for each rank."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from mindpulse.cli.exports.files import TEXT_VALUES, pieces
from mindpulse.cli.exports.source import Piece, Source
from mindpulse.cli.output import hidden_path
from mindpulse.errors import StoreError
from mindpulse.interop.events.bars import Bars, bars_in
from mindpulse.interop.events.writer import EventWriter

FOLDERS = ("tensorboard", "mindspore")


def write_events(
    source: Source, output_dir: Path, dialect: str, several: bool
) -> Iterator[dict[str, Any]]:
    """All series of a rank in one event file; where there are several ranks, each in a folder.

    Raises:
        StoreError: a file cannot be written.
    """
    for rank in source.ranks:
        folder = output_dir / f"rank-{rank:04d}" if several else output_dir
        path = folder / event_file_name(dialect, source.run.created, rank)
        rows = _write_rank(source, rank, path, dialect)
        if rows:
            yield {"path": str(path), "rank": rank, "rows": rows}


def _write_rank(source: Source, rank: int, path: Path, dialect: str) -> int:
    found = source.pieces(rank)
    first = next(found, None)
    if first is None:
        return 0
    count = 0
    with hidden_path(path) as hidden, _place(path.parent) as place:
        # TensorBoard's newer form keeps float64; MindSpore's files know float32 alone.
        writer = EventWriter(place, dialect, rank=rank, newer=dialect == "tensorboard")
        bars = bars_in(source.run.specs())
        inside = {part for tag in source.tags if tag in bars for part in bars[tag].parts}
        for piece in chain([first], found):
            if piece.spec.tag in bars:
                count += _write_bars(source, piece, bars[piece.spec.tag], writer)
            elif piece.spec.tag not in inside:
                count += _write_numbers(piece, writer)
        with _reason():
            writer.close()
        os.replace(writer.path, hidden)
    return count


def _write_numbers(piece: Piece, writer: EventWriter) -> int:
    count = 0
    for rows in pieces(piece.blocks, TEXT_VALUES):
        with _reason():
            writer.write(piece.spec, rows)
        count += len(rows)
    return count


def _write_bars(source: Source, piece: Piece, bars: Bars, writer: EventWriter) -> int:
    """A histogram whose edges are series of their own, as one."""
    count = 0
    for rows, histograms in bars.histograms(lambda tag: source.rows(tag, piece.rank)):
        with _reason():
            steps, times = rows.steps.tolist(), rows.wall_times.tolist()
            writer.write_histograms(piece.spec.tag, steps, times, histograms)
        count += len(rows)
    return count


def _place(folder: Path) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(dir=folder, prefix=".mindpulse-")


@contextmanager
def _reason() -> Iterator[None]:
    """Takes what the disk says out of the writer's error, which names its hidden file."""
    try:
        yield
    except StoreError as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None
        raise


def event_file_name(dialect: str, created: float, rank: int) -> str:
    """A name by which the tool knows its files; the same for the same run, so that it is replaced.

    Example:
        >>> event_file_name("mindspore", 1796058361.5, 3)
        'events.out.events.summary.1796058361.3.mindpulse_MS'
    """
    seconds = int(created) if math.isfinite(created) else 0
    if dialect == "mindspore":
        return f"events.out.events.summary.{seconds:010d}.{rank}.mindpulse_MS"
    return f"events.out.tfevents.{seconds:010d}.mindpulse.{rank}"
