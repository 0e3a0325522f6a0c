"""`mindpulse query --sql`: one SELECT over a run, and its rows as text, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import click
import numpy as np

from mindpulse.cli.output import print_json
from mindpulse.cli.sql.engine import (
    locked_database,
    memory_limit,
    quick_interrupt,
    time_limit,
    worded_errors,
)
from mindpulse.cli.sql.parse import parse
from mindpulse.cli.sql.tables import Tables
from mindpulse.jsonlines import plain
from mindpulse.store.run import Attempt, Run

FETCHED_ROWS = 10_000
MAX_CELL = 40  # characters of a text in a table


@dataclass(frozen=True, slots=True)
class Result:
    """Rows of a query. `more`: there are others that were not asked for."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    more: bool


def run_query(
    run: Run, query: str, ranks: Sequence[int], attempt: Attempt, limit: int, seconds: float
) -> Result:
    """The first `limit` rows of a SELECT over the tables of a run; 0 means all.

    Raises:
        UsageError: the query is wrong, not allowed, too slow or too big; DuckDB is missing.
    """
    with locked_database() as connection:
        parsed = parse(connection, query)
        with worded_errors():
            Tables(connection, run, ranks, attempt).make(parsed, query)
        with quick_interrupt(), time_limit(connection, seconds), memory_limit(), worded_errors():
            connection.execute(query)
            told = [(str(name), str(kind)) for name, kind, *_ in connection.description]
            rows = [_plain_row(row, told) for row in _fetch(connection, limit)]
    kept = rows[:limit] if limit else rows
    return Result([name for name, _ in told], kept, len(kept) < len(rows))


def _fetch(connection: Any, limit: int) -> Iterator[Sequence[Any]]:
    """The first `limit` rows and one more, or all; the rest is never computed."""
    left = limit + 1 if limit else None
    while left is None or left > 0:
        block = connection.fetchmany(FETCHED_ROWS if left is None else min(left, FETCHED_ROWS))
        if not block:
            return
        yield from block
        left = None if left is None else left - len(block)


def _plain_row(row: Sequence[Any], told: Sequence[tuple[str, str]]) -> tuple[Any, ...]:
    return tuple(_plain(value, kind) for value, (_, kind) in zip(row, told, strict=True))


def _plain(value: Any, kind: str = "") -> Any:
    """The value as JSON knows it; a FLOAT by its shortest digits, what JSON lacks as text."""
    if isinstance(value, float):
        return float(str(np.float32(value))) if kind == "FLOAT" else value
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Decimal) and Decimal(str(float(value))) == value:
        return float(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return str(value)


def show_json(result: Result) -> None:
    """One document: names of the columns, rows as lists, and whether there are more."""
    rows = [list(row) for row in result.rows]
    print_json({"columns": result.columns, "rows": rows, "more": result.more})


def show_csv(result: Result) -> None:
    """A header, then a line per row, every digit kept; NULL is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(result.columns)
    writer.writerows([_joined(value) for value in row] for row in result.rows)
    click.echo(text.getvalue(), nl=False)


def show_table(result: Result) -> None:
    """Aligned columns, numbers to six digits."""
    cells = [result.columns, *([_cell(value) for value in row] for row in result.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    left = [any(isinstance(row[i], str) for row in result.rows) for i in range(len(widths))]
    for row in cells:
        padded = zip(row, widths, left, strict=True)
        line = "  ".join(cell.ljust(w) if text else cell.rjust(w) for cell, w, text in padded)
        click.echo(line.rstrip())


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = " ".join(str(_joined(value)).split())
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…"


def _joined(value: Any) -> Any:
    """Lists and structures as JSON; anything else as it is."""
    return json.dumps(plain(value), ensure_ascii=False) if isinstance(value, list | dict) else value
