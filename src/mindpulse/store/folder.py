"""The folders of a run: run.json, attempts, ranks."""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from mindpulse.errors import StoreError, UsageError
from mindpulse.store.files import OS_FILES, FileLayer, fill, make_folders
from mindpulse.store.format import VERSION

RUN_NAME = "run.json"
SNAPSHOTS = "snapshots"
CHECKPOINTS = "checkpoints"
PROFILES = "profiles"
_ATTEMPT = re.compile(r"attempt-(\d{4,})")
_RANK = re.compile(r"rank-(\d{4,})")


def attempt_name(attempt: int) -> str:
    """Folder of an attempt (from 1 up)."""
    return f"attempt-{attempt:04d}"


def rank_name(rank: int) -> str:
    """Folder of a rank (from 0 up)."""
    return f"rank-{rank:04d}"


def attempts_of(run_dir: Path) -> dict[int, Path]:
    """The attempts of a run in order; none if the folder is missing."""
    return _numbered(run_dir, _ATTEMPT)


def ranks_of(attempt_dir: Path) -> dict[int, Path]:
    """The ranks of an attempt in order; none if the folder is missing."""
    return _numbered(attempt_dir, _RANK)


def profile_name(step: int) -> str:
    """Folder of a profile that begins with a step, in the folder `profiles` of a rank."""
    return f"s{step:06d}"


@lru_cache(maxsize=4096)
def place_of(run_dir: Path, folder: Path) -> tuple[int, int] | None:
    """(rank, attempt) of the folder of a rank in a run, None if it is none.

    Example:
        >>> place_of(Path("run"), Path("run/attempt-0002/rank-0001"))
        (1, 2)
    """
    if folder.parent.parent != run_dir:
        return None
    rank, attempt = _RANK.fullmatch(folder.name), _ATTEMPT.fullmatch(folder.parent.name)
    return (int(rank[1]), int(attempt[1])) if rank and attempt else None


def _numbered(folder: Path, pattern: re.Pattern[str]) -> dict[int, Path]:
    found = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                match = pattern.fullmatch(entry.name)
                if match and entry.is_dir():
                    found[int(match[1])] = folder / entry.name
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise StoreError(f"{folder}: cannot be listed: {error.strerror}") from error
    return dict(sorted(found.items()))


def create_attempt(
    run_dir: Path,
    rank: int = 0,
    fingerprint: Mapping[str, str] | None = None,
    *,
    clock: Callable[[], float] = time.time,
    files: FileLayer = OS_FILES,
) -> Path:
    """Begins a new attempt of a rank and returns its folder; makes the run if need be.

    The number is one above the highest attempt that has this rank, so the ranks of one start
    meet in one attempt without talking to each other.

    Raises:
        UsageError: the rank is no whole number from 0 up.
        StoreError: the folder cannot be written.

    Example:
        >>> create_attempt(Path(folder), rank=1).name
        'rank-0001'
    """
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 0:
        raise UsageError(f"rank {rank!r}: use a whole number from 0 up")
    try:
        make_folders(files, run_dir)
        _describe(run_dir, fingerprint or {}, clock, files)
        return _claim(run_dir, rank, files)
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(
            f"{run_dir}: the summary folder cannot be written: {error.strerror or error}; "
            "choose another folder (summary_dir) or make this one writable"
        ) from error


def _claim(run_dir: Path, rank: int, files: FileLayer) -> Path:
    attempts = attempts_of(run_dir)
    taken = [number for number, path in attempts.items() if (path / rank_name(rank)).exists()]
    number = max(taken, default=0) + 1
    while True:
        folder = run_dir / attempt_name(number) / rank_name(rank)
        make_folders(files, folder.parent)
        try:
            files.mkdir(folder)
        except FileExistsError:  # another process of this rank was quicker
            number += 1
            continue
        return folder


def _describe(
    run_dir: Path, tags: Mapping[str, str], clock: Callable[[], float], files: FileLayer
) -> None:
    """Writes run.json, unless an earlier attempt or another rank has."""
    target = run_dir / RUN_NAME
    if target.exists() and target.stat().st_size:  # empty: what a power loss may leave
        return
    identity = uuid.uuid4().hex
    told = {"id": identity, "created": clock(), "format_version": VERSION, "tags": dict(tags)}
    data = json.dumps(told, ensure_ascii=False, indent=1, default=str).encode()
    hidden = run_dir / f".{RUN_NAME}.{identity}"
    try:
        fill(files, hidden, data)
        _place_once(hidden, target, files)
    except OSError:
        hidden.unlink(missing_ok=True)
        raise


def _place_once(hidden: Path, target: Path, files: FileLayer) -> None:
    """Moves a file to a name unless that name is taken: the first of many ranks wins."""
    try:
        if target.exists() and not target.stat().st_size:
            files.unlink(target)
        files.link(hidden, target)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        files.rename(hidden, target)
        return
    files.unlink(hidden)
