"""What happens in the recorder's thread: entries become rows, rows become files.

Nothing here knows about threads; the time is an argument. `recorder.py` calls `take` and
`turn` from its thread, a test calls them by hand.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from mindpulse.errors import StoreError, UsageError
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.entries import Block, Entry, Scalars, Snapshot, Told, columns, npz
from mindpulse.store.files import FileLayer, make_folders, write_whole
from mindpulse.store.folder import SNAPSHOTS
from mindpulse.store.names import file_name
from mindpulse.store.writer import RankWriter

logger = logging.getLogger("mindpulse")

WATCHER_NAME = "watcher.json"
WATCHER_ALIVE_S = 10.0
WATCHED_INTERVAL_S = 1.0
# With TURN_S of the recorder: what was flushed is on the disk, or on its way, within a second.
SYNC_INTERVAL_S = 0.5
MAX_RETRY_S = 5.0
_MAX_TOLD = 100


@dataclass(slots=True)
class RecorderStats:
    """What became of the rows.

    Attributes:
        rows_written: with the operating system.
        rows_lost: given to the recorder and dropped: no space, no memory, or no number.
        errors: things that went wrong.
        last_error: the latest of them, "" if none.
    """

    rows_written: int = 0
    rows_lost: int = 0
    errors: int = 0
    last_error: str = ""


class Recording:
    """Turns entries into rows and decides when to flush, sync, retry and drop.

    Args:
        run_dir: where a watcher leaves its sign of life.
        writer: of this rank.
        files: the file system.
        flush_interval: seconds between flushes while nobody watches.
        capacity_bytes: memory for rows that could not be written yet.
        clock: the time in seconds since the epoch, for the watcher's sign of life.
    """

    def __init__(
        self,
        run_dir: Path,
        writer: RankWriter,
        files: FileLayer,
        *,
        flush_interval: float,
        capacity_bytes: int,
        clock: Callable[[], float],
    ) -> None:
        self.stats = RecorderStats()
        self._run_dir, self._writer, self._files = run_dir, writer, files
        self._flush_interval, self._capacity_bytes = flush_interval, capacity_bytes
        self._clock = clock
        self._specs: dict[str, SeriesSpec] = {}
        self._told: set[str] = set()
        self._flushed_at = self._synced_at = self._retry_at = float("-inf")
        self._retry_s = 0.0
        self._lost_untold = 0

    def take(self, entries: Iterable[Entry]) -> None:
        """Hands entries to the writer, in order; a bad one costs itself and is counted."""
        for kind, group in groupby(entries, type):
            if kind is Scalars:
                self._take_scalars([e for e in group if isinstance(e, Scalars)])
            elif kind is Block:
                self._take_blocks(e for e in group if isinstance(e, Block))
            else:
                for entry in group:
                    self._take_one(entry)

    def turn(self, now: float) -> None:
        """Does what is due; `now` in seconds of a clock that never jumps."""
        if self._retry_s:
            self._keep_within_capacity()
        if self._flush_due(now):
            self.flush(now)
        if now - self._synced_at >= SYNC_INTERVAL_S:
            self.sync(now)

    def flush(self, now: float) -> bool:
        """Hands everything to the operating system; False if it would not take all."""
        self._flushed_at = now
        if not self._write_out(now):
            return False
        if self._lost_untold:
            self._tell_lost()
            return self._write_out(now)
        return True

    def sync(self, now: float) -> bool:
        """Waits until what was flushed is on the disk; False if some of it has to be repeated."""
        self._synced_at = now
        try:
            self._writer.sync()
        except StoreError as error:
            self._failed(error, now)
            return False
        finally:
            self.stats.rows_written = self._writer.rows_written
        return True

    def give_up(self) -> None:
        """Counts what is still waiting as lost: the training ends and the disk is full."""
        rows = self._writer.drop_oldest(0)
        self.stats.rows_written = self._writer.rows_written
        if rows:
            self.count_lost(rows)
            logger.warning("%s: %d rows could not be written", self._writer.directory, rows)

    def count_lost(self, rows: int) -> None:
        """Counts rows that were dropped; a note tells it when one can be written."""
        self.stats.rows_lost += rows
        self._lost_untold += rows

    def count_error(self, error: BaseException) -> bool:
        """Counts an error; True, and a note of it is kept, the first time it is seen."""
        self.stats.errors += 1
        self.stats.last_error = f"{type(error).__name__}: {error}"
        if self.stats.last_error in self._told or len(self._told) >= _MAX_TOLD:
            return False
        self._told.add(self.stats.last_error)
        self._writer.note({"kind": "recorder_error", "error": self.stats.last_error})
        return True

    def _take_scalars(self, entries: list[Scalars]) -> None:
        for tags, group in groupby(entries, lambda entry: tuple(entry.values)):
            for tag, found in columns(tags, list(group)):
                if isinstance(found, Rows):
                    self._append(tag, found)
                else:
                    self._refuse(1, found)

    def _append(self, tag: str, rows: Rows) -> None:
        try:
            if tag not in self._specs:
                self._specs[tag] = SeriesSpec(tag)
            self._writer.append(self._specs[tag], rows)
        except UsageError as error:
            self._refuse(len(rows), error)

    def _take_blocks(self, entries: Iterator[Block]) -> None:
        for _, group in groupby(entries, lambda entry: id(entry.spec)):
            same = list(group)
            try:
                self._writer.append(same[0].spec, Rows.concat([entry.rows for entry in same]))
            except (UsageError, ValueError, TypeError, AttributeError):
                for entry in same:
                    self._take_block(entry)

    def _take_block(self, entry: Block) -> None:
        try:
            self._writer.append(entry.spec, entry.rows)
        except (UsageError, TypeError, AttributeError) as error:
            self._refuse(1, error)

    def _take_one(self, entry: Entry) -> None:
        if isinstance(entry, Told):
            self._writer.note(entry.note)
        elif isinstance(entry, Snapshot):
            self._save(entry)

    def _save(self, entry: Snapshot) -> None:
        folder = self._writer.directory / SNAPSHOTS
        name = f"{file_name(entry.name).removesuffix('.ms')}_s{entry.step:06d}.npz"
        try:
            data = npz(entry.arrays)
            make_folders(self._files, folder)
            write_whole(self._files, folder / name, data)
        except (OSError, TypeError, ValueError) as error:
            self.count_error(error)
            return
        self._writer.note({"kind": "snapshot", "step": entry.step, "file": name})

    def _refuse(self, rows: int, error: Exception) -> None:
        self.count_lost(rows)
        self.count_error(error)

    def _flush_due(self, now: float) -> bool:
        if self._writer.pending_bytes > self._capacity_bytes // 2 and now >= self._retry_at:
            return True
        if self._retry_s:
            return now >= self._retry_at
        since = now - self._flushed_at
        if since >= self._flush_interval:
            return True
        return since >= WATCHED_INTERVAL_S and self._is_watched()

    def _is_watched(self) -> bool:
        try:
            modified = (self._run_dir / WATCHER_NAME).stat().st_mtime
        except OSError:
            return False
        return self._clock() - modified < WATCHER_ALIVE_S

    def _write_out(self, now: float) -> bool:
        try:
            self._writer.flush()
        except StoreError as error:
            self._keep_within_capacity()
            self._failed(error, now)
            return False
        finally:
            self.stats.rows_written = self._writer.rows_written
        if self._retry_s:
            logger.warning("%s: recording goes on", self._writer.directory)
        self._retry_s, self._retry_at = 0.0, float("-inf")
        return True

    def _failed(self, error: StoreError, now: float) -> None:
        self.count_error(error)
        if not self._retry_s:
            logger.warning("%s. The training goes on.", error)
        self._retry_s = min(MAX_RETRY_S, max(1.0, 2 * self._retry_s))
        self._retry_at = now + self._retry_s

    def _keep_within_capacity(self) -> None:
        dropped = self._writer.drop_oldest(self._capacity_bytes)
        if dropped:
            self.count_lost(dropped)

    def _tell_lost(self) -> None:
        self._writer.note({"kind": "rows_lost", "rows": self._lost_untold})
        logger.warning("%s: %d rows were lost", self._writer.directory, self._lost_untold)
        self._lost_untold = 0
