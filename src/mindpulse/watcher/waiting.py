"""Waiting until runs change: woken by inotify, or by the clock where inotify is blind."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from mindpulse.store.mounts import network_file_system
from mindpulse.store.reader import Changes

POLL_S = 0.5
GATHER_S = 0.02
# What the watcher itself writes must not wake it.
OWN_FILES = {"watcher.json", "alerts.jsonl"}


class Waiter(Protocol):
    """Something that can wait for a change of folders."""

    def wait(self, timeout_s: float) -> Changes:
        """Returns when something may have changed, or after the time-out.

        Returns:
            The folders, and the names in them, that may have changed; an empty name stands for
            anything in the folder. None if anything may have changed anywhere.
        """

    def peek(self) -> Changes:
        """The same without waiting."""

    def follow(self, folder: Path) -> None:
        """Looks at this folder, too, and at what is written into it."""

    def close(self) -> None:
        """Gives back what it holds."""


class Polling:
    """Waits a fixed time; works on every file system.

    Args:
        stop: ends the wait at once when set.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        stop: threading.Event,
        period_s: float = POLL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stop = stop
        self._period_s = period_s
        self._clock = clock
        self._looked_at = clock()

    def wait(self, timeout_s: float) -> Changes:
        """Returns after the period, or the time-out if that is shorter."""
        self._stop.wait(min(timeout_s, self._period_s))
        self._looked_at = self._clock()
        return None

    def peek(self) -> Changes:
        """Everything once in a period, else nothing."""
        if self._clock() - self._looked_at < self._period_s:
            return {}
        self._looked_at = self._clock()
        return None

    def follow(self, folder: Path) -> None:
        """Nothing to do: all is looked at."""

    def close(self) -> None:
        """Nothing to give back."""


class Inotify:
    """Is woken by the kernel when a file grows or a folder appears, with one queue for all runs.

    Rows of one flush arrive within milliseconds of each other in many files; a short pause after
    the first gathers them. A longer limit on each wait covers what inotify may miss.

    Args:
        folders: what to follow from the beginning.

    Raises:
        OSError: the kernel has no more watches to give.
    """

    def __init__(
        self, folders: Sequence[Path], stop: threading.Event, period_s: float = POLL_S
    ) -> None:
        from inotify_simple import INotify, flags

        self._stop = stop
        self._period_s = period_s
        self._mask = flags.CREATE | flags.MODIFY | flags.MOVED_TO
        self._folder_flag, self._overflow = int(flags.ISDIR), int(flags.Q_OVERFLOW)
        self._watched: dict[int, Path] = {}
        self._known: set[Path] = set()
        self._inotify = INotify()
        try:
            for folder in folders:
                self.follow(folder)
        except OSError:
            self._inotify.close()
            raise

    def wait(self, timeout_s: float) -> Changes:
        """Returns after a change, the period or the time-out."""
        if self._stop.is_set():
            return {}
        events = self._inotify.read(timeout=int(1000 * min(timeout_s, self._period_s)))
        if events:
            self._stop.wait(GATHER_S)
        return self._changes([*events, *self._inotify.read(timeout=0)])

    def peek(self) -> Changes:
        """What has changed by now."""
        return self._changes(self._inotify.read(timeout=0))

    def follow(self, folder: Path) -> None:
        """Watches a folder, and the attempts and ranks in it if it is a run.

        Raises:
            OSError: the kernel has no more watches to give.
        """
        self._watch(folder)  # first, so that what appears in it from now on is told
        for each in _folders_of_ranks(folder):
            self._watch(each)

    def _watch(self, folder: Path) -> None:
        if folder not in self._known:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                self._watched[self._inotify.add_watch(os.fspath(folder), self._mask)] = folder
                self._known.add(folder)

    def close(self) -> None:
        """Closes the kernel's queue."""
        self._inotify.close()

    def _changes(self, events: Sequence[tuple[int, int, int, str]]) -> Changes:
        changes: dict[Path, set[str]] = {}
        for descriptor, mask, _, name in events:
            if mask & self._overflow:
                return None
            folder = self._watched.get(descriptor)
            if folder is None or name in OWN_FILES:
                continue
            if not name:  # the folder itself is gone
                self._known.discard(folder)
            changes.setdefault(folder, set()).add(name)
            if mask & self._folder_flag and name:
                self._new_folder(folder / name, changes)
        return changes

    def _new_folder(self, folder: Path, changes: dict[Path, set[str]]) -> None:
        """Files may stand in it already, from before it was watched."""
        if not _of_a_run(folder.name):
            return
        with contextlib.suppress(OSError):
            self.follow(folder)
        for each in [folder, *_ranks(folder)]:
            changes.setdefault(each, set()).add("")


def waiter_for(folders: Sequence[Path], stop: threading.Event) -> Waiter:
    """Inotify where it works; polling on network file systems, elsewhere than Linux, or without."""
    if any(network_file_system(folder) for folder in folders):
        return Polling(stop)
    try:
        return Inotify(folders, stop)
    except (ImportError, OSError):
        return Polling(stop)


def _of_a_run(name: str) -> bool:
    return name.startswith(("attempt-", "rank-"))


def _folders_of_ranks(folder: Path) -> Iterator[Path]:
    """Each attempt, and when it was dealt with, its ranks."""
    for attempt in sorted(folder.glob("attempt-*")):
        yield attempt
        yield from _ranks(attempt)
    yield from _ranks(folder)


def _ranks(attempt: Path) -> list[Path]:
    return sorted(attempt.glob("rank-*"))
