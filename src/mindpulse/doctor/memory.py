"""Out of memory: really full, in pieces, or taken by another process?"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mindpulse.ascend.memory_block import is_memory_block
from mindpulse.doctor.memory_blocks import check_blocks
from mindpulse.doctor.memory_logs import check_log
from mindpulse.doctor.memory_run import check_run, is_run
from mindpulse.doctor.memory_settings import check_allocator
from mindpulse.doctor.result import Result
from mindpulse.errors import StoreError, UsageError

MAX_FILES = 200  # of a folder that are looked at
MAX_ALIKE = 3  # findings of one kind out of a folder: the ranks of a training fail alike
LOGS = (".log", ".txt", ".out", ".err")


def check_memory(paths: Sequence[Path], environ: Mapping[str, str] = os.environ) -> list[Result]:
    """What logs, `memory_block.csv` and run folders say about the device's memory.

    Args:
        paths: log files, memory_block.csv files, run folders, or folders that hold such.
        environ: the allocator's settings are read from it.

    Raises:
        UsageError: a path does not exist.
    """
    found: list[Result] = []
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path} does not exist; give a log, a memory_block.csv or a run")
        found += _check(path, environ)
    fragmented = any("fragmented" in result.finding for result in found)
    return found + check_allocator(environ, fragmented)


def _check(path: Path, environ: Mapping[str, str]) -> list[Result]:
    try:
        if not path.is_dir():
            return check_blocks(path) if is_memory_block(path) else check_log(path, environ)
        if is_run(path):
            return check_run(path)
        return _check_folder(path, environ)
    except StoreError as error:
        values = {"path": path, "reason": error}
        return [Result("memory.files", "unknown", "memory_unreadable", values)]


def _check_folder(path: Path, environ: Mapping[str, str]) -> list[Result]:
    """What lies in a folder of logs; files that say nothing are left out, and so are repeats."""
    found: list[Result] = []
    alike: Counter[str] = Counter()
    for file in _files(path):
        for result in _check(file, environ):
            alike[result.finding] += 1
            if result.finding != "memory_nothing" and alike[result.finding] <= MAX_ALIKE:
                found.append(result)
    if found:
        return found
    return [Result("memory.log", "unknown", "memory_nothing", {"path": path})]


def _files(folder: Path) -> Iterator[Path]:
    count = 0
    for place, _, names in os.walk(folder):
        for name in sorted(names):
            file = Path(place) / name
            if file.suffix in LOGS or (file.suffix == ".csv" and is_memory_block(file)):
                yield file
                count += 1
            if count >= MAX_FILES:
                return
