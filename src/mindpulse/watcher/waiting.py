"""Waiting until a run folder changes: woken by inotify, or by the clock where inotify is blind."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Protocol

from mindpulse.store.mounts import network_file_system

POLL_S = 0.5
GATHER_S = 0.02


class Waiter(Protocol):
    """Something that can wait for a change of a folder."""

    def wait(self, timeout_s: float) -> None:
        """Returns when something may have changed, or after the time-out."""

    def close(self) -> None:
        """Gives back what it holds."""


class Polling:
    """Waits a fixed time; works on every file system.

    Args:
        stop: ends the wait at once when set.
    """

    def __init__(self, stop: threading.Event, period_s: float = POLL_S) -> None:
        self._stop = stop
        self._period_s = period_s

    def wait(self, timeout_s: float) -> None:
        """Returns after the period, or the time-out if that is shorter."""
        self._stop.wait(min(timeout_s, self._period_s))

    def close(self) -> None:
        """Nothing to give back."""


class Inotify:
    """Is woken by the kernel when a file of the run grows or a folder appears.

    Rows of one flush arrive within milliseconds of each other in many files; a short pause after
    the first gathers them. A longer limit on each wait covers what inotify may miss.

    Raises:
        OSError: the kernel has no more watches to give.
    """

    def __init__(self, run_dir: Path, stop: threading.Event, period_s: float = POLL_S) -> None:
        from inotify_simple import INotify, flags

        self._run_dir = run_dir
        self._stop = stop
        self._period_s = period_s
        self._mask = flags.CREATE | flags.MODIFY | flags.MOVED_TO
        self._watched: set[Path] = set()
        self._inotify = INotify()
        try:
            self._extend()
        except OSError:
            self._inotify.close()
            raise

    def wait(self, timeout_s: float) -> None:
        """Returns after a change, the period or the time-out."""
        if self._stop.is_set():
            return
        self._extend()
        # Heartbeats of our own watcher.json wake us too: they are as rare as the time-out.
        if self._inotify.read(timeout=int(1000 * min(timeout_s, self._period_s))):
            self._stop.wait(GATHER_S)
            self._inotify.read(timeout=0)

    def close(self) -> None:
        """Closes the kernel's queue."""
        self._inotify.close()

    def _extend(self) -> None:
        for folder in [self._run_dir, *_folders_of_ranks(self._run_dir)]:
            if folder not in self._watched:
                with contextlib.suppress(FileNotFoundError):
                    self._inotify.add_watch(os.fspath(folder), self._mask)
                    self._watched.add(folder)


def waiter_for(run_dir: Path, stop: threading.Event) -> Waiter:
    """Inotify where it works; polling on network file systems, elsewhere than Linux, or without."""
    if network_file_system(run_dir):
        return Polling(stop)
    try:
        return Inotify(run_dir, stop)
    except (ImportError, OSError):
        return Polling(stop)


def _folders_of_ranks(run_dir: Path) -> list[Path]:
    attempts = sorted(run_dir.glob("attempt-*"))
    return attempts + [rank for attempt in attempts for rank in sorted(attempt.glob("rank-*"))]
