"""A whole run, read while it is written: new rows and notes of all ranks and attempts."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from mindpulse.errors import StoreError
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.folder import attempts_of, ranks_of
from mindpulse.store.names import SUFFIX, file_name, parse_name
from mindpulse.store.notes import NOTES_NAME, Note, decode_note
from mindpulse.store.one_file import FileTail

__all__ = ["Chunk", "FileTail", "Note", "RunTail"]

# The `.ms` names in a folder, sorted, and those of them that do not tell their tag.
Listing = tuple[tuple[str, ...], tuple[str, ...]]

_SETTLED_NS = 3_000_000_000
_REMEMBERED_ROWS = 65_536
_REMEMBERED_LINES = 256
_MAX_BLOCKS = 256
_MARK_BYTES = 64


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """New rows of one series.

    Attributes:
        rank, attempt: who wrote them.
        spec: the series.
        rows: at least one row, in the order of writing.
    """

    rank: int
    attempt: int
    spec: SeriesSpec
    rows: Rows


class NotesTail:
    """Reads the notes of one rank that are new since the last call."""

    def __init__(self, path: Path, rank: int, attempt: int) -> None:
        self._path, self._rank, self._attempt = path, rank, attempt
        self._offset = 0
        # The last bytes that were read: if they are not there, the file is another one.
        self._mark = b""
        self._recent: dict[bytes, None] = {}

    def poll(self) -> list[Note]:
        """New notes; a line that is not complete yet is left for later, a bad one skipped.

        Raises:
            StoreError: the file cannot be read, for another reason than that it is missing.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset - len(self._mark))
                if file.read(len(self._mark)) != self._mark:  # another file, or a shorter one
                    self._offset, self._mark = 0, b""
                    file.seek(0)
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"{self._path}: cannot be read: {error.strerror}") from error
        self._offset += sum(len(line) + 1 for line in lines[:-1])
        if len(lines) > 1:
            self._mark = (lines[-2] + b"\n")[-_MARK_BYTES:]
        notes = (decode_note(line, self._rank, self._attempt) for line in self._new(lines[:-1]))
        return [note for note in notes if note is not None]

    def _new(self, lines: list[bytes]) -> Iterator[bytes]:
        """Without those that a writer repeated because it could not tell if they were saved."""
        for line in lines:
            if line in self._recent:
                continue
            yield line
            self._recent[line] = None
            if len(self._recent) > _REMEMBERED_LINES:
                del self._recent[next(iter(self._recent))]


class _Told:
    """Step and time of the last rows of a series, so that a row is told once."""

    def __init__(self) -> None:
        self._blocks: list[Rows] = []

    def add(self, rows: Rows) -> None:
        """Remembers rows, without their values."""
        self._blocks.append(Rows(rows.steps, rows.wall_times, np.empty((len(rows), 0))))
        if len(self._blocks) > _MAX_BLOCKS:
            self._blocks = [self.rows()]

    def rows(self) -> Rows:
        """The remembered rows, with no columns."""
        return Rows.concat([Rows.empty(0), *self._blocks])[-_REMEMBERED_ROWS:]


