"""The folder of a run as a place to write: there, writable, with room, on a local disk?"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from mindpulse.doctor.result import Result, quoted
from mindpulse.doctor.sizes import human
from mindpulse.store.folder import RUN_NAME
from mindpulse.store.mounts import MOUNT_TABLE, network_file_system

FOLDER, WRITABLE, DISK = "summary.folder", "summary.writable", "summary.disk"
TRIED_BYTES = 4096
FULL_BYTES, SCARCE_BYTES = 1 << 20, 100 << 20
FULL_FILES, SCARCE_FILES = 1, 1000
_SHOWN = 5
# What the system says when there is no room: the disk, the user's share of it, a file's limit.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (errno.EACCES, errno.EPERM)


def check_place(
    folder: Path,
    *,
    statvfs: Callable[[Path], os.statvfs_result] = os.statvfs,
    table: Path = MOUNT_TABLE,
    user: int | None = None,
) -> list[Result]:
    """Whether a training can write here; a hidden file is written and removed to find out.

    Args:
        statvfs, table: what the system says of the disk and of what is mounted.
        user: number of the user; None for the one who asks.
    """
    if not folder.exists():
        return [_missing(folder)]
    if not folder.is_dir():
        return [Result(FOLDER, "problem", "summary_is_file", {"path": folder}, weight=0.9)]
    there = Result(FOLDER, "ok", "summary_folder_there", {"path": folder})
    owner = os.geteuid() if user is None else user
    return [there, *_writable(folder, owner), *_room(folder, statvfs), *_network(folder, table)]


def _missing(folder: Path) -> Result:
    """The folder is not there; runs beside it may be the one that is meant."""
    values: dict[str, object] = {"path": folder}
    if folder.is_symlink():
        return Result(FOLDER, "problem", "summary_link", values, weight=0.95)
    near = folder.parent
    while not near.exists() and near != near.parent:
        near = near.parent
    values["near"] = near
    runs = _runs_in(near)
    if not runs:
        return Result(FOLDER, "problem", "summary_missing", values, weight=0.95)
    values["runs"] = ", ".join(map(str, runs[:_SHOWN]))
    command = f"mindpulse doctor summary {quoted(runs[0])}"
    return Result(FOLDER, "problem", "summary_missing_but", values, command, 0.95)


def _runs_in(folder: Path) -> list[Path]:
    found: list[Path] = []
    with suppress(OSError):
        found = sorted(path.parent for path in folder.glob(f"*/{RUN_NAME}"))
    return found


def _writable(folder: Path, user: int) -> list[Result]:
    """Tries to write; of root, whom no mode stops, the mode is looked at besides."""
    values: dict[str, object] = {"path": folder}
    try:
        _try(folder)
    except OSError as error:
        values["error"] = error.strerror or str(error)
        return [_refused(error.errno or 0, folder, values)]
    mode = folder.stat().st_mode
    if user == 0 and not mode & stat.S_IWUSR:
        values["mode"] = f"{stat.S_IMODE(mode):04o}"
        command = f"chmod u+w {quoted(folder)}"
        return [Result(WRITABLE, "problem", "summary_mode", values, command, 0.7)]
    return [Result(WRITABLE, "ok", "summary_writable", values)]


def _try(folder: Path) -> None:
    """Writes a block down to the disk, as a recorder would, and takes it away again."""
    path = folder / f".doctor-{os.getpid()}"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        written = os.write(descriptor, bytes(TRIED_BYTES))
        if written < TRIED_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
        with suppress(OSError):
            path.unlink()


def _refused(code: int, folder: Path, values: dict[str, object]) -> Result:
    if code == errno.EROFS:
        command = f"findmnt --target {quoted(folder)}"
        return Result(WRITABLE, "problem", "summary_read_only", values, command, 0.95)
    if code in _NO_ROOM:
        command = f"df -h {quoted(folder)}; df -i {quoted(folder)}; quota"
        return Result(WRITABLE, "problem", "summary_no_room", values, command, 0.95)
    if code in _REFUSED:
        found = folder.stat()
        values |= {"mode": f"{stat.S_IMODE(found.st_mode):04o}", "owner": found.st_uid}
        values["user"] = os.geteuid()
        command = f"ls -ld {quoted(folder)}"
        return Result(WRITABLE, "problem", "summary_refused", values, command, 0.95)
    return Result(WRITABLE, "problem", "summary_write_failed", values, weight=0.9)


def _room(folder: Path, statvfs: Callable[[Path], os.statvfs_result]) -> list[Result]:
    found = statvfs(folder)
    free = found.f_bavail * found.f_frsize
    values: dict[str, object] = {"path": folder, "free": human(free), "files": found.f_favail}
    if found.f_files and found.f_favail < SCARCE_FILES:
        full = found.f_favail < FULL_FILES
        command = f"df -i {quoted(folder)}"
        weight = 0.9 if full else 0.3
        return [Result(DISK, "problem", "summary_no_files", values, command, weight)]
    if free < SCARCE_BYTES:
        name = "summary_full" if free < FULL_BYTES else "summary_nearly_full"
        weight = 0.9 if free < FULL_BYTES else 0.3
        return [Result(DISK, "problem", name, values, f"df -h {quoted(folder)}", weight)]
    return [Result(DISK, "ok", "summary_room", values)]


def _network(folder: Path, table: Path) -> list[Result]:
    kind = network_file_system(folder, table)
    values = {"path": folder, "kind": kind}
    if kind is None:
        return [Result("summary.network", "ok", "summary_local", values)]
    return [Result("summary.network", "problem", "summary_network", values, weight=0.25)]
