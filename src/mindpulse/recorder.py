"""The recorder: the training thread hands rows over, a thread of its own writes them.

A call from the training costs one append to a queue. Nothing that goes wrong with the disk
reaches the training: it is counted, noted and, where it can be, made good later.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from mindpulse.errors import UsageError
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.backlog import block_bytes
from mindpulse.store.entries import (
    SCALAR_BYTES,
    Block,
    Entry,
    Scalars,
    Snapshot,
    Told,
    rows_in,
    size_of,
)
from mindpulse.store.files import OS_FILES, FileLayer
from mindpulse.store.folder import create_attempt
from mindpulse.store.holding import Hold
from mindpulse.store.mounts import network_file_system
from mindpulse.store.notes import END_NOTE
from mindpulse.store.recording import RecorderStats, Recording
from mindpulse.store.writer import RankWriter

if TYPE_CHECKING:
    from mindpulse.interop.events.mirror import Mirror

logger = logging.getLogger("mindpulse")

TURN_S = 0.5
_CLOSE_TIMEOUT_S = 30.0


class _Flush:
    """A request that stands in the queue behind the rows it is about."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.succeeded = False


class _Periodic:
    def __init__(self, period_s: float, call: Callable[[], object]) -> None:
        self.period_s, self.call = period_s, call
        self.due = time.monotonic() + period_s


