"""`mindpulse import`: what another tool wrote becomes a run folder."""

from __future__ import annotations

import hashlib
import math
import re
from pathlib import Path

import click

from mindpulse.cli import options
from mindpulse.cli.import_folder import write_run
from mindpulse.cli.output import busy, print_json, progress
from mindpulse.errors import StoreError, UsageError
from mindpulse.interop import OURS, identify
from mindpulse.interop.found import Found
from mindpulse.store.run import Run

_READ_BYTES = 1 << 20
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")


@click.command("import")
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path))
@click.option(
    "--output-dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Run folder to make; it must not exist yet [default: imported/NAME].",
)
@click.option("--dry-run", is_flag=True, help="Only say what PATH is.")
@options.as_json
def command(path: Path, output_dir: Path | None, dry_run: bool, as_json: bool) -> None:
    """Make a run folder of what another tool wrote: event files, logs, CSV, JSON.

    All commands read such files without this too; as a run folder they open faster, and a
    training can go on in them.
    """
    with busy("looking"):
        found = identify(path)
    if not as_json:
        click.echo(f"{found.path}: {found.title} ({found.why})")
    if dry_run:
        _say_found(found, as_json)
        return
    if found.kind == OURS:
        raise UsageError(f"{path} is a MindPulse run already; there is nothing to import")
    target = output_dir or default_target(path)
    with busy("reading"):
        run = found.read()
        tags = {**run.tags, **source_tags(found, run)}
    with progress("importing", lambda: _rows_of(run)) as count:
        rows = write_run(run, target, tags, count)
    _say_written(found, run, target, rows, as_json)


def default_target(path: Path) -> Path:
    """A folder named after the source.

    Example:
        >>> default_target(Path("logs/run 7.log")).as_posix()
        'imported/run-7.log'
    """
    name = _NOT_IN_NAMES.sub("-", path.resolve().name).strip(".-")
    return Path("imported") / (name or "run")


def source_tags(found: Found, run: Run) -> dict[str, str]:
    """Where a run came from: path, size in bytes and SHA-256 of what was read.

    Of several files the sum is that of the lines "SUM  NAME" in the order of their names, as
    `sha256sum` prints them.

    Raises:
        StoreError: a file cannot be read.
    """
    files = sorted({report.path for report in run.files() if report.path.is_file()})
    sums = {file: _sha256(file) for file in files or [found.path]}
    if len(sums) == 1:
        total = next(iter(sums.values()))
    else:
        root = found.path
        names = "".join(f"{told}  {file.relative_to(root)}\n" for file, told in sums.items())
        total = hashlib.sha256(names.encode("utf-8", "surrogateescape")).hexdigest()
    return {
        "source_kind": found.kind,
        "source_path": str(found.path.resolve()),
        "source_files": str(len(sums)),
        "source_bytes": str(sum(file.stat().st_size for file in sums)),
        "source_sha256": total,
    }


def _sha256(path: Path) -> str:
    found = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while piece := file.read(_READ_BYTES):
                found.update(piece)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror or error}") from error
    return found.hexdigest()


def _rows_of(run: Run) -> int | None:
    return sum(report.rows for report in run.files()) or None


def _say_found(found: Found, as_json: bool) -> None:
    if as_json:
        print_json(_document(found))


def _document(found: Found) -> dict[str, object]:
    return {"path": str(found.path), "kind": found.kind, "title": found.title, "why": found.why}


def _say_written(found: Found, run: Run, target: Path, rows: int, as_json: bool) -> None:
    problems = [f"{report.path}: {report.problem}" for report in run.files() if report.problem]
    if as_json:
        series = {"rows": rows, "attempts": run.attempts, "ranks": run.ranks}
        told = {"run": str(target), "tags": list(run.specs()), "problems": problems}
        print_json({**_document(found), **told, **series})
        return
    for problem in problems:
        click.echo(f"  {problem}", err=True)
    click.echo(f"{target}  {len(run.specs())} series, {rows} rows")
    if math.isnan(run.created):
        click.echo("  the file has no time stamps: its rows have no wall time", err=True)
