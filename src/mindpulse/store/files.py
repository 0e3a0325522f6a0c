"""The file system as the writer sees it: few calls, so that a test can make any of them fail."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

# What file systems say that do not sync folders: CIFS and some of FUSE.
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.ENOSYS}


class FileLayer(Protocol):
    """What the writer asks of the operating system. Each call may raise OSError."""

    def open(self, path: Path, flags: int) -> int:
        """A descriptor; new files get mode 0644 (less the umask)."""
        ...

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        """Bytes written, possibly fewer than given."""
        ...

    def ftruncate(self, fd: int, size: int) -> None: ...

    def fdatasync(self, fd: int) -> None: ...

    def sync_folder(self, path: Path) -> None:
        """Waits until the names in a folder are on the disk."""
        ...

    def fstat(self, fd: int) -> os.stat_result: ...

    def close(self, fd: int) -> None: ...

    def mkdir(self, path: Path) -> None:
        """One folder, which must not exist; its parent must."""
        ...

    def rename(self, source: Path, target: Path) -> None: ...

    def link(self, source: Path, target: Path) -> None: ...

    def unlink(self, path: Path) -> None: ...


class OsFiles:
    """The real one."""

    def open(self, path: Path, flags: int) -> int:
        return os.open(path, flags | os.O_CLOEXEC, 0o644)

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        return os.pwrite(fd, data, offset)

    def ftruncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def fdatasync(self, fd: int) -> None:
        os.fdatasync(fd)

    def sync_folder(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno not in _NO_FOLDER_SYNC:
                raise
        finally:
            os.close(fd)

    def fstat(self, fd: int) -> os.stat_result:
        return os.fstat(fd)

    def close(self, fd: int) -> None:
        os.close(fd)

    def mkdir(self, path: Path) -> None:
        path.mkdir()

    def rename(self, source: Path, target: Path) -> None:
        source.replace(target)

    def link(self, source: Path, target: Path) -> None:
        os.link(source, target)

    def unlink(self, path: Path) -> None:
        path.unlink()


OS_FILES = OsFiles()


def make_folders(files: FileLayer, path: Path) -> None:
    """Makes a folder and the missing ones above it; no error if it exists."""
    if path.is_dir():
        return
    if path.parent != path:
        make_folders(files, path.parent)
    try:
        files.mkdir(path)
    except FileExistsError:
        if not path.is_dir():
            raise


def write_whole(files: FileLayer, path: Path, data: bytes) -> None:
    """Writes a new file under a hidden name and moves it into place, so no reader sees half.

    It is on the disk before it takes its name: else a power loss may leave the name and no bytes.
    """
    hidden = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        fill(files, hidden, data)
        files.rename(hidden, path)
        files.sync_folder(path.parent)
    except OSError:
        hidden.unlink(missing_ok=True)
        raise


def fill(files: FileLayer, path: Path, data: bytes) -> None:
    """Writes a file from its beginning and waits until it is on the disk."""
    fd = files.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        written = 0
        while written < len(data):
            count = files.pwrite(fd, data[written:], written)
            if not count:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            written += count
        files.fdatasync(fd)
    finally:
        files.close(fd)


def with_file(files: FileLayer, path: Path, flags: int, use: Callable[[int], object]) -> int:
    """Opens a file, hands its descriptor to `use`, closes it; what `use` returned."""
    fd = files.open(path, flags)
    try:
        result = use(fd)
    finally:
        files.close(fd)
    return result if isinstance(result, int) else 0
