"""`mindpulse export`: series in the formats of other tools, all rows at full precision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from mindpulse.cli import options
from mindpulse.cli.exports.events import FOLDERS, write_events
from mindpulse.cli.exports.files import write_csv, write_json
from mindpulse.cli.exports.long import LONG_NAME, write_long_csv, write_long_parquet
from mindpulse.cli.exports.parquet import write_parquet
from mindpulse.cli.exports.source import Piece, Source, choose_tags, expected_rows
from mindpulse.cli.output import print_json, progress
from mindpulse.errors import UsageError
from mindpulse.interop import open_run
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.check import check_files
from mindpulse.store.folder_run import FolderRun
from mindpulse.store.names import MAX_STEM, SUFFIX
from mindpulse.store.names import file_name as stored_name
from mindpulse.store.run import Run

_SHOWN_FILES = 5
FILES: dict[str, Callable[[Path, SeriesSpec, Iterable[Rows]], int]] = {
    "csv": write_csv,
    "json": write_json,
    "parquet": write_parquet,
}
LONG: dict[str, Callable[[Path, Iterable[Piece]], int]] = {
    "csv": write_long_csv,
    "parquet": write_long_parquet,
}


@click.command("export")
@options.run_dir
@click.option(
    "--format",
    "format_",
    type=click.Choice([*FILES, *FOLDERS]),
    default="csv",
    show_default=True,
    help="Format of the files.",
)
@click.option("--tags", metavar="A,B", help="Series to export, by name or pattern [default: all].")
@click.option(
    "--output-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("export"),
    show_default=True,
    metavar="DIR",
    help="Folder for the files; made if missing, files of the same name are replaced.",
)
@click.option(
    "--layout",
    type=click.Choice(["series", "long"]),
    default="series",
    show_default=True,
    help="A file per series, or one long table of all (csv and parquet only).",
)
@options.rank(default="all")
@options.attempt
@options.steps
@options.as_json
def command(
    run_dir: Path,
    format_: str,
    tags: str | None,
    output_dir: Path,
    layout: str,
    rank: int | None,
    attempt: options.Attempt,
    steps: options.StepRange,
    as_json: bool,
) -> None:
    """Write series as files of another format, with all their rows at full precision.

    DIR may also be what another tool wrote; then this is a converter.
    """
    if layout == "long" and format_ not in LONG:
        raise UsageError(f"--layout long: use it with --format {' or '.join(LONG)}, not {format_}")
    run = open_run(run_dir)
    ranks = list(run.ranks) if rank is None else [options.pick_rank(rank, run.ranks)]
    chosen = choose_tags(run, tags)
    with progress("exporting", lambda: expected_rows(run, chosen, attempt)) as count:
        source = Source(run, chosen, ranks, attempt, steps, count)
        several = len(run.ranks) > 1
        if layout == "long":
            written = _long(source, output_dir, format_)
        elif format_ in FILES:
            written = _files(source, output_dir, format_, several)
        else:
            written = write_events(source, output_dir, format_, several)
        told = list(written)
        source.check()
    _tell_damage(run)
    if as_json:
        print_json({"files": told})
        return
    for entry in told:
        click.echo(f"{entry['path']}  {entry['rows']} rows")
    if not any(entry["rows"] for entry in told):
        click.echo("no row matches" if told else "no row matches; nothing was written", err=True)


def _tell_damage(run: Run) -> None:
    """Names the files that are not whole: the export lacks what could not be read of them."""
    ours = isinstance(run, FolderRun)
    reports = check_files(run.path, quick=True) if ours else run.files()
    wrong = [report for report in reports if not (report.valid or report.foreign)]
    for report in wrong[:_SHOWN_FILES]:
        click.echo(f"not whole: {report.path}: {report.problem}", err=True)
    if len(wrong) > _SHOWN_FILES:
        click.echo(f"and {len(wrong) - _SHOWN_FILES} more, see mindpulse analyze", err=True)


def _files(
    source: Source, output_dir: Path, format_: str, several: bool
) -> Iterator[dict[str, Any]]:
    for rank in source.ranks:
        for piece in source.pieces(rank):
            tag = piece.spec.tag
            path = output_dir / file_name(tag, rank, several, format_)
            rows = FILES[format_](path, piece.spec, piece.blocks)
            yield {"path": str(path), "tag": tag, "rank": rank, "rows": rows}


def _long(source: Source, output_dir: Path, format_: str) -> Iterator[dict[str, Any]]:
    path = output_dir / f"{LONG_NAME}.{format_}"
    pieces = (piece for rank in source.ranks for piece in source.pieces(rank))
    yield {"path": str(path), "rows": LONG[format_](path, pieces)}


def file_name(tag: str, rank: int, several: bool, format_: str) -> str:
    """The tag as a file name; the rank is part of it where there are several.

    A name that file systems would not take (28 Chinese characters are 252 bytes when they are
    encoded) is cut and ends in a digest, as in the run folder.

    Example:
        >>> file_name("a/b", 1, True, "csv")
        'a%2Fb.rank-0001.csv'
    """
    middle = f".rank-{rank:04d}" if several else ""
    stem = quote(tag, safe="")
    if len(stem) > MAX_STEM:
        stem = stored_name(tag).removesuffix(SUFFIX)
    return f"{stem}{middle}.{format_}"
