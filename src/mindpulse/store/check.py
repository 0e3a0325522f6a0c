"""What is in a run folder and whether it is whole: nothing here changes a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mindpulse.errors import StoreError
from mindpulse.store.aside import SET_ASIDE
from mindpulse.store.codec import RowCodec
from mindpulse.store.folder import RUN_NAME, SNAPSHOTS, attempts_of, ranks_of
from mindpulse.store.format import MAGIC, Header
from mindpulse.store.index_format import INDEX_FOLDER
from mindpulse.store.names import SUFFIX, parse_name
from mindpulse.store.notes import NOTES_NAME
from mindpulse.store.one_file import FileContent, read_file

# What other rooms keep in the run folder.
_RUN_FILES = {RUN_NAME, "control.jsonl", "alerts.jsonl", "watcher.json"}
_REPORTS = ("report.html", "report.md", "report.json")
# Event files that the recorder writes for other tools, see `Recorder(mirror=...)`.
_MIRRORS = ("tensorboard", "mindspore")


@dataclass(frozen=True, slots=True)
class FileReport:
    """What one file holds.

    Attributes:
        path: where.
        tag: the series, "" for a foreign file.
        rows: whole, undamaged rows.
        damaged_rows: rows whose checksum does not fit.
        torn_bytes: bytes behind the last whole row: a write that did not end.
        valid: a `.ms` file in which nothing is damaged or missing. A torn end or an old length
            is what a killed training leaves, and is valid.
        problem: what there is to say, "" for a file in order.
        foreign: not one of ours; left alone.
    """

    path: Path
    tag: str
    rows: int
    damaged_rows: int
    torn_bytes: int
    valid: bool
    problem: str
    foreign: bool = False


def check_files(run_dir: Path) -> list[FileReport]:
    """A report for each `.ms` file and each foreign file, in the order of their paths."""
    return [_report(path) for path in sorted(_listed(run_dir))]


def _listed(run_dir: Path) -> Iterator[Path]:
    attempts = attempts_of(run_dir)
    known = {*attempts.values(), *(run_dir / name for name in _MIRRORS)}
    yield from _others(run_dir, {*_RUN_FILES, *_REPORTS}, known)
    for attempt_dir in attempts.values():
        ranks = ranks_of(attempt_dir)
        yield from _others(attempt_dir, set(), set(ranks.values()))
        for folder in ranks.values():
            yield from _of_rank(folder)


def check_rank(folder: Path) -> list[FileReport]:
    """A report for each file in the folder of a rank."""
    return [_report(path) for path in sorted(_of_rank(folder))]


def _of_rank(folder: Path) -> Iterator[Path]:
    yield from _others(folder, {NOTES_NAME}, {folder / SNAPSHOTS, folder / INDEX_FOLDER})


def _others(folder: Path, known: set[str], folders: set[Path]) -> Iterator[Path]:
    """Files and folders that are not expected here; hidden ones are half-written files."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in known or entry.name.startswith("."):
                continue
            if folder / entry.name not in folders:
                yield folder / entry.name


def _report(path: Path) -> FileReport:
    if not path.is_file():
        return _foreign(path, "a folder that is not part of a run" if path.is_dir() else "no file")
    if SUFFIX + SET_ASIDE in path.name:
        return _foreign(path, "kept aside by a repair")
    if not path.name.endswith(SUFFIX):
        return _foreign(path, "not written by MindPulse")
    try:
        content = read_file(path)
    except StoreError as error:
        named = parse_name(path.name)
        return FileReport(path, named[0] if named else "", 0, 0, 0, False, str(error))
    if content.header is None:
        return _unreadable(path, content)
    return _readable(content, content.header)


def _foreign(path: Path, problem: str) -> FileReport:
    return FileReport(path, "", 0, 0, 0, False, problem, foreign=True)


def _unreadable(path: Path, content: FileContent) -> FileReport:
    with path.open("rb") as file:
        start = file.read(len(MAGIC))
    named = parse_name(path.name)
    if start != MAGIC[: len(start)] or named is None:
        return _foreign(path, content.problem)
    problem = content.problem if content.size else "the file is empty"
    return FileReport(path, named[0], 0, 0, content.torn_bytes, False, problem)


def _readable(content: FileContent, header: Header) -> FileReport:
    damaged = int(content.damaged.sum())
    wrong = [content.problem] if content.problem else []
    if damaged:
        wrong.append(f"{damaged} of {len(content.damaged)} rows are damaged and left out")
    if content.size < header.end:
        wrong.append(f"{header.end - content.size} bytes are missing at the end")
    elif header.end < header.size or (header.end - header.size) % RowCodec(header.spec).row_bytes:
        wrong.append(f"the length in the header, {header.length}, is not possible")
    told = [*wrong, *_harmless(content, header)]
    return FileReport(
        content.path,
        header.spec.tag,
        len(content.rows),
        damaged,
        content.torn_bytes,
        not wrong,
        "; ".join(told),
    )


def _harmless(content: FileContent, header: Header) -> Iterator[str]:
    """What a writer at work, or one that was killed, leaves behind."""
    if content.torn_bytes:
        yield f"the last {content.torn_bytes} bytes are part of a row"
    behind = content.size - content.torn_bytes - header.end
    if behind > 0:
        yield f"the length in the header is {behind} bytes behind"