class RunTail:
    """Reads what is new in a run: files, parts, ranks and attempts may appear at any time.

    The folder need not exist yet. Files that are not ours are left alone. A file that cannot
    be read is skipped and listed in `problems`.

    Example:
        >>> [(chunk.spec.tag, len(chunk.rows)) for chunk in RunTail(Path(run)).poll()]
        [('train_loss', 1)]
    """

    def __init__(self, run_dir: Path | str) -> None:
        self.run_dir = Path(run_dir)
        self.problems: dict[Path, str] = {}
        self._files: dict[Path, FileTail] = {}
        self._notes: dict[Path, NotesTail] = {}
        self._told: dict[tuple[int, int, str], _Told] = {}
        self._past_repeats: set[tuple[Path, int]] = set()

    def poll(self) -> list[Chunk | Note]:
        """New notes and rows of each rank of each attempt, in the order of attempts."""
        found: list[Chunk | Note] = []
        for attempt, attempt_dir in attempts_of(self.run_dir).items():
            for rank, folder in ranks_of(attempt_dir).items():
                notes = folder / NOTES_NAME
                tail = self._notes.setdefault(notes, NotesTail(notes, rank, attempt))
                found += tail.poll()
                found += self._chunks(folder, rank, attempt)
        return found

    def _chunks(self, folder: Path, rank: int, attempt: int) -> Iterator[Chunk]:
        for path, part in series_files(folder):
            tail = self._files.setdefault(path, FileTail(path))
            rows = self._poll(tail)
            if tail.spec is None or not len(rows):
                continue
            told = self._told.setdefault((attempt, rank, tail.spec.tag), _Told())
            if part > 1 or tail.restarts:
                rows = self._without_repeated(tail, told, rows)
            told.add(rows)
            if len(rows):
                yield Chunk(rank, attempt, tail.spec, rows)

    def _without_repeated(self, tail: FileTail, told: _Told, rows: Rows) -> Rows:
        """Repeated rows are the first of a file: behind one look without any there are none."""
        if (tail.path, tail.restarts) in self._past_repeats:
            return rows
        found = without_repeated(told.rows(), rows)
        if len(found) == len(rows):
            self._past_repeats.add((tail.path, tail.restarts))
        return found

    def _poll(self, tail: FileTail) -> Rows:
        try:
            rows = tail.poll()
        except StoreError as error:
            self.problems[tail.path] = str(error)
            return Rows.empty(1)
        if tail.problem:
            self.problems[tail.path] = tail.problem
        else:
            self.problems.pop(tail.path, None)
        return rows


def series_files(folder: Path, tag: str | None = None) -> list[tuple[Path, int]]:
    """The `.ms` files of a rank with their part numbers, parts of one tag in order.

    Args:
        tag: only those that may hold this series: by their name, or because it does not tell.
    """
    try:
        names, shortened = _listed(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    if tag is not None:
        begin = file_name(tag).removesuffix(SUFFIX)
        first, last = bisect_left(names, f"{begin}."), bisect_left(names, f"{begin}/")
        names = tuple({*names[first:last], *shortened})
    parsed = [(parse_name(name), name) for name in names]
    stems = [(name.split(".")[0], named[1], name) for named, name in parsed if named]
    return [(folder / name, part) for _, part, name in sorted(stems)]


def _listed(folder: Path) -> Listing:
    """The names in a folder; the system is asked again if the folder has changed since.

    A folder of ten thousand series would otherwise be listed once for each of them. What changed
    in the last seconds may change again without a new time.
    """
    stat = os.stat(folder)
    key = (str(folder), stat.st_dev, stat.st_ino, stat.st_ctime_ns)
    settled = time.time_ns() - stat.st_ctime_ns > _SETTLED_NS
    return _list_once(*key) if settled else _list_once.__wrapped__(*key)


@lru_cache(maxsize=16)
def _list_once(folder: str, device: int, inode: int, changed_ns: int) -> Listing:
    names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX))
    return tuple(names), tuple(name for name in names if "~" in name)


def without_repeated(before: Rows | None, rows: Rows) -> Rows:
    """The rows of a new part without those that the part before it holds already.

    A writer repeats its last rows in a new part when it cannot tell whether the disk has
    them (same step and same wall time).
    """
    if before is None or not len(before) or not len(rows):
        return rows
    maybe = np.flatnonzero(rows.wall_times <= before.wall_times.max())
    if not len(maybe):
        return rows
    held = set(zip(before.steps.tolist(), before.wall_times.tolist(), strict=True))
    some = rows[maybe]
    pairs = zip(some.steps.tolist(), some.wall_times.tolist(), strict=True)
    keep = np.ones(len(rows), np.bool_)
    keep[maybe] = [pair not in held for pair in pairs]
    return rows[keep]
