"""A whole run, read while it is written: new rows and notes of all ranks and attempts."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mindpulse.errors import StoreError
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.folder import attempts_of, place_of, ranks_of
from mindpulse.store.names import SUFFIX, file_name, parse_name
from mindpulse.store.notes import NOTES_NAME, Note
from mindpulse.store.notes_tail import NotesTail
from mindpulse.store.one_file import FileTail
from mindpulse.store.told import Told, without_repeated

__all__ = ["Chunk", "FileTail", "Note", "NotesTail", "RunTail", "without_repeated"]

# The `.ms` names in a folder, sorted, and those of them that do not tell their tag.
Listing = tuple[tuple[str, ...], tuple[str, ...]]

_SETTLED_NS = 3_000_000_000
_REMEMBERED_ROWS = 65_536
# So much of each file is read at a time where a long run is caught up with.
PORTION_BYTES = 1 << 18
# Folders of ranks, and the names in them that may have grown; None for everything.
Changes = Mapping[Path, set[str]] | None


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


@dataclass(slots=True)
class _Look:
    """What is to be read of one rank of one attempt; `names` is None for all files."""

    rank: int
    attempt: int
    folder: Path
    names: set[str] | None = None


class RunTail:
    """Reads what is new in a run: files, parts, ranks and attempts may appear at any time.

    The folder need not exist yet. Files that are not ours are left alone. A file that cannot
    be read is skipped and listed in `problems`.

    Args:
        run_dir: the run folder.
        tags: the series to read; None for all.
        remembered_rows: of each series, so that one that is written twice is told once.

    Example:
        >>> [(chunk.spec.tag, len(chunk.rows)) for chunk in RunTail(Path(run)).poll()]
        [('train_loss', 1)]
    """

    def __init__(
        self,
        run_dir: Path | str,
        tags: Collection[str] | None = None,
        remembered_rows: int = _REMEMBERED_ROWS,
    ) -> None:
        self.run_dir = Path(run_dir)
        self.problems: dict[Path, str] = {}
        self._tags = None if tags is None else frozenset(tags)
        self._remembered_rows = remembered_rows
        self._files: dict[tuple[Path, str], FileTail] = {}
        self._notes: dict[Path, NotesTail] = {}
        self._told: dict[tuple[int, int, str], Told] = {}
        self._past_repeats: set[tuple[Path, int]] = set()

    def poll(self) -> list[Chunk | Note]:
        """New notes and rows of each rank of each attempt, in the order of attempts."""
        return [found for portion in self.portions(most_bytes=None) for found in portion]

    def portions(
        self, changed: Changes = None, most_bytes: int | None = PORTION_BYTES
    ) -> Iterator[list[Chunk | Note]]:
        """The same, so many bytes of each file at a time; an attempt is read to its end first.

        Args:
            changed: the folders of ranks, and in them the names of files, that may have grown;
                an empty name stands for any file of the folder. None for all.
        """
        looks = self._all() if changed is None else self._among(changed)
        for attempt in sorted({look.attempt for look in looks}):
            ahead = [look for look in looks if look.attempt == attempt]
            while ahead:
                found: list[Chunk | Note] = []
                for look in ahead:
                    found += self._read(look, most_bytes)
                if found:
                    yield found
                ahead = [look for look in ahead if look.names]

    def _all(self) -> list[_Look]:
        return [
            _Look(rank, attempt, folder)
            for attempt, attempt_dir in attempts_of(self.run_dir).items()
            for rank, folder in ranks_of(attempt_dir).items()
        ]

    def _among(self, changed: Mapping[Path, set[str]]) -> list[_Look]:
        looks = []
        for folder, names in changed.items():
            place = place_of(self.run_dir, folder)
            if place:
                looks.append(_Look(*place, folder, None if "" in names else names))
        return sorted(looks, key=lambda look: (look.attempt, look.rank))

    def _read(self, look: _Look, most_bytes: int | None) -> list[Chunk | Note]:
        """What is new; `look` then names the files that could not be read to their end."""
        found: list[Chunk | Note] = []
        if look.names is None or NOTES_NAME in look.names:
            notes = look.folder / NOTES_NAME
            tail = self._notes.setdefault(notes, NotesTail(notes, look.rank, look.attempt))
            found += tail.poll()
        unread: dict[str, str] = {}
        for name, part in self._series_names(look):
            stem = name.split(".")[0]
            if stem in unread.values():  # its parts are read one after the other
                unread[name] = stem
                continue
            file = self._tail(look.folder, name)
            chunk = self._chunk(look, file, part, most_bytes)
            if file.more:
                unread[name] = stem
            if chunk is not None:
                found.append(chunk)
        look.names = set(unread)
        return found

    def _series_names(self, look: _Look) -> list[tuple[str, int]]:
        """The names of files to read with their part numbers, parts of one tag in order."""
        if look.names is None:
            try:
                names = [name for name in _listed(look.folder)[0] if self._wanted(name)]
            except (FileNotFoundError, NotADirectoryError):
                return []
        else:
            names = [name for name in look.names if name.endswith(SUFFIX) and self._wanted(name)]
        parsed = [
            (name.split(".")[0], named[1], name) for name in names if (named := parse_name(name))
        ]
        return [(name, part) for _, part, name in sorted(parsed)]

    def _wanted(self, name: str) -> bool:
        if self._tags is None:
            return True
        named = parse_name(name)
        return named is not None and (not named[0] or named[0] in self._tags)

    def _tail(self, folder: Path, name: str) -> FileTail:
        key = (folder, name)
        tail = self._files.get(key)
        if tail is None:
            tail = self._files[key] = FileTail(folder / name)
        return tail

    def _chunk(
        self, look: _Look, tail: FileTail, part: int, most_bytes: int | None
    ) -> Chunk | None:
        rows = self._poll(tail, most_bytes)
        spec = tail.spec
        if spec is None or not len(rows) or (self._tags is not None and spec.tag not in self._tags):
            return None
        told = self._told.get((look.attempt, look.rank, spec.tag))
        if told is None:
            told = self._told[look.attempt, look.rank, spec.tag] = Told(self._remembered_rows)
        if part > 1 or tail.restarts:
            rows = self._without_repeated(tail, told, rows)
        told.add(rows)
        return Chunk(look.rank, look.attempt, spec, rows) if len(rows) else None

    def _without_repeated(self, tail: FileTail, told: Told, rows: Rows) -> Rows:
        """Repeated rows are the first of a file: behind one look without any there are none."""
        if (tail.path, tail.restarts) in self._past_repeats:
            return rows
        found = without_repeated(told.rows(), rows)
        if len(found) == len(rows):
            self._past_repeats.add((tail.path, tail.restarts))
        return found

    def _poll(self, tail: FileTail, most_bytes: int | None) -> Rows:
        try:
            rows = tail.poll(most_bytes)
        except StoreError as error:
            self.problems[tail.path] = str(error)
            return Rows.empty(1)
        if tail.problem:
            self.problems[tail.path] = tail.problem
        elif self.problems:
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
