"""Parquet of `mindpulse export`, through pyarrow: row groups of bounded size."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mindpulse.cli.exports.files import column_names, description
from mindpulse.cli.optional import load
from mindpulse.cli.output import hidden_path
from mindpulse.series import Rows, SeriesSpec

GROUP_VALUES = 4 << 20
GROUP_ROWS = 1 << 18
METADATA = b"mindpulse"


def write_parquet(path: Path, spec: SeriesSpec, blocks: Iterable[Rows]) -> int:
    """Columns `step` (int64), `wall_time` (double) and the values in the type they were stored in.

    What the series is stands in the file's metadata under the key `mindpulse`, as JSON. Returns
    the number of rows.

    Raises:
        UsageError: pyarrow is not installed.
        StoreError: the file cannot be written.
    """
    arrow, parquet = load("pyarrow"), load("pyarrow.parquet")
    schema = _schema(arrow, spec)
    count = 0
    with hidden_path(path) as hidden, hidden.open("wb") as file:
        coding = {"compression": "zstd", "use_dictionary": False, "column_encoding": _coding(spec)}
        with parquet.ParquetWriter(file, schema, **coding) as writer:
            for rows in groups(blocks, min(GROUP_ROWS, max(1, GROUP_VALUES // spec.width))):
                columns = [rows.steps, rows.wall_times, *rows.values.T]
                arrays = [arrow.array(column) for column in columns]
                writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
                count += len(rows)
    return count


def groups(blocks: Iterable[Rows], size: int) -> Iterator[Rows]:
    """The same rows in groups of `size`; only the last is smaller."""
    kept: list[Rows] = []
    count = 0
    for block in blocks:
        kept.append(block)
        count += len(block)
        if count < size:
            continue
        joined = Rows.concat(kept)
        whole = count - count % size
        for start in range(0, whole, size):
            yield joined[start : start + size]
        kept, count = [joined[whole:]], count - whole
    if count:
        yield Rows.concat(kept)


def _schema(arrow: Any, spec: SeriesSpec) -> Any:
    kind = arrow.float32() if spec.dtype == "float32" else arrow.float64()
    fields = [("step", arrow.int64()), ("wall_time", arrow.float64())]
    fields += [(name, kind) for name in column_names(spec)]
    text = json.dumps(description(spec), ensure_ascii=False).encode()
    return arrow.schema(fields, metadata={METADATA: text})


def _coding(spec: SeriesSpec) -> dict[str, str]:
    return {
        "step": "DELTA_BINARY_PACKED",
        "wall_time": "BYTE_STREAM_SPLIT",
        **dict.fromkeys(column_names(spec), "BYTE_STREAM_SPLIT"),
    }
