"""What one rank of one attempt writes: its series and its notes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from heapq import heapify, heappop, heapreplace
from pathlib import Path
from typing import Any

from mindpulse.errors import StoreError
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.files import OS_FILES, FileLayer
from mindpulse.store.notes import NotesWriter
from mindpulse.store.part import MAX_FILE_BYTES, Place, SeriesWriter


class RankWriter:
    """Buffers rows and writes them into the folder of a rank. For one thread.

    Args:
        directory: the rank's folder, as `create_attempt` made it.
        rank, attempt: written into each file.
        clock: the time in seconds since the epoch.
        files: the file system; a test passes one that fails.
        max_file_bytes: a file grows to this size, then a new part is begun.

    Example:
        >>> writer = RankWriter(Path(folder), rank=0, attempt=1)
        >>> writer.append(SeriesSpec("train_loss"), Rows.one(1, 1.7e9, 2.5))
        >>> writer.close()
    """

    def __init__(
        self,
        directory: Path,
        rank: int,
        attempt: int,
        *,
        clock: Callable[[], float] = time.time,
        files: FileLayer = OS_FILES,
        max_file_bytes: int = MAX_FILE_BYTES,
    ) -> None:
        self.directory = directory
        self._clock = clock
        self._place = Place(directory, rank, attempt, clock, files, max_file_bytes, self._tell)
        # A tag has a second writer only between a change of its columns and the next flush.
        self._series: dict[str, list[SeriesWriter]] = {}
        self._notes = NotesWriter(directory, files)
        # The run, the attempt and the rank are new folders, their names not yet on the disk.
        self._place.unsynced_folders.update([directory, *directory.parents[:3]])
        self._rows_written_before = 0

    @property
    def rows_written(self) -> int:
        """Rows that are with the operating system."""
        return self._rows_written_before + sum(w.rows_written for w in self._writers())

    @property
    def pending_bytes(self) -> int:
        """Memory that unwritten rows take."""
        return sum(writer.waiting.size_bytes for writer in self._writers())

    @property
    def pending_rows(self) -> int:
        """Rows that wait for the next flush."""
        return sum(len(rows) for writer in self._writers() for rows in writer.waiting.blocks)

    def append(self, spec: SeriesSpec, rows: Rows) -> None:
        """Keeps rows until the next flush. Other columns than before begin a new part."""
        writers = self._series.setdefault(spec.tag, [])
        if not writers or (writers[-1].spec is not spec and writers[-1].spec != spec):
            writers.append(SeriesWriter(spec, self._place))
        writers[-1].append(rows)

    def note(self, note: Mapping[str, Any]) -> None:
        """Keeps a note until the next flush; kind, step and wall_time are filled in."""
        self._notes.append({"kind": "note", "step": None, "wall_time": self._clock(), **note})

    def flush(self) -> None:
        """Hands rows and notes to the operating system: one write a file.

        Raises:
            StoreError: something could not be written; it stays buffered, the rest is out.
        """
        problems: list[OSError] = []
        for tag in self._series:
            self._flush_tag(tag, problems)
        _try(self._notes.flush, problems)
        self._raise(problems, "written")

    def sync(self) -> None:
        """Waits until what was flushed is on the disk.

        Raises:
            StoreError: a file could not be synced; its last rows are written again, into a
                new part, at the next flush.
        """
        problems: list[OSError] = []
        for writer in self._writers():
            _try(writer.sync, problems)
        _try(self._notes.sync, problems)
        for folder in sorted(self._place.unsynced_folders):
            _try(partial(self._sync_folder, folder), problems)
        self._raise(problems, "synced")

    def drop_oldest(self, keep_bytes: int) -> int:
        """Forgets the oldest waiting rows until the rest takes `keep_bytes`; how many went."""
        dropped = 0
        size = self.pending_bytes
        writers = self._writers()
        waiting = [(w.waiting.since, at) for at, w in enumerate(writers) if w.waiting]
        heapify(waiting)
        while size > keep_bytes and waiting:
            oldest = writers[waiting[0][1]].waiting
            before = oldest.size_bytes
            dropped += oldest.drop_oldest()
            size -= before - oldest.size_bytes
            if oldest:
                heapreplace(waiting, (oldest.since, waiting[0][1]))
            else:
                heappop(waiting)
        return dropped

    def close(self) -> None:
        """Flushes and syncs.

        Raises:
            StoreError: as `flush` and `sync`.
        """
        self.flush()
        self.sync()

    def _flush_tag(self, tag: str, problems: list[OSError]) -> None:
        writers = self._series[tag]
        while _try(writers[0].flush, problems) and len(writers) > 1:
            if not _try(writers[0].sync, problems):
                return  # its rows wait again
            done = writers.pop(0)
            self._rows_written_before += done.rows_written

    def _sync_folder(self, folder: Path) -> None:
        with suppress(FileNotFoundError):
            self._place.files.sync_folder(folder)
        self._place.unsynced_folders.discard(folder)

    def _writers(self) -> list[SeriesWriter]:
        return [writer for writers in self._series.values() for writer in writers]

    def _tell(self, kind: str, path: Path, reason: str) -> None:
        self.note({"kind": kind, "file": path.name, "reason": reason})

    def _raise(self, problems: list[OSError], what: str) -> None:
        if not problems:
            return
        first = problems[0]
        raise StoreError(
            f"{self.directory}: {len(problems)} file(s) could not be {what}: {first.strerror} "
            f"({first.filename or 'no file name'}); rows are kept and tried again"
        ) from first


class GuestWriter(RankWriter):
    """Series that another process writes beside those of the training, in files of its own.

    The notes have one writer, the training, so a guest writes none. Rows that cannot be written
    are dropped: a guest holds nothing back.

    Example:
        >>> writer = GuestWriter(Path(folder), rank=0, attempt=1)
        >>> writer.append(SeriesSpec("npu_power"), Rows.one(1, 1.7e9, 88.6))
        >>> writer.flush()
    """

    def note(self, note: Mapping[str, Any]) -> None:
        """Nothing."""

    def flush(self) -> None:
        """Hands rows to the operating system.

        Raises:
            StoreError: something could not be written; it is dropped.
        """
        try:
            super().flush()
        finally:
            self.drop_oldest(0)


def _try(act: Callable[[], None], problems: list[OSError]) -> bool:
    try:
        act()
    except OSError as error:
        problems.append(error)
        return False
    return True
