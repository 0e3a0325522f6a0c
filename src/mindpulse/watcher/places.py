"""Where runs are: a folder that is a run, or one below which runs appear."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from mindpulse.errors import StoreError
from mindpulse.store.folder import RUN_NAME, attempts_of

DEEPEST = 4
MOST_FOLDERS = 10_000


def is_run(folder: Path) -> bool:
    """Whether a training has begun to write here."""
    try:
        return (folder / RUN_NAME).is_file() or bool(attempts_of(folder))
    except (OSError, StoreError):  # not for us to read
        return False


class Place:
    """A folder that was named to the watcher.

    Attributes:
        path: the folder; it may appear later.

    Example:
        >>> [run.name for run in Place(Path(run).parent).runs()] == [Path(run).name]
        True
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def runs(self) -> list[Path]:
        """The runs that are there; the folder itself while nothing tells what it will be."""
        if not self.path.is_dir():
            return []
        if is_run(self.path):
            return [self.path]
        below = [folder for folder, run in self._walk() if run]
        return below or [self.path]

    def folders(self) -> list[Path]:
        """The folders in which a run may appear."""
        if not self.path.is_dir() or is_run(self.path):
            return []
        return [self.path, *(folder for folder, run in self._walk() if not run)]

    def _walk(self) -> Iterator[tuple[Path, bool]]:
        """Folders below, and whether each is a run; nothing below a run is looked at."""
        ahead, seen = [(self.path, 0)], 0
        while ahead and seen < MOST_FOLDERS:
            folder, depth = ahead.pop()
            for below in folders_in(folder):
                seen += 1
                run = is_run(below)
                yield below, run
                if not run and depth + 1 < DEEPEST:
                    ahead.append((below, depth + 1))


def folders_in(folder: Path) -> list[Path]:
    """The folders in a folder, hidden ones and links left out."""
    try:
        with os.scandir(folder) as entries:
            names = [e.name for e in entries if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [folder / name for name in sorted(names) if not name.startswith(".")]
