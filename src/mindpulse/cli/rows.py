"""Rows of a series as lines of text or JSON objects, and which of its columns."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import click

from mindpulse.cli.output import as_scalar, print_json
from mindpulse.errors import UsageError
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.run import Run

MAX_COLUMNS = 8  # of a wide series are printed unless --columns chooses


def last_rows(rows: Rows, limit: int) -> Rows:
    """The last `limit` rows; 0 means all."""
    return rows[max(0, len(rows) - limit) :] if limit else rows


def find_spec(run: Run, tag: str) -> SeriesSpec:
    """The description of a series.

    Raises:
        UsageError: no such series; the message names the nearest ones.
    """
    specs = run.specs()
    if tag in specs:
        return specs[tag]
    near = difflib.get_close_matches(tag, specs, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else f"it has: {', '.join(specs) or '-'}"
    raise UsageError(f"no series {tag!r} in {run.path}; {hint}")


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


def document(spec: SeriesSpec, rows: Rows, picked: list[int], rank: int) -> dict[str, Any]:
    """The rows as one JSON document."""
    return {
        "tag": spec.tag,
        "unit": spec.unit,
        "rank": rank,
        "columns": [spec.column_name(index) for index in picked] if spec.columns else [],
        "rows": list(_objects(spec, rows, picked)),
    }


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
            for row in _objects(self.spec, rows, self.picked):
                print_json({"tag": self.spec.tag, **row}, indent=None)
            return
        for step, wall_time, values in zip(rows.steps, rows.wall_times, rows.values, strict=True):
            cells = [
                f"{values[index]:.6g}".rjust(width)
                for index, width in zip(self.picked, self.widths, strict=True)
            ]
            click.echo(f"{int(step):>10}  {_clock(float(wall_time))}  {'  '.join(cells)}")


def _clock(wall_time: float) -> str:
    try:
        moment = datetime.fromtimestamp(wall_time, timezone.utc)
    except (ValueError, OverflowError, OSError):  # not known (NaN), or no time at all
        return f"{'-':<19}"
    return moment.strftime("%Y-%m-%d %H:%M:%S")
