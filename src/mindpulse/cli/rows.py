"""Rows of a series as lines of text or JSON objects, and which of its columns."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from typing import Any

import click

from mindpulse.cli.output import as_scalar, json_text
from mindpulse.errors import UsageError
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.asked import our_tag
from mindpulse.store.run import Run

MAX_COLUMNS = 8  # of a wide series are printed unless --columns chooses


def last_rows(rows: Rows, limit: int) -> Rows:
    """The last `limit` rows; 0 means all."""
    return rows[max(0, len(rows) - limit) :] if limit else rows


def find_spec(run: Run, tag: str) -> SeriesSpec:
    """The description of a series, by its tag or by the name that another tool gave it.

    Raises:
        UsageError: no such series; the message names the nearest ones.
    """
    specs = run.specs()
    tag = tag if tag in specs else our_tag(tag, specs, run.tags)
    return specs[tag] if tag in specs else run.last(tag, 0).spec


def pick_columns(spec: SeriesSpec, glob: str | None, all_if_none: bool) -> list[int]:
    """Positions of the columns to print.

    Raises:
        UsageError: the pattern matches no column; the message shows one.
    """
    if not spec.columns or (glob is None and all_if_none):
        return list(range(spec.width))
    if glob is None:
        return list(range(min(spec.width, MAX_COLUMNS)))
    names = [spec.column_name(index) for index in range(spec.width)]
    picked = [index for index, name in enumerate(names) if fnmatch.fnmatchcase(name, glob)]
    if not picked:
        raise UsageError(
            f"--columns {glob!r} matches none of the {spec.width} columns of {spec.tag!r}; "
            f"the first is {names[0]!r}"
        )
    return picked


def print_document(spec: SeriesSpec, blocks: Iterable[Rows], picked: list[int], rank: int) -> None:
    """The rows as one JSON document, a line for each; printed while they are read."""
    names = [spec.column_name(index) for index in picked] if spec.columns else []
    head = json_text({"tag": spec.tag, "unit": spec.unit, "rank": rank, "columns": names})
    click.echo(head.removesuffix("\n}") + ',\n  "rows": [', nl=False)
    before = "\n    "
    for rows in blocks:
        lines = [json_text(row, indent=None) for row in _objects(spec, rows, picked)]
        if lines:
            click.echo(before + ",\n    ".join(lines), nl=False)
            before = ",\n    "
    click.echo("\n  ]\n}")


def _objects(spec: SeriesSpec, rows: Rows, picked: list[int]) -> Iterator[dict[str, Any]]:
    for step, wall_time, values in zip(rows.steps, rows.wall_times, rows.values, strict=True):
        row: dict[str, Any] = {"step": int(step), "wall_time": float(wall_time)}
        if spec.columns:
            row["values"] = [as_scalar(values[index]) for index in picked]
        else:
            row["value"] = as_scalar(values[0])
        yield row


class Printer:
    """Prints rows under one header: aligned text, or a JSON object per line."""

    def __init__(self, spec: SeriesSpec, picked: list[int], as_json: bool) -> None:
        self.spec, self.picked, self.as_json = spec, picked, as_json
        names = [spec.column_name(i) for i in picked] if spec.columns else [spec.tag]
        self.widths = [max(12, len(name)) for name in names]
        if not as_json:
            head = "  ".join(n.rjust(w) for n, w in zip(names, self.widths, strict=True))
            more = spec.width - len(picked)
            note = f"  ... {more} more columns, see --columns" if spec.columns and more else ""
            click.echo(f"{'step':>10}  {'time (UTC)':<19}  {head}{note}")

    def show(self, rows: Rows) -> None:
        if self.as_json:
            told = _objects(self.spec, rows, self.picked)
            lines = [json_text({"tag": self.spec.tag, **row}, indent=None) for row in told]
        else:
            lines = list(self._lines(rows))
        if lines:
            click.echo("\n".join(lines))

    def _lines(self, rows: Rows) -> Iterator[str]:
        for step, wall_time, values in zip(rows.steps, rows.wall_times, rows.values, strict=True):
            cells = [
                f"{values[index]:.6g}".rjust(width)
                for index, width in zip(self.picked, self.widths, strict=True)
            ]
            yield f"{int(step):>10}  {_clock(float(wall_time))}  {'  '.join(cells)}"


def _clock(wall_time: float) -> str:
    try:
        moment = datetime.fromtimestamp(wall_time, timezone.utc)
    except (ValueError, OverflowError, OSError):  # not known (NaN), or no time at all
        return f"{'-':<19}"
    return moment.strftime("%Y-%m-%d %H:%M:%S")
