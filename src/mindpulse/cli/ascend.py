"""`mindpulse ascend`: what Ascend's own tools wrote."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from mindpulse.ascend.memory_block import is_memory_block
from mindpulse.ascend.profile import profiles_below, read_profile
from mindpulse.cli import options
from mindpulse.cli.ascend_views import chips, memory, profile, versions
from mindpulse.cli.ascend_views.view import View
from mindpulse.cli.group import EXIT_FINDINGS
from mindpulse.cli.output import busy, print_json
from mindpulse.errors import StoreError, UsageError

LOGS = (".log", ".txt", ".out", ".err")
TABLES = (".csv", ".json")
MAX_FILES = 200  # beside profiles, of a folder that are looked at


@click.group("ascend")
def command() -> None:
    """Read what Ascend's tools wrote; `show --json` is for programs."""


@command.command("show")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="How many rows of a table.",
)
@options.lang
@options.as_json
def show(path: Path, limit: int, lang: str, as_json: bool) -> None:
    """Show what is in a folder, in all folders below it, or in one file.

    Profiles; the text of `npu-smi info`; files of versions of CANN, driver and firmware; logs that
    speak of memory; MindSpore's memory_block.csv. Exit code 1 says that rows are damaged, that a
    chip is not well, that memory was refused, or that something else is to be mended.
    """
    if not path.exists():
        raise StoreError(f"{path}: no such file or folder")
    with busy("reading"):
        views = list(
            _of_folder(path, limit, lang) if path.is_dir() else _of_file(path, limit, lang)
        )
    if not views:
        raise UsageError(
            f"{path}: nothing in it was written by a tool of Ascend; give a folder such as "
            "*_ascend_ms, *_ascend_pt, PROF_* or OPPROF_*, one of its CSV files, what "
            "'npu-smi info' printed, a version.info, a log, or a memory_block.csv"
        )
    if as_json:
        print_json([view.values for view in views])
    else:
        for number, view in enumerate(views):
            for line in ([""] if number else []) + view.lines:
                click.echo(line)
    if not all(view.well for view in views):
        click.get_current_context().exit(EXIT_FINDINGS)


def _of_file(path: Path, limit: int, lang: str) -> Iterator[View]:
    found = _beside(path, limit)
    if found is not None:
        yield found
    elif not versions.is_one(path) and (path.suffix not in LOGS or _is_table(path)):
        yield profile.view(read_profile(path), limit, lang)


def _of_folder(folder: Path, limit: int, lang: str) -> Iterator[View]:
    places = profiles_below(folder)
    for place in places:
        yield profile.view(read_profile(place), limit, lang)
    cann = versions.view_of_cann(folder)
    if cann is not None:
        yield cann
        return
    for path in _others(folder, set(places)):
        found = _beside(path, limit)
        if found is not None:
            yield found


def _beside(path: Path, limit: int) -> View | None:
    """What a file is that no profiler wrote, None where it is nothing that we know."""
    if versions.is_one(path):
        return versions.view(path)
    if is_memory_block(path):
        return memory.view_of_blocks(path, limit)
    if path.suffix in TABLES:
        return None
    return chips.view(path) or memory.view_of_log(path, limit)


def _is_table(path: Path) -> bool:
    """A text that is a table of the CPU's profiler all the same."""
    return path.name.startswith("cpu_ms_memory_record")


def _others(folder: Path, places: set[Path]) -> Iterator[Path]:
    """Files of a folder that are not of a profile: versions, texts, the tracker's blocks."""
    count = 0
    for place, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if Path(place) / name not in places)
        for name in sorted(files):
            path = Path(place) / name
            known = versions.is_one(path) or path.suffix in LOGS
            if known or (path.suffix == ".csv" and is_memory_block(path)):
                yield path
                count += 1
            if count >= MAX_FILES:
                return
