"""Names of event files: whose they are, when they were begun, which rank wrote them.

events.out.tfevents.<seconds>.<host>...              TensorBoard and all that write for it
<prefix>.out.events.summary.<seconds>.<rank>.<host>_MS   MindSpore; "_lineage" behind it: no series
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path

from mindpulse.interop.events.values import MINDSPORE, TENSORBOARD

_TENSORBOARD = re.compile(r"tfevents(?:\.(\d{1,18}))?")
_MINDSPORE = re.compile(r"\.out\.events\.summary\.(\d{1,18})(?:\.(\d{1,9})\.)?")
_DIGITS = re.compile(r"(\d+)")
_RANK = re.compile(r"(?:^|/)rank[_-]?(\d{1,9})$")
LINEAGE = "_lineage"
_MAX_FOLDERS = 10_000


@dataclass(frozen=True, slots=True)
class EventFile:
    """An event file by its name.

    Attributes:
        path: where.
        prefix: its folder below the folder that was asked for, "" for that folder itself; a
            last part like "rank-0001" is not in it but in the rank.
        dialect: "tensorboard" or "mindspore".
        seconds: when it was begun, seconds since the epoch; 0 if the name does not say.
        rank: as its folder or its name says it, else 0.
    """

    path: Path
    prefix: str
    dialect: str
    seconds: int
    rank: int


def named(path: Path, prefix: str = "") -> EventFile | None:
    """What the name of a file says, None if it is not the name of an event file.

    Example:
        >>> named(Path("events.out.tfevents.1733269431.host.25652.0")).seconds
        1733269431
        >>> named(Path("events.out.events.summary.1796058361.3.host_MS")).rank
        3
    """
    folder = _RANK.search(prefix)
    prefix = prefix[: folder.start()] if folder else prefix
    rank = int(folder[1]) if folder else 0
    found = _MINDSPORE.search(path.name)
    if found:
        told = int(found[2] or 0)
        return EventFile(path, prefix, MINDSPORE, int(found[1]), rank if folder else told)
    found = _TENSORBOARD.search(path.name)
    if found:
        return EventFile(path, prefix, TENSORBOARD, int(found[1] or 0), rank)
    return None


def event_files(path: Path) -> list[EventFile]:
    """The event files of a folder and the folders below, in order of folder and time.

    A file is taken whatever its name. Hidden files and folders are left alone.
    """
    if path.is_file():
        return [named(path) or EventFile(path, "", TENSORBOARD, 0, 0)]
    found = []
    for number, (folder, folders, names) in enumerate(os.walk(path)):
        if number >= _MAX_FOLDERS:
            break
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        prefix = Path(folder).relative_to(path).as_posix()
        for name in names:
            file = named(Path(folder) / name, "" if prefix == "." else prefix)
            if file is not None and not name.startswith("."):
                found.append(file)
    return sorted(found, key=_order)


def has_event_files(path: Path) -> bool:
    """Whether a folder, or a folder below, holds event files; of a file, whether it is named so."""
    if path.is_file():
        return named(path) is not None
    return bool(event_files(path))


def _order(file: EventFile) -> tuple[str, int, list[tuple[int, str]]]:
    parts = _DIGITS.split(file.path.name)
    return file.prefix, file.seconds, [(int(p) if p.isdigit() else -1, p) for p in parts]


def new_name(dialect: str, seconds: float, rank: int, number: int) -> str:
    """The name of a new file, as the tool itself would give it.

    Args:
        number: tells files of this process and second apart.

    Example:
        >>> new_name("mindspore", 1796058361.5, 3, 0)[:38]
        'events.out.events.summary.1796058361.3'
    """
    host = re.sub(r"[^\w.-]", "-", socket.gethostname()) or "host"
    if dialect == MINDSPORE:
        # MindInsight finds `summary.<seconds>`; more digits behind the host name do no harm.
        other = f".{number}" if number else ""
        return f"events.out.events.summary.{int(seconds)}.{rank}.{host}{other}_MS"
    return f"events.out.tfevents.{int(seconds):010d}.{host}.{os.getpid()}.{number}"
