"""A run as it stands: its attempts, ranks, series, notes, snapshots and files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mindpulse.errors import StoreError, UsageError
from mindpulse.series import Rows, Series, SeriesSpec
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
from mindpulse.store.merge import join, supersede
from mindpulse.store.names import parse_name
from mindpulse.store.notes import NOTES_NAME, Note
from mindpulse.store.one_file import FileContent, read_file, read_header
from mindpulse.store.reader import NotesTail, series_files, without_repeated

__all__ = ["FileReport", "Run", "create_attempt", "open_run"]

START_NOTE = "start"
TAG_NOTE = "tag"
_SHOWN_NAMES = 5


@dataclass(frozen=True, slots=True)
class Run:
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
        for folder in self._folders(None, None):
            for path, _ in series_files(folder):
                header = _header(path)
                # A salvaged header knows less than any other.
                if header and (not header.salvaged or header.spec.tag not in found):
                    found[header.spec.tag] = (header.salvaged, header.spec)
        return {tag: spec for tag, (_, spec) in sorted(found.items())}

    def series(
        self, tag: str, rank: int = 0, attempt: int | Literal["all"] | None = None
    ) -> Series:
        """One series of one rank.

        Args:
            attempt: None for each step's latest attempt, a number for that attempt alone,
                "all" for the rows of every attempt one after the other.

        Raises:
            UsageError: the run has no such series, rank or attempt; the message says what
                there is.

        Example:
            >>> open_run(run).series("train_loss").values
            array([2.5])
        """
        wanted = attempt if isinstance(attempt, int) else None
        found: dict[int, Series] = {}
        for number in self.attempts if wanted is None else [wanted]:
            read = self._read_attempt(tag, rank, number)
            if read is not None:
                found[number] = read
        if not found:
            raise UsageError(self._missing(tag, rank, attempt))
        if attempt is None:
            return supersede(found, self._starts(rank))
        return join([found[number] for number in sorted(found)])

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

    def _read_attempt(self, tag: str, rank: int, attempt: int) -> Series | None:
        folder = self.path / attempt_name(attempt) / rank_name(rank)
        pieces: list[Series] = []
        before: Rows | None = None
        for path, _ in series_files(folder):
            if _may_hold(path, tag):
                content = read_file(path)
                if content.header is None or content.header.spec.tag != tag:
                    continue
                rows = without_repeated(before, content.rows)
                pieces.append(Series(self._spec_of(content), rows))
                before = content.rows
        return join(pieces) if pieces else None

    def _spec_of(self, content: FileContent) -> SeriesSpec:
        """The description; a damaged one is borrowed from another file of the same shape."""
        header = content.header
        if header is None:
            raise ValueError(f"{content.path}: no header")
        known = self.specs().get(header.spec.tag) if header.salvaged else None
        same = known and (known.width, known.dtype) == (header.spec.width, header.spec.dtype)
        return known if known and same else header.spec

    def _starts(self, rank: int) -> dict[int, int]:
        """First step of the attempts whose training said so in a note."""
        return {
            note.attempt: note.step
            for note in self.notes()
            if note.kind == START_NOTE and note.rank == rank and note.step is not None
        }

    def _missing(self, tag: str, rank: int, attempt: int | str | None) -> str:
        specs = self.specs()
        if tag not in specs:
            return f"{self.path} has no series {tag!r}; it has {_names(list(specs))}"
        return (
            f"{self.path} has no {tag!r} of rank {rank!r}, attempt {attempt!r}; "
            f"ranks are {self.ranks}, attempts {self.attempts}"
        )


def open_run(path: Path | str) -> Run:
    """Opens a run folder for reading.

    Raises:
        UsageError: there is no such folder, or it is no run; the message says what was found.

    Example:
        >>> open_run(run).attempts
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
    return Run(
        folder,
        str(told.get("id", "")),
        float(created) if isinstance(created, int | float) else float("nan"),
        {str(k): str(v) for k, v in tags.items()} if isinstance(tags, dict) else {},
    )


def _header(path: Path) -> Header | None:
    try:
        return read_header(path)[0]
    except StoreError:  # one file that cannot be read must not hide the others
        return None


def _may_hold(path: Path, tag: str) -> bool:
    named = parse_name(path.name)
    return named is not None and named[0] in (tag, "")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _not_a_run(folder: Path) -> str:
    inside = sorted(path.parent.name for path in folder.glob(f"*/{RUN_NAME}"))
    if inside:
        return f"{folder} is no run but holds runs: {_names(inside)}; give one of these folders"
    names = sorted(entry.name for entry in folder.iterdir())
    found = _names(names) if names else "nothing"
    return (
        f"{folder} is no MindPulse run: no {RUN_NAME} and no attempt-0001 in it, but {found}; "
        "give the summary_dir of a training"
    )


def _names(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN_NAMES])
    rest = len(names) - _SHOWN_NAMES
    return f"{shown} and {rest} more" if rest > 0 else shown or "none"
