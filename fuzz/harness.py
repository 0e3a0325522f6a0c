"""What the targets share: a folder for the bytes that are tried, and a run with real files."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from mindpulse.errors import MindPulseError

REFUSED = suppress(MindPulseError)


@lru_cache(maxsize=1)
def folder() -> Path:
    """A folder in memory where there is one; it goes with the process."""
    memory = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(prefix="mindpulse-fuzz-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def file_with(data: bytes, *parts: str) -> Path:
    """A file in that folder that holds the bytes."""
    path = folder().joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@lru_cache(maxsize=1)
def example_run() -> Path:
    """A small run as a training writes it: two series, notes, two attempts."""
    from mindpulse.testing import write_run

    run = folder() / "example"
    for first in (1, 4):
        write_run(run, first_step=first, train_loss=[3.0, 2.0, 1.5, 1.25], attn_focus=[[0.5, 0.25]])
    return run


def example_files(pattern: str) -> list[bytes]:
    """The bytes of files of that run."""
    return [path.read_bytes() for path in sorted(example_run().rglob(pattern))]
