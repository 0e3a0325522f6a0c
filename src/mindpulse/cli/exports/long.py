"""`mindpulse export --layout long`: all series in one table, a line per value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mindpulse.cli.exports.files import TEXT_VALUES, column_names, csv_cell, pieces, texts
from mindpulse.cli.exports.source import Piece
from mindpulse.cli.optional import load
from mindpulse.cli.output import draft, hidden_path
from mindpulse.series import Rows, SeriesSpec

LONG_NAME = "points"
LONG_COLUMNS = ("tag", "rank", "step", "wall_time", "column", "value")
GROUP_LINES = 1 << 20


def write_long_csv(path: Path, found: Iterable[Piece]) -> int:
    """Header `tag,rank,step,wall_time,column,value`; the column of a scalar is empty.

    Raises:
        StoreError: the file cannot be written.
    """
    count = 0
    with draft(path) as file:
        file.write(",".join(LONG_COLUMNS) + "\n")
        for piece in found:
            start = f"{csv_cell(piece.spec.tag)},{piece.rank}"
            names = [f"{csv_cell(name)}," for name in long_names(piece.spec)]
            for rows in pieces(piece.blocks, TEXT_VALUES):
                file.writelines(_lines(start, names, rows))
                count += rows.values.size
    return count


def long_names(spec: SeriesSpec) -> list[str]:
    """What stands in `column`: the labels, nothing for a scalar."""
    return column_names(spec) if spec.columns else [""]


def _lines(start: str, names: list[str], rows: Rows) -> Iterator[str]:
    cells, width = texts(rows.values), len(names)
    keys = zip(rows.steps.tolist(), rows.wall_times.tolist(), strict=True)
    for number, (step, wall_time) in enumerate(keys):
        here = f"{start},{step},{wall_time},"
        own = cells[number * width : (number + 1) * width]
        yield "".join([f"{here}{name}{cell}\n" for name, cell in zip(names, own, strict=True)])


def write_long_parquet(path: Path, found: Iterable[Piece]) -> int:
    """The same columns; `tag` and `column` are dictionary-encoded, `value` is a double.

    Raises:
        UsageError: pyarrow is not installed.
        StoreError: the file cannot be written.
    """
    arrow, parquet = load("pyarrow"), load("pyarrow.parquet")
    word = arrow.dictionary(arrow.int32(), arrow.string())
    number, real = arrow.int64(), arrow.float64()
    kinds = (word, arrow.int32(), number, real, word, real)
    schema = arrow.schema(list(zip(LONG_COLUMNS, kinds, strict=True)))
    count = 0
    with hidden_path(path) as hidden, hidden.open("wb") as file:
        coding = {"compression": "zstd", "use_dictionary": ["tag", "column", "rank"]}
        with parquet.ParquetWriter(file, schema, **coding) as writer:
            for piece in found:
                for rows in pieces(piece.blocks, GROUP_LINES):
                    columns = _columns(arrow, piece.spec, piece.rank, rows)
                    writer.write_table(arrow.Table.from_arrays(columns, schema=schema))
                    count += rows.values.size
    return count


def _columns(arrow: Any, spec: SeriesSpec, rank: int, rows: Rows) -> list[Any]:
    lines, width = rows.values.size, spec.width
    position = np.tile(np.arange(width, dtype=np.int32), len(rows))
    return [
        arrow.DictionaryArray.from_arrays(np.zeros(lines, np.int32), [spec.tag]),
        arrow.array(np.full(lines, rank, np.int32)),
        arrow.array(np.repeat(rows.steps, width)),
        arrow.array(np.repeat(rows.wall_times, width)),
        arrow.DictionaryArray.from_arrays(position, long_names(spec)),
        arrow.array(rows.values.astype(np.float64).ravel()),
    ]
