"""A copy of a run for TensorBoard or MindInsight, written while the run is recorded.

The recorder hands over what it takes, in its own thread, and asks for a flush after each of its
own. What goes wrong here is raised to the recorder, which counts and notes it; our own files
know nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from mindpulse.errors import StoreError, UsageError
from mindpulse.interop.events.values import MINDSPORE, TENSORBOARD
from mindpulse.interop.events.writer import EventWriter
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.entries import Block, Entry, Scalars, Told, columns
from mindpulse.store.files import FileLayer
from mindpulse.store.folder import rank_name

MIRRORS = (TENSORBOARD, MINDSPORE)
_NEVER = 1 << 62


class Mirror:
    """Writes `<run>/tensorboard/` or `<run>/mindspore/`; ranks above 0 in `rank-0001/` there.

    Args:
        capacity_bytes: memory for what could not be written; beyond it all of it is dropped.
        clock: the time in seconds since the epoch.
        files: the file system.

    Raises:
        UsageError: the dialect is not known.
    """

    def __init__(
        self,
        run_dir: Path,
        dialect: str,
        rank: int,
        *,
        capacity_bytes: int,
        clock: Callable[[], float],
        files: FileLayer,
    ) -> None:
        if dialect not in MIRRORS:
            raise UsageError(f"mirror {dialect!r}: use one of {', '.join(MIRRORS)}")
        folder = run_dir / dialect
        self._capacity_bytes = capacity_bytes
        self._writer = EventWriter(
            folder / rank_name(rank) if rank else folder,
            dialect,
            rank=rank,
            restarts=True,
            clock=clock,
            files=files,
            flush_bytes=_NEVER,
        )

    def take(self, entries: Iterable[Entry]) -> None:
        """Keeps entries until the next flush. What the recorder refuses is left out here too.

        Raises:
            StoreError: too much waits and was dropped.
        """
        for kind, group in groupby(entries, type):
            if kind is Scalars:
                self._take_scalars([e for e in group if isinstance(e, Scalars)])
            else:
                for entry in group:
                    self._take_one(entry)
        if self._writer.pending_bytes > self._capacity_bytes:
            self._make_room()

    def _make_room(self) -> None:
        try:
            self._writer.flush()
        except StoreError as error:
            self._writer.drop()
            raise StoreError(f"{error}; too much waited and is lost here") from error

    def flush(self) -> None:
        """Hands everything to the operating system.

        Raises:
            StoreError: it would not take all; what is left is tried again at the next flush.
        """
        self._writer.flush()

    def _take_scalars(self, entries: list[Scalars]) -> None:
        """The numbers of a step go into one event."""
        for tags, group in groupby(entries, lambda entry: tuple(entry.values)):
            same = list(group)
            found = [(tag, rows) for tag, rows in columns(tags, same) if isinstance(rows, Rows)]
            if len(found) == len(tags) and all(len(rows) == len(same) for _, rows in found):
                self._write_table(found)
            else:
                for tag, rows in found:
                    self._write(SeriesSpec(tag), rows)

    def _write_table(self, found: list[tuple[str, Rows]]) -> None:
        good = [(tag, rows) for tag, rows in found if isinstance(tag, str) and tag]
        if good:
            first = good[0][1]
            values = np.concatenate([rows.values for _, rows in good], axis=1)
            tags = [tag for tag, _ in good]
            self._writer.write_scalars(tags, Rows(first.steps, first.wall_times, values))

    def _take_one(self, entry: Entry) -> None:
        if isinstance(entry, Block) and _is_block(entry.spec, entry.rows):
            self._write(entry.spec, entry.rows)
        elif isinstance(entry, Told):
            self._take_note(entry.note)

    def _write(self, spec: SeriesSpec, rows: Rows) -> None:
        self._writer.write(spec, rows)

    def _take_note(self, note: dict[str, Any]) -> None:
        step = note.get("step")
        if note.get("kind") == "start" and isinstance(step, int):
            self._writer.restart(step)
        elif note.get("kind") == "tag":
            key, told = str(note.get("key")), str(note.get("text"))
            self._writer.write_text(key, 0, float(note["wall_time"]), told)


def _is_block(spec: object, rows: object) -> bool:
    """Whether the recorder's own writer takes it."""
    if not isinstance(spec, SeriesSpec) or not isinstance(rows, Rows):
        return False
    arrays = (rows.steps, rows.wall_times, rows.values)
    if not all(isinstance(array, np.ndarray) for array in arrays):
        return False
    shapes = {(len(rows.steps), spec.width), (len(rows.wall_times), spec.width)}
    return shapes == {rows.values.shape} and rows.values.dtype.kind in "fiub"
