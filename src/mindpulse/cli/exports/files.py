"""CSV and JSON of `mindpulse export`: text that reads back bit for bit, written as a stream."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from mindpulse.cli.output import draft
from mindpulse.series import Rows, SeriesSpec

# Values that are turned into text at a time; a text takes about 80 bytes of memory.
TEXT_VALUES = 1 << 18


def column_names(spec: SeriesSpec) -> list[str]:
    """Names of the value columns in a table: the labels ("layer=0 head=1"), or `value`.

    Names that differ in nothing but case get a number, since SQL cannot tell them apart.

    Example:
        >>> column_names(SeriesSpec("train_loss"))
        ['value']
        >>> column_names(SeriesSpec("x", axes=("p",), columns=(("w",), ("W",))))
        ['p=w', 'p=W (2)']
    """
    if not spec.columns:
        return ["value"]
    taken: set[str] = set()
    found = []
    for index in range(spec.width):
        name = once = spec.column_name(index)
        number = 2
        while once.casefold() in taken:
            once, number = f"{name} ({number})", number + 1
        taken.add(once.casefold())
        found.append(once)
    return found


def pieces(blocks: Iterable[Rows], values: int) -> Iterator[Rows]:
    """The same rows in pieces of at most `values` values, but at least one row."""
    for block in blocks:
        rows = max(1, values // block.values.shape[1])
        for start in range(0, len(block), rows):
            yield block[start : start + rows]


def texts(values: NDArray[Any]) -> list[str]:
    """The shortest decimal text of each value that reads back to the same bits.

    Of a float32 that is 0.1 and not 0.10000000149011612; NaN is `nan`, infinity `inf`.
    """
    return [*map(str, values.ravel())]


def csv_cell(text: str) -> str:
    """The text as a cell of CSV, in quotes where it needs them.

    Example:
        >>> csv_cell("a, b")
        '"a, b"'
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow([text])  # so that either is put in quotes
    return out.getvalue()[:-2] if text else ""


def write_csv(path: Path, spec: SeriesSpec, blocks: Iterable[Rows]) -> int:
    """Header `step,wall_time,...`, then a line per row. Returns the number of rows.

    Raises:
        StoreError: the file cannot be written.
    """
    count = 0
    with draft(path) as file:
        head = ["step", "wall_time", *column_names(spec)]
        file.write(",".join(map(csv_cell, head)) + "\n")
        for rows in pieces(blocks, TEXT_VALUES):
            keys = zip(rows.steps.tolist(), rows.wall_times.tolist(), _joined(rows), strict=True)
            file.writelines(f"{step},{wall_time},{cells}\n" for step, wall_time, cells in keys)
            count += len(rows)
    return count


def _joined(rows: Rows) -> Iterator[str]:
    """The values of each row with commas between them."""
    found, width = texts(rows.values), rows.values.shape[1]
    if width == 1:
        yield from found
        return
    for start in range(0, len(found), width):
        yield ",".join(found[start : start + width])


def description(spec: SeriesSpec) -> dict[str, Any]:
    """What a series is, as the metadata of a file."""
    return {
        "tag": spec.tag,
        "plugin": spec.plugin,
        "unit": spec.unit,
        "axes": list(spec.axes),
        "columns": [list(labels) for labels in spec.columns],
        "dtype": spec.dtype,
        "reduction": spec.reduction,
    }


def write_json(path: Path, spec: SeriesSpec, blocks: Iterable[Rows]) -> int:
    """One object: description, steps, wall times, values; non-finite values are texts.

    The rows are read once, so that the three lists fit each other also while a training goes on
    writing: wall times and values wait in unnamed files beside `path`.

    Raises:
        StoreError: the file cannot be written.
    """
    count = 0
    with draft(path) as file, _waiting(path) as wall_times, _waiting(path) as values:
        file.write(json.dumps(description(spec), ensure_ascii=False)[:-1] + ', "steps": [')
        for rows in pieces(blocks, TEXT_VALUES):
            comma = ", " if count else ""
            file.write(comma + ", ".join(map(str, rows.steps.tolist())))
            wall_times.write(comma + ", ".join(_numbers(rows.wall_times)))
            values.write(comma + ", ".join(_json_rows(rows, bool(spec.columns))))
            count += len(rows)
        for name, waiting in (("wall_times", wall_times), ("values", values)):
            file.write(f'], "{name}": [')
            waiting.seek(0)
            shutil.copyfileobj(waiting, file, 1 << 20)
        file.write("]}\n")
    return count


@contextmanager
def _waiting(path: Path) -> Iterator[TextIO]:
    """A file without a name, on the disk where `path` will be."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="", dir=path.parent) as file:
        yield cast(TextIO, file)


def _json_rows(rows: Rows, wide: bool) -> Iterator[str]:
    found, width = _numbers(rows.values), rows.values.shape[1]
    if not wide:
        yield from found
        return
    for start in range(0, len(found), width):
        yield f"[{', '.join(found[start : start + width])}]"


def _numbers(values: NDArray[Any]) -> list[str]:
    """Texts as JSON has them: what is not finite stands in quotes."""
    found = texts(values)
    for index in np.flatnonzero(~np.isfinite(values)).tolist():
        found[index] = f'"{found[index]}"'
    return found