class Recorder:
    """Records the series of one rank. Its methods never raise and never wait for the disk.

    Args:
        run_dir: the run folder; a new attempt is begun in it.
        rank: of this process.
        flush_interval: seconds between writes; about one second while somebody watches.
        fingerprint: tags of the run (versions, git commit), kept in run.json.
        capacity_bytes: memory for rows that wait; beyond it the oldest rows are dropped.
        mirror: "tensorboard", "mindspore" or both: event files for these readers, written beside
            ours in a folder of that name. What goes wrong with them is counted as an error.
        clock: the time in seconds since the epoch.
        files: the file system; a test passes one that fails.

    Raises:
        StoreError: the folder cannot be written.
        UsageError: the rank, the interval or the mirror cannot be used.

    Example:
        >>> recorder = Recorder(folder)
        >>> recorder.add_scalars(1, {"train_loss": 2.5, "learning_rate": 1e-4})
        >>> recorder.flush()
        True
        >>> recorder.close()
    """

    def __init__(
        self,
        run_dir: Path | str,
        *,
        rank: int = 0,
        flush_interval: float = 120.0,
        fingerprint: Mapping[str, str] | None = None,
        capacity_bytes: int = 64 << 20,
        mirror: str | Iterable[str] = (),
        clock: Callable[[], float] = time.time,
        files: FileLayer = OS_FILES,
    ) -> None:
        if not flush_interval > 0:
            raise UsageError(f"flush_interval {flush_interval!r}: give seconds above 0")
        folder = Path(run_dir)
        wanted = (mirror,) if isinstance(mirror, str) else tuple(mirror)
        self._mirrors = _mirrors(folder, wanted, rank, capacity_bytes, clock, files)
        self._mirrored_rows = 0
        self.directory = create_attempt(folder, rank, fingerprint, clock=clock, files=files)
        self.attempt = int(self.directory.parent.name.split("-")[1])
        self._hold = Hold(self.directory)
        _warn_of_network(folder)
        writer = RankWriter(self.directory, rank, self.attempt, clock=clock, files=files)
        self._recording = Recording(
            folder,
            writer,
            files,
            flush_interval=flush_interval,
            capacity_bytes=capacity_bytes,
            clock=clock,
        )
        self._clock, self._capacity_bytes = clock, capacity_bytes
        self._last_step = 0
        self.step_now: Callable[[], int] | None = None  # a training sets it
        self._born = time.monotonic_ns()
        self._queue: deque[Entry | _Flush] = deque()
        # Counters that only grow, each with one writer, need no lock.
        self._bytes_in = self._bytes_dropped = self._bytes_taken = 0
        self._overflowed = self._overflow_counted = 0
        self._periodic: list[_Periodic] = []
        self._wake = threading.Event()
        self._closed = False
        if fingerprint:  # run.json holds that of the first attempt only
            self.note("fingerprint", tags=dict(fingerprint))
        self._start_thread()

    def _start_thread(self) -> None:
        self._thread = threading.Thread(target=self._run, name="mindpulse-recorder", daemon=True)
        self._thread.start()
        _LIVING.add(self)
        atexit.register(self.close)

    @property
    def stats(self) -> RecorderStats:
        """What became of the rows so far."""
        return replace(self._recording.stats)

    @property
    def current_step(self) -> int:
        """The step that is being computed, as far as this process knows; else the last one told."""
        return self._last_step if self.step_now is None else self.step_now()

    def write(self, spec: SeriesSpec, rows: Rows) -> None:
        """Records rows. The arrays are the recorder's from now on: do not change them."""
        self._put(Block(spec, rows), block_bytes(rows))
        if len(rows):
            self._last_step = int(rows.steps[-1])

    def add_scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Records numbers of one step by tag; the mapping is copied."""
        copied = dict(values)
        self._last_step = step
        self._put(Scalars(step, self._clock(), copied), SCALAR_BYTES * len(copied))

    def note(self, kind: str, step: int | None = None, **data: Any) -> None:
        """Records that something happened, as text beside the numbers."""
        note = {**data, "kind": kind, "step": step, "wall_time": self._clock()}
        self._put(Told(note), SCALAR_BYTES * len(note))

    def snapshot(self, name: str, step: int, **arrays: NDArray[Any]) -> None:
        """Records large arrays in a file of their own; they are the recorder's from now on."""
        size = sum(getattr(array, "nbytes", SCALAR_BYTES) for array in arrays.values())
        self._put(Snapshot(name, step, arrays), size)

    def every(self, period_s: float, call: Callable[[], object]) -> None:
        """Calls a function again and again in the recorder's thread; its errors are counted."""
        self._periodic.append(_Periodic(period_s, call))
        self._wake.set()

    def flush(self, timeout: float = 30.0) -> bool:
        """Waits until all rows are with the operating system; False if they are not."""
        if threading.current_thread() is self._thread:  # from a function given to `every`
            self._drain()
            return self._recording.flush(time.monotonic())
        if self._closed:
            return False
        request = _Flush()
        self._queue.append(request)
        self._wake.set()
        return request.done.wait(timeout) and request.succeeded

    def close(self) -> None:
        """Writes everything and ends the thread. What comes later is counted as lost."""
        if self._closed:
            return
        self.note(END_NOTE)
        self._closed = True
        atexit.unregister(self.close)
        _LIVING.discard(self)
        self._wake.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(_CLOSE_TIMEOUT_S)

    def _put(self, entry: Entry, size: int) -> None:
        if self._closed:
            self._recording.stats.rows_lost += rows_in(entry)
            return
        self._bytes_in += size
        self._queue.append(entry)
        if self._bytes_waiting > self._capacity_bytes // 2:
            self._wake.set()
            self._drop_oldest()

    @property
    def _bytes_waiting(self) -> int:
        return self._bytes_in - self._bytes_dropped - self._bytes_taken

    def _drop_oldest(self) -> None:
        """The thread is stuck, in a hanging disk perhaps: memory must stay bounded."""
        while self._queue and self._bytes_waiting > self._capacity_bytes:
            try:
                entry = self._queue.popleft()
            except IndexError:
                return
            if isinstance(entry, _Flush):
                entry.done.set()
                continue
            self._bytes_dropped += size_of(entry)
            self._overflowed += rows_in(entry)

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait(self._seconds_to_wait())
            self._wake.clear()
            self._guarded(self._turn)
        self._guarded(self._finish)
        self._hold.release()

    def _seconds_to_wait(self) -> float:
        now = time.monotonic()
        return max(0.0, min([TURN_S, *(periodic.due - now for periodic in self._periodic)]))

    def _turn(self) -> None:
        self._drain()
        now = time.monotonic()
        for periodic in self._periodic:
            if now >= periodic.due:
                periodic.due = now + periodic.period_s
                self._guarded(periodic.call)
        self._recording.turn(now)
        if self._recording.stats.rows_written != self._mirrored_rows:
            self._flush_mirrors()

    def _finish(self) -> None:
        self._drain()
        now = time.monotonic()
        if self._recording.flush(now) and not self._recording.sync(now):
            self._recording.flush(now)  # once more, into new files
        self._recording.give_up()
        self._flush_mirrors()

    def _drain(self) -> None:
        """Takes all entries; a flush request is answered when those before it are written."""
        overflowed = self._overflowed
        if overflowed > self._overflow_counted:
            self._recording.count_lost(overflowed - self._overflow_counted)
            self._overflow_counted = overflowed
        entries: list[Entry] = []
        for entry in self._queued():
            if isinstance(entry, _Flush):
                self._guarded(partial(self._take, entries))
                entries = []
                entry.succeeded = self._recording.flush(time.monotonic())
                self._flush_mirrors()
                entry.done.set()
            else:
                entries.append(entry)
        self._take(entries)

    def _take(self, entries: list[Entry]) -> None:
        try:
            self._recording.take(entries)
        finally:
            for mirror in self._mirrors:
                self._guarded(partial(mirror.take, entries))

    def _flush_mirrors(self) -> None:
        self._mirrored_rows = self._recording.stats.rows_written
        for mirror in self._mirrors:
            self._guarded(mirror.flush)

    def _queued(self) -> Iterator[Entry | _Flush]:
        # Not until it is empty: a training that is quicker than the disk would never let go.
        for _ in range(len(self._queue)):
            try:
                entry = self._queue.popleft()
            except IndexError:
                return
            if not isinstance(entry, _Flush):
                self._bytes_taken += size_of(entry)
            yield entry

    def _guarded(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:  # the monitor must never end or slow the training
            if self._recording.count_error(error):
                logger.warning("%s: the recorder failed: %r", self.directory, error)


def _mirrors(
    run_dir: Path,
    wanted: tuple[str, ...],
    rank: int,
    capacity_bytes: int,
    clock: Callable[[], float],
    files: FileLayer,
) -> list[Mirror]:
    if not wanted:  # the usual case: then nothing of the event files is loaded
        return []
    from mindpulse.interop.events.mirror import Mirror

    share = capacity_bytes // 4
    return [
        Mirror(run_dir, name, rank, capacity_bytes=share, clock=clock, files=files)
        for name in dict.fromkeys(wanted)
    ]


def _warn_of_network(folder: Path) -> None:
    kind = network_file_system(folder)
    if kind:
        logger.warning(
            "%s is on a network file system (%s): it works, but writes may hang with the "
            "network. Better: a summary_dir on a local disk, copied afterwards.",
            folder,
            kind,
        )


_LIVING: weakref.WeakSet[Recorder] = weakref.WeakSet()


def living() -> list[Recorder]:
    """The recorders of this process that are open, the newest first."""
    return sorted((r for r in _LIVING if not r._closed), key=lambda r: -r._born)


def _silence_in_child() -> None:
    """After a fork the child has no recorder thread, and the files are its parent's."""
    for recorder in list(_LIVING):
        recorder._closed = True
        recorder._queue.clear()
        recorder._hold.close_copy()
        atexit.unregister(recorder.close)


os.register_at_fork(after_in_child=_silence_in_child)
