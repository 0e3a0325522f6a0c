"""What is in a run folder and whether it is whole: nothing here changes a file.

A check reads each file once, some rows at a time, and keeps none of them. A quick one reads its
header and its end, and takes the rows between on trust.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mindpulse.errors import StoreError
from mindpulse.store.aside import SET_ASIDE
from mindpulse.store.codec import RowCodec
from mindpulse.store.folder import CHECKPOINTS, PROFILES, RUN_NAME, SNAPSHOTS, attempts_of, ranks_of
from mindpulse.store.format import MAGIC, Header
from mindpulse.store.index_format import INDEX_FOLDER
from mindpulse.store.names import SUFFIX, parse_name
from mindpulse.store.notes import NOTES_NAME
from mindpulse.store.part_file import PartFile

# What other rooms keep in the run folder.
_RUN_FILES = {RUN_NAME, "control.jsonl", "alerts.jsonl", "delivered.jsonl", "silences.jsonl"}
_RUN_FILES |= {"watcher.json"}
_REPORTS = ("report.html", "report.md", "report.json")
# Event files that the recorder writes for other tools, see `Recorder(mirror=...)`.
_MIRRORS = ("tensorboard", "mindspore")


@dataclass(frozen=True, slots=True)
class FileReport:
    """What one file holds.

    Attributes:
        path: where.
        tag: the series, "" for a foreign file.
        rows: whole, undamaged rows; after a quick check, whole ones.
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


def _nobody(count: int) -> None:
    """Nobody wants to know how far the check is."""


def check_files(
    run_dir: Path, quick: bool = False, tell: Callable[[int], None] = _nobody
) -> list[FileReport]:
    """A report for each `.ms` file and each foreign file, in the order of their paths.

    Args:
        quick: believe the rows of a file whose header and last row are whole.
        tell: is called with the bytes that were read since the last call.
    """
    return [_report(path, quick, tell) for path in sorted(_listed(run_dir))]


def bytes_to_check(run_dir: Path) -> int:
    """How many bytes `check_files` will read, about."""
    paths = (path for path in _listed(run_dir) if path.name.endswith(SUFFIX))
    sizes = []
    for path in paths:
        with suppress(OSError):  # it has gone, or is told by the check
            sizes.append(path.stat().st_size)
    return sum(sizes)


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
    return [_report(path, False, _nobody) for path in sorted(_of_rank(folder))]


def _of_rank(folder: Path) -> Iterator[Path]:
    known = {folder / name for name in (SNAPSHOTS, CHECKPOINTS, PROFILES, INDEX_FOLDER)}
    yield from _others(folder, {NOTES_NAME}, known)


def _others(folder: Path, known: set[str], folders: set[Path]) -> Iterator[Path]:
    """Files and folders that are not expected here; hidden ones are half-written files."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in known or entry.name.startswith("."):
                continue
            if folder / entry.name not in folders:
                yield folder / entry.name


def _report(path: Path, quick: bool, tell: Callable[[int], None]) -> FileReport:
    if not path.is_file():
        return _foreign(path, "a folder that is not part of a run" if path.is_dir() else "no file")
    if SUFFIX + SET_ASIDE in path.name:
        return _foreign(path, "kept aside by a repair")
    if not path.name.endswith(SUFFIX):
        return _foreign(path, "not written by MindPulse")
    try:
        part = PartFile.at(path)
        if part.header is not None:
            trusted = quick and _ends_well(part)
            rows = (part.count, 0) if trusted else _counted(part, tell)
            return _readable(part, part.header, *rows)
    except StoreError as error:
        named = parse_name(path.name)
        return FileReport(path, named[0] if named else "", 0, 0, 0, False, str(error))
    return _unreadable(part)


def _ends_well(part: PartFile) -> bool:
    """Whether the rows stand in line and the last of them is whole."""
    last = part.pieces(max(0, part.count - 1))
    return not part.line.breaks and all(piece.whole is None for piece in last)


def _counted(part: PartFile, tell: Callable[[int], None]) -> tuple[int, int]:
    """Whole rows and damaged ones."""
    whole = damaged = 0
    for piece in part.pieces():
        good = len(piece) if piece.whole is None else int(piece.whole.sum())
        whole, damaged = whole + good, damaged + len(piece) - good
        tell(piece.rows.nbytes)
    return whole, damaged


def _foreign(path: Path, problem: str) -> FileReport:
    return FileReport(path, "", 0, 0, 0, False, problem, foreign=True)


def _unreadable(part: PartFile) -> FileReport:
    with part.path.open("rb") as file:
        start = file.read(len(MAGIC))
    named = parse_name(part.path.name)
    zeros = not start.strip(b"\0")  # of a new file the size may reach the disk, and its bytes not
    if not (zeros or start == MAGIC[: len(start)]) or named is None:
        return _foreign(part.path, part.problem)
    problem = part.problem if part.size else "the file is empty"
    return FileReport(part.path, named[0], 0, 0, part.size, False, problem)


def _readable(part: PartFile, header: Header, rows: int, damaged: int) -> FileReport:
    wrong = [part.problem] if part.problem else []
    if damaged:
        wrong.append(f"{damaged} of {rows + damaged} rows are damaged and left out")
    if part.size < header.end:
        wrong.append(f"{header.end - part.size} bytes are missing at the end")
    elif header.end < header.size or (header.end - header.size) % RowCodec(header.spec).row_bytes:
        wrong.append(f"the length in the header, {header.length}, is not possible")
    told = [*wrong, *_harmless(part, header)]
    return FileReport(
        part.path,
        header.spec.tag,
        rows,
        damaged,
        part.line.torn_bytes,
        not wrong,
        "; ".join(told),
    )


def _harmless(part: PartFile, header: Header) -> Iterator[str]:
    """What a writer at work, or one that was killed, leaves behind."""
    torn = part.line.torn_bytes
    if torn:
        yield f"the last {torn} bytes are part of a row"
    behind = part.size - torn - header.end
    if behind > 0:
        yield f"the length in the header is {behind} bytes behind"
