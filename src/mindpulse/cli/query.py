"""`mindpulse query`: rows of one series."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from mindpulse.cli import options
from mindpulse.cli.follow import follow_rows
from mindpulse.cli.output import print_json
from mindpulse.cli.rows import Printer, document, find_spec, last_rows, pick_columns
from mindpulse.store.run import open_run


@click.command("query")
@options.run_dir
@click.option("--tag", required=True, metavar="TAG", help="Name of the series.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="Print the last N rows; 0 prints all.",
)
@options.rank(default="the first")
@options.attempt
@click.option(
    "--columns", metavar="GLOB", help="Columns of a wide series, for example 'layer=3 *'."
)
@click.option("--follow", is_flag=True, help="Go on printing rows as they are written.")
@options.as_json
def command(
    run_dir: Path,
    tag: str,
    limit: int,
    rank: int | None,
    attempt: options.Attempt,
    columns: str | None,
    follow: bool,
    as_json: bool,
) -> None:
    """Print rows of one series, newest last.

    With --json one document, and with --follow one JSON object per line.
    """
    if follow:
        with suppress(KeyboardInterrupt):  # the way to end it, not an error
            follow_rows(run_dir, tag, limit, rank, attempt, columns, as_json)
        return
    run = open_run(run_dir)
    chosen = options.pick_rank(rank, run.ranks)
    find_spec(run, tag)
    series = run.series(tag, rank=chosen, attempt=attempt)
    picked = pick_columns(series.spec, columns, all_if_none=as_json)
    rows = last_rows(series.rows, limit)
    if as_json:
        print_json(document(series.spec, rows, picked, chosen))
    else:
        Printer(series.spec, picked, as_json=False).show(rows)
