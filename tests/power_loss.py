"""A file layer that knows what the disk has, and can lose the rest as a power loss would.

What is on the disk for sure is only what was asked for: the bytes of a file after `fdatasync`, the
names in a folder after `sync_folder`. Of everything else any part may have got there, in any
order: single 4 KiB pages, a longer size, zeros where a page did not arrive, a name or not.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

from mindpulse.store.files import OsFiles

PAGE = 4096


class PowerLostError(BaseException):
    """The machine stops here; nothing in the program may catch it."""


@dataclass
class Disk:
    """What is on the disk for sure: bytes by inode, names by folder (also an inode)."""

    bytes: dict[int, bytes] = field(default_factory=dict)
    names: dict[int, dict[str, int]] = field(default_factory=dict)


class LossyFiles(OsFiles):
    """The real file system, with a shadow of what is safe.

    Args:
        stop_at: number of the call (from 1 up) at which the power goes, 0 for never.
    """

    def __init__(self, root: Path, chance: random.Random, stop_at: int = 0) -> None:
        self.root, self.chance, self.stop_at = root, chance, stop_at
        self.disk = Disk()
        self.calls = 0
        self._kept: list[int] = []  # descriptors, so that no inode is used twice
        self.sync_folder(root)

    def take_all_as_safe(self) -> None:
        """What stands there now has been on the disk for long."""
        for path in [self.root, *self.root.rglob("*")]:
            if path.is_dir():
                names = {entry.name: entry.inode() for entry in os.scandir(path)}
                self.disk.names[path.stat().st_ino] = names
            else:
                self.disk.bytes[path.stat().st_ino] = path.read_bytes()
                self._kept.append(os.open(path, os.O_RDONLY))

    def lose_power(self, target: Path) -> None:
        """Writes what a machine would find after the loss into a new folder."""
        self._restore(self.root, target)

    def _restore(self, folder: Path, target: Path) -> None:
        target.mkdir()
        safe = self.disk.names.get(folder.stat().st_ino, {})
        living = {entry.name: entry.inode() for entry in os.scandir(folder)}
        for name in {*safe, *living}:
            certain = safe.get(name) == living.get(name)
            inode = living.get(name) if certain or self.chance.random() < 0.5 else safe.get(name)
            if inode is None:
                continue
            source = folder / name
            if source.is_dir():
                self._restore(source, target / name)
            else:
                (target / name).write_bytes(self._survivors(inode))

    def _survivors(self, inode: int) -> bytes:
        safe = self.disk.bytes.get(inode, b"")
        living = self._living(inode)
        if living is None:
            return safe
        size = self.chance.choice([len(safe), len(living), self._between(len(safe), len(living))])
        found = bytearray(size)
        for at in range(0, size, PAGE):
            page = slice(at, min(at + PAGE, size))
            source = living if self.chance.random() < 0.5 else safe
            data = source[page]
            found[at : at + len(data)] = data
        return bytes(found)

    def _between(self, one: int, other: int) -> int:
        return self.chance.randint(min(one, other), max(one, other))

    def _living(self, inode: int) -> bytes | None:
        for descriptor in self._kept:
            stat = os.fstat(descriptor)
            if stat.st_ino == inode:
                return os.pread(descriptor, stat.st_size, 0)
        return None

    def _count(self) -> None:
        self.calls += 1
        if self.calls == self.stop_at:
            raise PowerLostError

    def open(self, path: Path, flags: int) -> int:
        self._count()
        descriptor = super().open(path, flags)
        inode = os.fstat(descriptor).st_ino
        if all(os.fstat(kept).st_ino != inode for kept in self._kept):
            self._kept.append(os.open(path, os.O_RDONLY))
        return descriptor

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        if self.calls + 1 == self.stop_at:  # in the middle of the write
            super().pwrite(fd, data[: self.chance.randint(0, len(data))], offset)
        self._count()
        return super().pwrite(fd, data, offset)

    def ftruncate(self, fd: int, size: int) -> None:
        self._count()
        super().ftruncate(fd, size)

    def fdatasync(self, fd: int) -> None:
        self._count()
        stat = os.fstat(fd)
        path = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
        self.disk.bytes[stat.st_ino] = os.pread(path, stat.st_size, 0)
        os.close(path)

    def sync_folder(self, path: Path) -> None:
        self._count()
        entries = {entry.name: entry.inode() for entry in os.scandir(path)}
        self.disk.names[path.stat().st_ino] = entries

    def mkdir(self, path: Path) -> None:
        self._count()
        super().mkdir(path)

    def rename(self, source: Path, target: Path) -> None:
        self._count()
        super().rename(source, target)

    def link(self, source: Path, target: Path) -> None:
        self._count()
        super().link(source, target)

    def unlink(self, path: Path) -> None:
        self._count()
        super().unlink(path)

    def close_all(self) -> None:
        """Gives back the descriptors that kept the inodes."""
        for descriptor in self._kept:
            os.close(descriptor)
        self._kept.clear()
