"""`mindpulse query`: rows of one series, or one SELECT over the whole run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

import click

from mindpulse.cli import options
from mindpulse.cli.follow import follow_rows
from mindpulse.cli.rows import Printer, find_spec, pick_columns, print_document
from mindpulse.cli.sql.query import run_query, show_csv, show_json, show_table
from mindpulse.errors import UsageError
from mindpulse.interop import open_run
from mindpulse.series import Series, SeriesSpec
from mindpulse.store.run import Run

LIMIT = 20


@click.command("query")
@options.run_dir
@click.option("--tag", metavar="TAG", help="Name of the series.")
@click.option("--sql", metavar="SELECT", help="A SELECT over the run, see the manual for tables.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help="Print the last N rows, of a SELECT the first N; 0 prints all "
    f"[default: {LIMIT}; with --steps all].",
)
@options.rank(default="the first; of a SELECT all")
@options.attempt
@options.steps
@click.option(
    "--columns", metavar="GLOB", help="Columns of a wide series, for example 'layer=3 *'."
)
@click.option("--follow", is_flag=True, help="Go on printing rows as they are written.")
@click.option(
    "--timeout",
    type=options.finite(0.1),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Stop a SELECT after S seconds.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print the rows of a SELECT as CSV.")
@options.as_json
def command(
    run_dir: Path,
    tag: str | None,
    sql: str | None,
    limit: int | None,
    rank: int | None,
    attempt: options.Attempt,
    steps: options.StepRange,
    columns: str | None,
    follow: bool,
    timeout: float,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Print rows of one series, newest last, or those of a SELECT.

    With --json one document, and with --follow one JSON object per line.
    """
    ranged = steps != options.StepRange()
    _check_options(tag, sql, columns, follow, ranged, as_csv)
    wanted = limit if limit is not None else 0 if ranged else LIMIT
    if sql is not None:
        _ask(open_run(run_dir), sql, rank, attempt, wanted, timeout, as_csv, as_json)
    elif follow:
        options.only_run_folder(run_dir, "--follow")
        with suppress(KeyboardInterrupt):  # the way to end it, not an error
            follow_rows(run_dir, str(tag), wanted, rank, attempt, columns, as_json)
    else:
        run = open_run(run_dir)
        chosen = options.pick_rank(rank, run.ranks)
        spec = find_spec(run, str(tag))
        blocks = _read(run, spec.tag, chosen, attempt, steps, wanted)
        _print(spec, blocks, columns, chosen, as_json)


def _check_options(
    tag: str | None, sql: str | None, columns: str | None, follow: bool, ranged: bool, as_csv: bool
) -> None:
    if (tag is None) == (sql is None):
        raise UsageError("give either --tag TAG or --sql SELECT")
    if sql is not None and (columns or follow or ranged):
        raise UsageError("--columns, --follow and --steps go with --tag; --sql has WHERE")
    if sql is None and as_csv:
        raise UsageError("--csv goes with --sql; for a series use: mindpulse export --format csv")
    if follow and ranged:
        raise UsageError("--steps does not go with --follow, which prints what comes")


def _ask(
    run: Run,
    sql: str,
    rank: int | None,
    attempt: options.Attempt,
    limit: int,
    timeout: float,
    as_csv: bool,
    as_json: bool,
) -> None:
    ranks = run.ranks if rank is None else [options.pick_rank(rank, run.ranks)]
    result = run_query(run, sql, ranks, attempt, limit, timeout)
    show = show_json if as_json else show_csv if as_csv else show_table
    show(result)
    if result.more and not as_json:
        click.echo(f"the first {limit} rows; --limit 0 prints all", err=True)


def _print(
    spec: SeriesSpec, blocks: Iterator[Series], columns: str | None, rank: int, as_json: bool
) -> None:
    first = next(blocks, None)
    spec = spec if first is None else first.spec  # an attempt may have columns of its own
    rows = (block.rows for block in ([] if first is None else chain([first], blocks)))
    picked = pick_columns(spec, columns, all_if_none=as_json)
    if as_json:
        print_document(spec, rows, picked, rank)
        return
    printer = Printer(spec, picked, as_json=False)
    for block in rows:
        printer.show(block)


def _read(
    run: Run,
    tag: str,
    rank: int,
    attempt: options.Attempt,
    steps: options.StepRange,
    limit: int,
) -> Iterator[Series]:
    """The last `limit` rows of the steps asked for, in pieces; 0 means all."""
    if limit and steps == options.StepRange():
        yield run.last(tag, limit, rank, attempt)
        return
    kept: deque[Series] = deque()
    for block in run.blocks(tag, rank, attempt):
        piece = Series(block.spec, steps.pick(block.rows))
        if not limit:
            yield piece
            continue
        kept.append(piece)
        while sum(map(len, kept)) - len(kept[0]) >= limit:
            kept.popleft()
    spare = max(0, sum(map(len, kept)) - limit)
    for piece in kept:
        yield Series(piece.spec, piece.rows[spare:])
        spare = 0
