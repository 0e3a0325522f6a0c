"""Any run written as a run folder of ours: attempts, ranks, notes and names kept."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from mindpulse.errors import StoreError, UsageError
from mindpulse.store.files import OS_FILES, make_folders
from mindpulse.store.folder import SNAPSHOTS, attempt_name, create_attempt, rank_name
from mindpulse.store.run import Run
from mindpulse.store.writer import RankWriter

FLUSH_BYTES = 16 << 20


def write_run(run: Run, target: Path, tags: Mapping[str, str], count: Callable[[int], None]) -> int:
    """Writes a run into a folder that does not exist yet; returns the number of rows.

    It is written under a hidden name and gets its own when it is complete.

    Args:
        tags: for run.json.
        count: is told the rows as they are written.

    Raises:
        UsageError: the folder exists.
        StoreError: it cannot be written.
    """
    _check_free(target)
    hidden = target.parent / f".{target.name}.import-{os.getpid()}"
    try:
        rows = _write(run, hidden, tags, count)
        _check_free(target)
        hidden.rename(target)
    except OSError as error:
        if isinstance(error, StoreError):
            raise StoreError(str(error).replace(str(hidden), str(target))) from error
        reason = error.strerror or str(error)
        raise StoreError(f"{target}: {reason}; give another --output-dir") from error
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    return rows


def _check_free(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise UsageError(
            f"{target} exists already and is left as it is; give another --output-dir, or remove it"
        )


def _write(run: Run, folder: Path, tags: Mapping[str, str], count: Callable[[int], None]) -> int:
    created = time.time() if math.isnan(run.created) else run.created
    first = create_attempt(folder, run.ranks[0], tags, clock=lambda: created)
    rows = 0
    for attempt in run.attempts:
        for rank in run.ranks:
            place = folder / attempt_name(attempt) / rank_name(rank)
            rows += _write_rank(run, RankWriter(place, rank, attempt), rank, attempt, count)
    if not any(first.iterdir()):
        first.rmdir()
    _copy_snapshots(run, folder)
    return rows


def _write_rank(
    run: Run, writer: RankWriter, rank: int, attempt: int, count: Callable[[int], None]
) -> int:
    written = 0
    for tag in run.specs():
        with suppress(UsageError):  # this rank or attempt does not have the series
            for block in run.blocks(tag, rank, attempt):
                writer.append(block.spec, block.rows)
                if writer.pending_bytes > FLUSH_BYTES:
                    writer.flush()
                written += len(block)
                count(len(block))
    for note in run.notes(attempt):
        if note.rank == rank:
            told = {"kind": note.kind, "step": note.step, "wall_time": note.wall_time}
            writer.note({**note.data, **told})
    writer.close()
    return written


def _copy_snapshots(run: Run, folder: Path) -> None:
    place = folder / attempt_name(run.attempts[0]) / rank_name(run.ranks[0]) / SNAPSHOTS
    for path in run.snapshots():
        make_folders(OS_FILES, place)
        shutil.copyfile(path, place / path.name)
