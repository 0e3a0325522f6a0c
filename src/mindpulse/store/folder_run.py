"""Our own run folder as it stands: attempts, ranks, series, notes, snapshots and files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mindpulse.errors import StoreError, UsageError
from mindpulse.series import Series, SeriesSpec
from mindpulse.store import gather
from mindpulse.store.asked import asked_attempt, asked_limit, listed, no_rows, no_series
from mindpulse.store.check import FileReport, check_files
from mindpulse.store.folder import (
    RUN_NAME,
    SNAPSHOTS,
    attempt_name,
    attempts_of,
    create_attempt,
    rank_name,
    ranks_of,
)
from mindpulse.store.format import Header
from mindpulse.store.names import parse_name
from mindpulse.store.notes import NOTES_NAME, START_NOTE, Note, seconds_of
from mindpulse.store.overview import Overview
from mindpulse.store.part_file import PartFile, foresee, read_header
from mindpulse.store.reader import NotesTail, series_files
from mindpulse.store.run import Attempt, Run
from mindpulse.store.survey import survey

__all__ = ["FolderRun", "create_attempt", "open_folder"]

TAG_NOTE = "tag"


@dataclass(frozen=True, slots=True)
class FolderRun(Run):
    """A run folder. Nothing is kept in memory: each call reads the files as they are now.

    Attributes:
        path: the folder.
        id: 32 hexadecimal digits, "" where run.json is missing.
        created: seconds since the epoch, NaN where run.json is missing.
        run_tags: the fingerprint of the first attempt.
    """

    path: Path
    id: str
    created: float
    run_tags: dict[str, str]

    @property
    def tags(self) -> dict[str, str]:
        """The fingerprint, and what `add_tag` added; a later value replaces an earlier one."""
        added = {
            str(note.data["key"]): str(note.data.get("text", ""))
            for note in self.notes()
            if note.kind == TAG_NOTE and "key" in note.data
        }
        return {**self.run_tags, **added}

    @property
    def attempts(self) -> list[int]:
        """Numbers of the attempts, from 1 up."""
        return list(attempts_of(self.path))

    @property
    def ranks(self) -> list[int]:
        """The ranks that any attempt has."""
        found = {rank for path in attempts_of(self.path).values() for rank in ranks_of(path)}
        return sorted(found)

    def specs(self) -> dict[str, SeriesSpec]:
        """All series by tag, as the latest attempt describes them."""
        found: dict[str, tuple[bool, SeriesSpec]] = {}
        for folder in reversed(self._folders(None, None)):
            # A later file has told what is known for certain.
            told = {tag for tag, (salvaged, _) in found.items() if not salvaged}
            paths = [path for path, _ in series_files(folder) if _tag_of(path) not in told]
            foresee(paths)
            for path in reversed(paths):
                if _tag_of(path) in found and not found[_tag_of(path)][0]:
                    continue
                header = _header(path)
                # A salvaged header knows less than any other.
                if header and _better(header, found.get(header.spec.tag)):
                    found[header.spec.tag] = (header.salvaged, header.spec)
        return {tag: spec for tag, (_, spec) in sorted(found.items())}

    def series(
        self,
        tag: str,
        rank: int = 0,
        attempt: Attempt = None,
        columns: Sequence[int] | None = None,
    ) -> Series:
        """One series of one rank, see `Run.series`.

        Example:
            >>> open_folder(run).series("train_loss").values
            array([2.5])
        """
        return gather.read_all(self._gathered(tag, rank, attempt, columns))

    def blocks(self, tag: str, rank: int = 0, attempt: Attempt = None) -> Iterator[Series]:
        """The rows of `series` in pieces of about a mebibyte, see `Run.blocks`."""
        return gather.blocks(self._gathered(tag, rank, attempt, None))

    def last(self, tag: str, limit: int, rank: int = 0, attempt: Attempt = None) -> Series:
        """The last rows of `series`, read from the end of its files, see `Run.last`.

        Example:
            >>> open_folder(run).last("train_loss", 5).steps
            array([1])
        """
        return gather.last(self._gathered(tag, rank, attempt, None), asked_limit(limit))

    def overview(
        self,
        tag: str,
        points: int = 2000,
        rank: int = 0,
        attempt: Attempt = None,
        columns: Sequence[int] | None = None,
    ) -> Overview:
        """The series in few buckets, out of its index where it has one, see `Run.overview`.

        Example:
            >>> open_folder(run).overview("train_loss").maximum
            array([[2.5]])
        """
        return survey(self._gathered(tag, rank, attempt, columns), points)

    def notes(self, attempt: int | None = None) -> list[Note]:
        """The notes of all ranks, in the order of attempts and ranks."""
        found: list[Note] = []
        for number, attempt_dir in attempts_of(self.path).items():
            for rank, folder in ranks_of(attempt_dir).items():
                if attempt in (None, number):
                    found += NotesTail(folder / NOTES_NAME, rank, number).poll()
        return found

    def snapshots(self) -> list[Path]:
        """The snapshot files of all attempts and ranks, for `numpy.load`."""
        folders = self._folders(None, None)
        return [path for folder in folders for path in sorted((folder / SNAPSHOTS).glob("*.npz"))]

    def files(self) -> list[FileReport]:
        """What each `.ms` file holds and what is wrong with it; foreign files are named."""
        return check_files(self.path)

    def _folders(self, rank: int | None, attempt: int | None) -> list[Path]:
        return [
            folder
            for number, attempt_dir in attempts_of(self.path).items()
            for found, folder in ranks_of(attempt_dir).items()
            if rank in (None, found) and attempt in (None, number)
        ]

    def _gathered(
        self, tag: str, rank: int, attempt: Attempt, columns: Sequence[int] | None
    ) -> gather.Gathered:
        """The files that hold a series.

        Raises:
            UsageError: there is none, or it has no such column.
        """
        attempt = asked_attempt(attempt)
        numbers = [attempt] if isinstance(attempt, int) else self.attempts
        parts = {number: self._parts(tag, rank, number) for number in numbers}
        parts = {number: found for number, found in parts.items() if found}
        if not parts:
            raise UsageError(self._missing(tag, rank, attempt))
        hides = attempt is None and len(self.attempts) > 1
        spec, found = gather.sources(parts, columns, alone=not hides)
        starts = self._starts(rank) if hides else {}
        return gather.Gathered(spec, found, starts, hides)

    def _parts(self, tag: str, rank: int, attempt: int) -> list[tuple[PartFile, SeriesSpec]]:
        folder = self.path / attempt_name(attempt) / rank_name(rank)
        found = [PartFile.at(path) for path, _ in series_files(folder, tag)]
        return [
            (part, self._spec_of(part.header))
            for part in found
            if part.header is not None and part.header.spec.tag == tag
        ]

    def _spec_of(self, header: Header) -> SeriesSpec:
        """The description; a damaged one is borrowed from another file of the same shape."""
        known = self.specs().get(header.spec.tag) if header.salvaged else None
        same = known and (known.width, known.dtype) == (header.spec.width, header.spec.dtype)
        return known if known and same else header.spec

    def _starts(self, rank: int) -> dict[int, int]:
        """First step of the attempts whose training said so in a note."""
        found: dict[int, int] = {}
        for number, attempt_dir in attempts_of(self.path).items():
            path = attempt_dir / rank_name(rank) / NOTES_NAME
            with suppress(FileNotFoundError, NotADirectoryError):
                stat = path.stat()
                step = _start(path, stat.st_ino, stat.st_size, stat.st_mtime_ns)
                if step is not None:
                    found[number] = step
        return found

    def _unreadable(self, tag: str) -> str:
        """What is wrong with the file of a series, "" if there is none, or nothing is wrong."""
        for folder in self._folders(None, None):
            for path, _ in series_files(folder, tag) if isinstance(tag, str) and tag else ():
                if _tag_of(path) == tag and (problem := _problem(path)):
                    return f"{problem}; 'mindpulse analyze' tells more"
        return ""

    def _missing(self, tag: str, rank: int, attempt: int | str | None) -> str:
        specs = self.specs()
        if tag not in specs:
            return self._unreadable(tag) or no_series(tag, self.path, list(specs))
        return no_rows(tag, rank, attempt, self.path, (self.ranks, self.attempts))


def open_folder(path: Path | str) -> FolderRun:
    """Opens a run folder for reading.

    Raises:
        UsageError: there is no such folder, or it is no run; the message says what was found.

    Example:
        >>> open_folder(run).attempts
        [1]
    """
    folder = Path(path)
    if not folder.exists():
        raise UsageError(f"{folder}: no such folder; give the summary_dir of a training")
    if not folder.is_dir():
        raise UsageError(f"{folder} is a file; give the folder that holds {RUN_NAME}")
    described = (folder / RUN_NAME).is_file()
    if not described and not attempts_of(folder):
        raise UsageError(_not_a_run(folder))
    told = _read_json(folder / RUN_NAME)
    tags = told.get("tags")
    created = told.get("created")
    return FolderRun(
        folder,
        str(told.get("id", "")),
        seconds_of(created),
        {str(k): str(v) for k, v in tags.items()} if isinstance(tags, dict) else {},
    )


@lru_cache(maxsize=1024)
def _start(path: Path, inode: int, size: int, changed_ns: int) -> int | None:
    """The first step that the notes of a rank tell; they are read again when they have changed.

    Each series of a run that was started again asks for it.
    """
    steps = [note.step for note in NotesTail(path, 0, 0).poll() if note.kind == START_NOTE]
    known = [step for step in steps if step is not None]
    return known[-1] if known else None


def _header(path: Path) -> Header | None:
    try:
        return read_header(path)[0]
    except StoreError:  # one file that cannot be read must not hide the others
        return None


def _problem(path: Path) -> str:
    try:
        header, problem = read_header(path)
    except StoreError as error:
        return str(error)
    return f"{path}: {problem}" if header is None else ""


def _better(header: Header, known: tuple[bool, SeriesSpec] | None) -> bool:
    """Whether a header tells more than what a later file told."""
    return known is None or (known[0] and not header.salvaged)


def _tag_of(path: Path) -> str:
    """The tag that a name tells, "" if it tells none."""
    named = parse_name(path.name)
    return named[0] if named else ""


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):  # the rows do not depend on it
        return {}
    return found if isinstance(found, dict) else {}


def _not_a_run(folder: Path) -> str:
    inside = sorted(path.parent.name for path in folder.glob(f"*/{RUN_NAME}"))
    if inside:
        return f"{folder} is no run but holds runs: {listed(inside)}; give one of these folders"
    names = sorted(entry.name for entry in folder.iterdir())
    found = listed(names) if names else "nothing"
    return (
        f"{folder} is no MindPulse run: no {RUN_NAME} and no attempt-0001 in it, but {found}; "
        "give the summary_dir of a training"
    )
