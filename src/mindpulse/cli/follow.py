"""`mindpulse query --follow`: rows as they are written, over restarts and new ranks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from mindpulse.cli import options
from mindpulse.cli.rows import Printer, last_rows, pick_columns
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.reader import Chunk, RunTail

POLL_S = 0.5


def follow_rows(
    run_dir: Path,
    tag: str,
    limit: int,
    rank: int | None,
    attempt: options.Attempt,
    columns: str | None,
    as_json: bool,
) -> None:
    """Prints the last rows and then all new ones, until interrupted.

    The folder and the series may appear later: a training that has just begun has neither.
    """
    blocks = follow_chunks(RunTail(run_dir), tag, rank, attempt)
    printer: Printer | None = None
    for spec, rows in blocks:
        if printer is None or printer.spec != spec:
            picked = pick_columns(spec, columns, all_if_none=as_json)
            first = printer is None
            printer = Printer(spec, picked, as_json)
            rows = last_rows(rows, limit) if first else rows
        printer.show(rows)


def follow_chunks(
    tail: RunTail, tag: str, rank: int | None, attempt: options.Attempt
) -> Iterator[tuple[SeriesSpec, Rows]]:
    """What is there as one block, then each block that comes; never ends by itself.

    The rank is that of the first block where none is asked for.
    """
    waiting = False
    while True:
        chunks = [c for c in tail.poll() if isinstance(c, Chunk) and c.spec.tag == tag]
        rank = chunks[0].rank if rank is None and chunks else rank
        chunks = [c for c in chunks if c.rank == rank and attempt in (None, "all", c.attempt)]
        if chunks:
            yield chunks[-1].spec, joined(chunks, keep_all=attempt == "all")
        elif not waiting:
            click.echo(f"waiting for rows of {tag!r} in {tail.run_dir} (Ctrl-C ends)", err=True)
        waiting = True
        time.sleep(POLL_S)


def joined(chunks: Sequence[Chunk], keep_all: bool = False) -> Rows:
    """The rows of several chunks as one block.

    A later attempt hides the rows of an earlier one from its first step on, and a block has the
    columns of its last chunk: rows with other columns are left out.
    """
    kept: list[tuple[int, Rows]] = []
    for chunk in chunks:
        if chunk.spec != chunks[-1].spec:
            continue
        if not keep_all:
            first = chunk.rows.steps[0]
            kept = [
                (number, rows if number == chunk.attempt else rows[rows.steps < first])
                for number, rows in kept
            ]
        kept.append((chunk.attempt, chunk.rows))
    return Rows.concat([rows for _, rows in kept])
