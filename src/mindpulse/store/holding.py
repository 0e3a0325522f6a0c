"""Who holds the folder of a rank: a training that writes it, or a repair.

The lock is on the folder itself, so nothing is left behind, and it goes with the process also
when that is killed. Network file systems may not lock folders: there nobody can tell, and a
repair goes by the age of the files instead.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path


class Hold:
    """Holds a folder until it is released or the process ends.

    Attributes:
        taken_elsewhere: another process holds it.
        certain: this file system has locks, so `taken_elsewhere` is to be trusted.

    Example:
        >>> first, second = Hold(Path(folder)), Hold(Path(folder))
        >>> first.taken_elsewhere, second.taken_elsewhere
        (False, True)
        >>> first.release()
    """

    def __init__(self, folder: Path) -> None:
        self.taken_elsewhere = False
        self.certain = True
        self._descriptor: int | None = None
        try:
            self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.taken_elsewhere = True
        except OSError:
            self.certain = False

    def release(self) -> None:
        """Lets go; nothing happens the second time."""
        if self._descriptor is not None:
            with suppress(OSError):  # for all copies that forks have made
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self.close_copy()

    def close_copy(self) -> None:
        """In a child after a fork: gives up its copy, so that it does not outlive the parent's."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def held_elsewhere(folder: Path) -> bool | None:
    """Whether another process holds a folder now; None where this file system cannot tell."""
    hold = Hold(folder)
    hold.release()
    return hold.taken_elsewhere if hold.certain else None
