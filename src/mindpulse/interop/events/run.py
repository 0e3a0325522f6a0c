"""Event files of TensorBoard and MindSpore as a run: nothing is converted, and one series is
read at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from mindpulse.errors import StoreError, UsageError
from mindpulse.interop.events.columns import Source
from mindpulse.interop.events.entries import ImageEntry
from mindpulse.interop.events.frame import HEAD_BYTES, next_head
from mindpulse.interop.events.index import FileIndex
from mindpulse.interop.events.names import LINEAGE, EventFile, event_files, named
from mindpulse.interop.events.read import EventImage, Part, last_rows, parts_of
from mindpulse.interop.events.report import TEXT_NOTE, report_of, texts_of
from mindpulse.interop.events.sources import member, sources
from mindpulse.series import Rows, Series, SeriesSpec
from mindpulse.store.asked import ALIAS, asked_attempt, asked_limit, no_rows, no_series
from mindpulse.store.notes import Note
from mindpulse.store.run import Attempt, FileReport, Run

__all__ = ["EventImage", "EventsRun", "sniff"]

_SHOWN_NAMES = 5
_MAX_TAG_TEXT = 200
_TITLES = {"tensorboard": "TensorBoard", "mindspore": "MindSpore"}


def sniff(head: bytes, path: Path) -> bool:
    """Whether a file that begins so is an event file.

    A file that is called like one is believed to be, once a record stands anywhere in `head`.
    """
    data = np.frombuffer(head, np.uint8)
    place = next_head(data, 0) if len(data) >= HEAD_BYTES else None
    return place == 0 or (place is not None and named(path) is not None)


class EventsRun(Run):
    """A folder of event files, or one of them.

    Files of folders below have the folder before their tags (`train/epoch_loss`), but for a
    folder `rank-N`, which says whose they are. The files of one folder and rank, in the order
    in which they were begun, are the attempts: a later one hides the rows of a tag from its own
    first step of that tag on, as a restart from a checkpoint means it.

    Raises:
        UsageError: there is no event file, or none that can be read; the message says why.

    Example:
        >>> EventsRun(events).series("train_loss").values
        array([2.5], dtype=float32)
    """

    def __init__(self, path: Path | str) -> None:
        self.path, self.id = Path(path), ""
        self._indexes: dict[Path, FileIndex] = {}
        self._problems: dict[Path, str] = {}
        self._known: tuple[object, dict[str, Source]] = (None, {})
        readable = self._refresh()
        if not readable:
            raise UsageError(self._nothing())
        times = [i.first_wall_time for i in readable if i.first_wall_time is not None]
        self.created = min(times, default=math.nan)

    @property
    def run_tags(self) -> dict[str, str]:  # type: ignore[override]
        """Short texts that were recorded, and of each renamed series "alias." and its name."""
        indexes = self._refresh()
        dialects = sorted({_TITLES[index.dialect.name] for index in indexes})
        found = {"format": f"event files of {' and '.join(dialects)}"}
        for note in self._notes(indexes, None):
            text = str(note.data["text"])
            if note.kind == TEXT_NOTE and len(text) <= _MAX_TAG_TEXT:
                found[str(note.data["tag"])] = text
        for tag, source in self._sources(indexes).items():
            if tag != source.theirs and not source.part:
                found[ALIAS + tag] = source.theirs
        return found

    @property
    def attempts(self) -> list[int]:
        """Numbers of the attempts, from 1 up."""
        return sorted({number for number, _ in _numbered(self._refresh(), None)}) or [1]

    @property
    def ranks(self) -> list[int]:
        """The ranks that any file is of."""
        return sorted(_ranks(self._refresh()).values()) or [0]

    def specs(self) -> dict[str, SeriesSpec]:
        """All series by tag."""
        return {tag: source.spec for tag, source in self._sources(self._refresh()).items()}

    def series(
        self,
        tag: str,
        rank: int = 0,
        attempt: Attempt = None,
        columns: Sequence[int] | None = None,
    ) -> Series:
        """One series of one rank, see `Run.series`. The name in the files is understood too.

        Raises:
            UsageError: the run has no such series, rank, attempt or column.
        """
        source, parts = self._find(tag, rank, attempt)
        spec = source.spec if columns is None else source.spec.pick(columns)
        pieces = [rows for part in parts for rows in part.rows(source, columns)]
        return Series(spec, Rows.concat(pieces or [Rows.empty(spec.width, spec.dtype)]))

    def blocks(self, tag: str, rank: int = 0, attempt: Attempt = None) -> Iterator[Series]:
        """The rows of `series`, in the same order, in pieces of bounded size.

        Raises:
            UsageError: as `series`.
        """
        source, parts = self._find(tag, rank, attempt)
        for part in parts:
            for rows in part.rows(source, None):
                yield Series(source.spec, rows)

    def last(self, tag: str, limit: int, rank: int = 0, attempt: Attempt = None) -> Series:
        """The last `limit` rows of `series`; a long file is read from near its end on.

        Raises:
            UsageError: as `series`.
        """
        source, parts = self._find(tag, rank, attempt)
        return Series(source.spec, last_rows(source, parts, asked_limit(limit)))

    def notes(self, attempt: int | None = None) -> list[Note]:
        """The texts that were recorded, as notes of kind "text" with their tag."""
        return self._notes(self._refresh(), attempt)

    def files(self) -> list[FileReport]:
        """What each event file holds: its whole records are the rows, damaged ones are counted."""
        self._refresh()
        reports = [report_of(index) for index in self._indexes.values()]
        for path, problem in self._problems.items():
            reports.append(FileReport(path, "", 0, 0, 0, False, problem))
        return sorted(reports, key=lambda report: report.path)

    def image_tags(self) -> list[str]:
        """The tags under which there are images, as the files call them."""
        tags = {_name(index, entry) for index in self._refresh() for entry in index.images}
        return sorted(tags)

    def images(self, tag: str) -> list[EventImage]:
        """The images of a tag, in the order of files and records."""
        found = []
        for index in self._refresh():
            for entry in index.images:
                if _name(index, entry) == tag:
                    size, path = entry.place, index.file.path
                    where = (size.height, size.width, path, size.start, size.end)
                    found.append(EventImage(entry.step, entry.wall_time, *where))
        return found

    def _refresh(self) -> list[FileIndex]:
        """The files that can be read, as they are now, in the order of folders and time."""
        found = [file for file in event_files(self.path) if not _is_lineage(file)]
        known = {file.path: self._indexes.get(file.path) or FileIndex(file) for file in found}
        self._problems.clear()
        for path, index in known.items():
            try:
                index.update()
            except StoreError as error:
                self._problems[path] = str(error)
        self._indexes = {p: index for p, index in known.items() if p not in self._problems}
        return [index for index in self._indexes.values() if not index.problem]

    def _nothing(self) -> str:
        told = [f"{path.name}: {problem}" for path, problem in self._problems.items()]
        told += [f"{index.file.path.name}: {index.problem}" for index in self._indexes.values()]
        shown = "; ".join(told[:_SHOWN_NAMES])
        return f"{self.path}: {shown or 'no event file in it'}"

    def _notes(self, indexes: list[FileIndex], attempt: int | None) -> list[Note]:
        ranks = _ranks(indexes)
        return [
            note
            for number, index in _numbered(indexes, None)
            if attempt in (None, number)
            for note in texts_of(index, ranks[index.file.rank], number)
        ]

    def _sources(self, indexes: list[FileIndex]) -> dict[str, Source]:
        """Kept as long as no file changes: a run may have ten thousand tags."""
        key = tuple((index.file.path, index.stamp) for index in indexes)
        if self._known[0] != key:
            self._known = (key, sources(indexes))
        return self._known[1]

    def _find(self, tag: str, rank: int, attempt: Attempt) -> tuple[Source, list[Part]]:
        indexes = self._refresh()
        source = _source(self._sources(indexes), tag)
        if source is None:
            raise UsageError(no_series(tag, self.path, list(self.specs())))
        attempt = asked_attempt(attempt)
        parts = parts_of(source, _numbered(indexes, rank), attempt)
        if not parts:
            there = self.ranks, self.attempts
            raise UsageError(no_rows(tag, rank, attempt, self.path, there))
        return source, parts


def _source(known: dict[str, Source], tag: str) -> Source | None:
    """By its name here, its name in the files, or the name of one of its columns there."""
    if tag in known:
        return known[tag]
    for source in known.values():
        if source.theirs == tag and not source.part:
            return source
        column = member(source, tag) if tag.startswith(source.theirs) else None
        if column is not None:
            spec = SeriesSpec(tag, dtype=source.spec.dtype)
            return Source(spec, source.prefix, source.members[column], source.kind, theirs=tag)
    return None


def _ranks(indexes: list[FileIndex]) -> dict[int, int]:
    """The rank of a file by the number in its name: MindSpore names the device of a lone one."""
    told = {index.file.rank for index in indexes}
    return {number: number if len(told) > 1 else 0 for number in told}


def _numbered(indexes: list[FileIndex], rank: int | None) -> list[tuple[int, FileIndex]]:
    """The files with the numbers of their attempts: a file without values is none."""
    ranks = _ranks(indexes)
    counts: dict[tuple[str, int], int] = {}
    found: list[tuple[int, FileIndex]] = []
    for index in indexes:
        if rank in (None, ranks[index.file.rank]):
            key = (index.file.prefix, index.file.rank)
            found.append((counts.get(key, 0) + 1, index))
            counts[key] = counts.get(key, 0) + bool(index.tags)
    return found


def _is_lineage(file: EventFile) -> bool:
    return file.path.name.endswith(LINEAGE)


def _name(index: FileIndex, entry: ImageEntry) -> str:
    name = entry.tag.decode("utf-8", "backslashreplace")
    return f"{index.file.prefix}/{name}" if index.file.prefix else name
