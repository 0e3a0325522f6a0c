"""Writers of `mindpulse export`: one series into one file, every digit kept."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

from mindpulse.cli.output import draft
from mindpulse.jsonlines import plain
from mindpulse.series import Series

BLOCK_ROWS = 20_000


def write_csv(path: Path, series: Series) -> None:
    """Header `step,wall_time,...`, then a line per row; NaN is `nan`, infinity `inf`.

    The last columns are named like the series' columns ("layer=0 head=1"), or `value`.

    Raises:
        StoreError: the file cannot be written.
    """
    spec = series.spec
    names = [spec.column_name(i) for i in range(spec.width)] if spec.columns else ["value"]
    with draft(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["step", "wall_time", *names])
        for start in range(0, len(series), BLOCK_ROWS):
            block = series.rows[start : start + BLOCK_ROWS]
            # NumPy's text of a float32 is its shortest: 0.1, not 0.10000000149011612.
            cells = block.values.astype(str).tolist()
            keys = zip(block.steps.tolist(), block.wall_times.tolist(), strict=True)
            writer.writerows([*key, *row] for key, row in zip(keys, cells, strict=True))


def write_json(path: Path, series: Series) -> None:
    """One object: description, steps, wall times, values; non-finite values are texts.

    Raises:
        StoreError: the file cannot be written.
    """
    spec = series.spec
    values = series.values.astype(str).astype("float64")
    content = {
        "tag": spec.tag,
        "unit": spec.unit,
        "axes": list(spec.axes),
        "columns": [list(labels) for labels in spec.columns],
        "steps": series.steps.tolist(),
        "wall_times": series.wall_times.tolist(),
        "values": values.tolist(),
    }
    with draft(path) as file:
        json.dump(plain(content), file, ensure_ascii=False, allow_nan=False)
        file.write("\n")


WRITERS: dict[str, Callable[[Path, Series], None]] = {"csv": write_csv, "json": write_json}
