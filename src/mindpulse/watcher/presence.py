"""The sign that a run is being watched: `watcher.json`, locked, touched every two seconds.

The recorder in the training flushes each second while it is fresh. The lock goes with the process,
also when it is killed, so a second watcher knows whether the first one lives.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path

from mindpulse.errors import StoreError, UsageError

WATCHER_FILE = "watcher.json"
BEAT_S = 2.0
LOCK_TRIES, LOCK_PAUSE_S = 20, 0.05


class Presence:
    """Holds `watcher.json` of a run for as long as it is open.

    Raises:
        UsageError: another watcher is at work on this run.
        StoreError: the run folder cannot be written.
    """

    def __init__(self, run_dir: Path, now: float) -> None:
        self.path = run_dir / WATCHER_FILE
        self._started = now
        self._beaten = -BEAT_S
        self._descriptor = self._hold()
        self.beat(now)

    def beat(self, now: float) -> None:
        """Renews the sign if it is two seconds old; a full disk does not matter here."""
        if abs(now - self._beaten) < BEAT_S:
            return
        self._beaten = now
        sign = {"pid": os.getpid(), "started": self._started, "heartbeat": now}
        data = json.dumps(sign).encode() + b"\n"
        try:
            os.pwrite(self._descriptor, data, 0)
            os.ftruncate(self._descriptor, len(data))
        except OSError:
            os.utime(self._descriptor)

    def close(self) -> None:
        """Takes the sign away."""
        self.path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def __enter__(self) -> Presence:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hold(self) -> int:
        while True:
            descriptor = self._open()
            if not _lock(descriptor):
                raise self._taken(descriptor)
            if self._same_file(descriptor):
                return descriptor
            os.close(descriptor)  # the other watcher was just leaving and took the file away

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(
                f"{self.path}: {error.strerror}; the watcher has to write in the run folder"
            ) from error

    def _taken(self, descriptor: int) -> UsageError:
        told = os.pread(descriptor, 1000, 0).decode(errors="replace").strip()
        os.close(descriptor)
        return UsageError(
            f"{self.path.parent} is being watched already by {told or 'another process'}; "
            "stop that one first"
        )

    def _same_file(self, descriptor: int) -> bool:
        try:
            return os.stat(self.path).st_ino == os.fstat(descriptor).st_ino
        except FileNotFoundError:
            return False


def _lock(descriptor: int) -> bool:
    """Takes the lock; False if another process holds it, True also where there are no locks.

    Tried for a second: the lock of a process that was just killed may outlive it for a moment.
    """
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOCK_PAUSE_S)
        except OSError:
            return True
        else:
            return True
    return False
