"""Making `run.json` anew, out of what is left of it and what the ranks say."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

from mindpulse.errors import StoreError
from mindpulse.store.aside import keep_aside
from mindpulse.store.files import FileLayer, write_whole
from mindpulse.store.folder import RUN_NAME, attempts_of, ranks_of
from mindpulse.store.format import VERSION
from mindpulse.store.notes import NOTES_NAME
from mindpulse.store.part_file import read_header
from mindpulse.store.reader import NotesTail, series_files

_ID = re.compile(rb'"id"\s*:\s*"([0-9a-f]{32})"')


def description_problem(run_dir: Path) -> str:
    """What is wrong with the description of a run, "" if nothing."""
    path = run_dir / RUN_NAME
    if not attempts_of(run_dir) or _is_object(_bytes(path)):
        return ""
    state = "damaged" if _bytes(path) else ("empty" if path.exists() else "missing")
    return f"the description of the run is {state}"


def describe_again(run_dir: Path, files: FileLayer) -> str:
    """Writes the description anew; the name under which the old one is kept, "" if it is gone.

    Raises:
        StoreError: it cannot be written.
    """
    path = run_dir / RUN_NAME
    old = _bytes(path)
    told = json.dumps(_told_again(run_dir, old), ensure_ascii=False, indent=1).encode()
    try:
        kept_as = keep_aside(path, files).name if old else ""
        write_whole(files, path, told)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}; it is as it was, try again") from error
    return kept_as


def _told_again(run_dir: Path, old: bytes) -> dict[str, object]:
    identity = _ID.search(old)
    begun = min(_times(run_dir), default=run_dir.stat().st_mtime)
    return {
        "id": identity[1].decode() if identity else uuid.uuid4().hex,
        "created": begun,
        "format_version": VERSION,
        "tags": _fingerprint(run_dir),
    }


def _fingerprint(run_dir: Path) -> dict[str, str]:
    """Of the first attempt that told one in a note."""
    for attempt, attempt_dir in attempts_of(run_dir).items():
        for rank, folder in ranks_of(attempt_dir).items():
            for note in NotesTail(folder / NOTES_NAME, rank, attempt).poll():
                tags = note.data.get("tags")
                if note.kind == "fingerprint" and isinstance(tags, dict):
                    return {str(key): str(value) for key, value in tags.items()}
    return {}


def _times(run_dir: Path) -> Iterator[float]:
    """When the files of the run were begun."""
    for attempt_dir in attempts_of(run_dir).values():
        for folder in ranks_of(attempt_dir).values():
            for path, _ in series_files(folder):
                header = read_header(path)[0] if path.is_file() else None
                if header is not None and header.start_time > 0:
                    yield header.start_time


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error


def _is_object(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False
