"""A file layer in which chosen calls fail, for tests of the writer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from mindpulse.store.files import OsFiles


class FaultyFiles(OsFiles):
    """Fails when `when(number of the call, its name)` says so.

    Args:
        when: called before each call, numbers from 1 up.
        code: the errno to raise, or 0 for a write that takes only half of the bytes.
    """

    def __init__(self, when: Callable[[int, str], bool], code: int) -> None:
        self.when, self.code = when, code
        self.calls: list[str] = []
        self.faults = 0

    def _fails(self, name: str) -> bool:
        self.calls.append(name)
        if not self.when(len(self.calls), name):
            return False
        self.faults += 1
        return True

    def _check(self, name: str, path: Path | None = None) -> None:
        if self._fails(name) and self.code:
            raise OSError(self.code, os.strerror(self.code), str(path or ""))

    def open(self, path: Path, flags: int) -> int:
        self._check("open", path)
        return super().open(path, flags)

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        if self._fails("pwrite"):
            if self.code:
                raise OSError(self.code, os.strerror(self.code))
            data = data[: len(data) // 2]
        return super().pwrite(fd, data, offset)

    def ftruncate(self, fd: int, size: int) -> None:
        self._check("ftruncate")
        super().ftruncate(fd, size)

    def fdatasync(self, fd: int) -> None:
        self._check("fdatasync")  # and no more: these tests need not wait for a disk

    def sync_folder(self, path: Path) -> None:
        self._check("sync_folder", path)

    def fstat(self, fd: int) -> os.stat_result:
        self._check("fstat")
        return super().fstat(fd)

    def close(self, fd: int) -> None:
        super().close(fd)  # the descriptor is gone in any case, as in Linux
        self._check("close")

    def mkdir(self, path: Path) -> None:
        self._check("mkdir", path)
        super().mkdir(path)

    def rename(self, source: Path, target: Path) -> None:
        self._check("rename", target)
        super().rename(source, target)

    def link(self, source: Path, target: Path) -> None:
        self._check("link", target)
        super().link(source, target)

    def unlink(self, path: Path) -> None:
        self._check("unlink", path)
        super().unlink(path)
