"""`mindpulse export`: series as CSV or JSON files."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from urllib.parse import quote

import click

from mindpulse.cli import options
from mindpulse.cli.export_files import WRITERS
from mindpulse.cli.output import print_json, progress
from mindpulse.cli.rows import find_spec
from mindpulse.errors import UsageError
from mindpulse.store.run import Run, open_run


@click.command("export")
@options.run_dir
@click.option(
    "--format",
    "format_",
    type=click.Choice(sorted(WRITERS)),
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
@options.rank(default="all")
@options.attempt
@options.as_json
def command(
    run_dir: Path,
    format_: str,
    tags: str | None,
    output_dir: Path,
    rank: int | None,
    attempt: options.Attempt,
    as_json: bool,
) -> None:
    """Write one file per series and rank, with all its rows at full precision."""
    run = open_run(run_dir)
    ranks = list(run.ranks) if rank is None else [options.pick_rank(rank, run.ranks)]
    jobs = [(tag, number) for tag in choose_tags(run, tags) for number in ranks]
    written = []
    for tag, number in progress(jobs, len(jobs), "exporting"):
        series = run.series(tag, rank=number, attempt=attempt)
        if not len(series):
            continue
        path = output_dir / file_name(tag, number, len(run.ranks) > 1, format_)
        WRITERS[format_](path, series)
        written.append({"path": str(path), "tag": tag, "rank": number, "rows": len(series)})
    if as_json:
        print_json({"files": written})
        return
    for entry in written:
        click.echo(f"{entry['path']}  {entry['rows']} rows")


def choose_tags(run: Run, wanted: str | None) -> list[str]:
    """The series that a comma-separated list of names and patterns means.

    Raises:
        UsageError: an entry means none; the message names what is near or there.
    """
    known = list(run.specs())
    if not known:
        raise UsageError(f"{run.path} holds no series yet; nothing to export")
    if wanted is None:
        return known
    chosen: dict[str, None] = {}
    for name in (part.strip() for part in wanted.split(",")):
        found = [name] if name in known else [t for t in known if fnmatch.fnmatchcase(t, name)]
        if not found:
            find_spec(run, name)  # raises with the nearest names
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def file_name(tag: str, rank: int, several: bool, format_: str) -> str:
    """The tag as a file name; the rank is part of it where there are several.

    Example:
        >>> file_name("a/b", 1, True, "csv")
        'a%2Fb.rank-0001.csv'
    """
    middle = f".rank-{rank:04d}" if several else ""
    return f"{quote(tag, safe='')}{middle}.{format_}"
