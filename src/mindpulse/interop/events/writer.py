"""Writes event files that TensorBoard or MindInsight reads, out of series."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from mindpulse.errors import StoreError, UsageError
from mindpulse.interop.events.encode import Part, numeric_events
from mindpulse.interop.events.histogram import Histogram
from mindpulse.interop.events.messages import (
    event,
    histogram_value,
    image_value,
    restart_event,
    text_value,
    version_event,
)
from mindpulse.interop.events.names import named, new_name
from mindpulse.interop.events.parts import bars_of, is_histogram, name_in, parts_of, scalar_of
from mindpulse.interop.events.values import MINDSPORE, TENSORBOARD
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.files import OS_FILES, FileLayer, make_folders

DIALECTS = (TENSORBOARD, MINDSPORE)
FLUSH_BYTES = 1 << 20
_MAX_PARTS = 4096
_TAKEN: set[Path] = set()


class EventWriter:
    """Writes one event file into a folder. For one thread.

    A scalar becomes a number; a histogram (plugin "histogram", axis "bin") a histogram; any other
    wide series a number for each column (`attn_focus/layer=0 head=1`), or a tensor when it has
    more than 256 columns.

    Args:
        folder: made if it is missing.
        dialect: "tensorboard" or "mindspore".
        newer: TensorBoard's newer form of numbers and histograms, a tensor: keeps float64, and is
            not known to readers of the older form. MindSpore's numbers are always float32.
        rank: stands in the name of a MindSpore file.
        restarts: tell TensorBoard, if there are event files already, to forget what they say
            from our first step on.
        clock: the time in seconds since the epoch.
        files: the file system; a test passes one that fails.
        flush_bytes: written when so much has gathered.

    Raises:
        UsageError: the dialect is not known.

    Example:
        >>> with EventWriter(folder, "tensorboard") as writer:
        ...     writer.write(SeriesSpec("train_loss"), Rows.one(1, 1.7e9, 2.5))
    """

    def __init__(
        self,
        folder: Path | str,
        dialect: str,
        *,
        newer: bool = False,
        rank: int = 0,
        restarts: bool = False,
        clock: Callable[[], float] = time.time,
        files: FileLayer = OS_FILES,
        flush_bytes: int = FLUSH_BYTES,
    ) -> None:
        if dialect not in DIALECTS:
            raise UsageError(f"event format {dialect!r}: use one of {', '.join(DIALECTS)}")
        self.folder, self.dialect = Path(folder), dialect
        self._newer, self._files, self._flush_bytes = newer, files, flush_bytes
        self._clock, began = clock, clock()
        self.path = _new_path(self.folder, dialect, began, rank)
        self._head = version_event(dialect, began)
        self._pending: list[bytes] = []
        self._pending_bytes = self._end = 0
        self._restarts = restarts and dialect == TENSORBOARD and _holds_events(self.folder)
        self._parts: dict[int, tuple[SeriesSpec, list[Part]]] = {}

    @property
    def pending_bytes(self) -> int:
        """Bytes that are not written yet."""
        return self._pending_bytes

    def write(self, spec: SeriesSpec, rows: Rows) -> None:
        """Takes rows of a series.

        Raises:
            StoreError: they do not fit in memory's share and cannot be written.
        """
        if not len(rows):
            return
        if is_histogram(spec):
            self.write_histograms(spec.tag, rows.steps, rows.wall_times, bars_of(rows))
        else:
            self._numbers(self._parts_of(spec), rows)

    def write_scalars(self, tags: Sequence[str], rows: Rows) -> None:
        """Takes rows whose W values are those of W tags: one event a row."""
        self._numbers(
            [scalar_of(tag, rows.values.dtype, self.dialect, newer=self._newer) for tag in tags],
            rows,
        )

    def write_histograms(
        self,
        tag: str,
        steps: Iterable[int],
        wall_times: Iterable[float],
        histograms: Iterable[Histogram],
    ) -> None:
        """Takes histograms of one tag."""
        for step, wall_time, found in zip(steps, wall_times, histograms, strict=True):
            value = histogram_value(
                self.dialect, name_in(self.dialect, tag), found, newer=self._newer
            )
            self._put(int(step), event(int(step), float(wall_time), value))

    def write_image(
        self,
        tag: str,
        step: int,
        wall_time: float,
        encoded: bytes,
        *,
        height: int,
        width: int,
        channels: int = 3,
    ) -> None:
        """Takes an image that is encoded already (PNG)."""
        value = image_value(name_in(self.dialect, tag), height, width, channels, encoded)
        self._put(step, event(step, wall_time, value))

    def write_text(self, tag: str, step: int, wall_time: float, told: str) -> None:
        """Takes a text; MindSpore's files hold none, there it is left out."""
        if self.dialect == TENSORBOARD:
            self._put(step, event(step, wall_time, text_value(tag, told)))

    def restart(self, step: int) -> None:
        """Says, if asked to (`restarts`) and only once, which step this file begins with."""
        if self._restarts:
            self._restarts = False
            self._append(restart_event(step, self._clock()))

    def flush(self) -> None:
        """Hands everything to the operating system; the file is made with the first value.

        Raises:
            StoreError: it would not take all; what is left is kept and tried again.
        """
        if not self._pending:
            return
        data = b"".join(self._pending)
        try:
            make_folders(self._files, self.folder)
            self._write_out(data)
        except OSError as error:
            self._pending = [data]
            raise StoreError(f"{self.path}: cannot be written: {error.strerror}") from error
        self._pending, self._pending_bytes = [], 0

    def drop(self) -> int:
        """Forgets what is not written yet; how many bytes that were."""
        dropped = self._pending_bytes
        self._pending, self._pending_bytes = [], 0
        return dropped

    def close(self) -> None:
        """Writes what is left.

        Raises:
            StoreError: as `flush`.
        """
        self.flush()

    def __enter__(self) -> EventWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write_out(self, data: bytes) -> None:
        if not self._end:
            data = self._head + data
        fd = self._files.open(self.path, os.O_WRONLY | os.O_CREAT)
        try:
            written = self._files.pwrite(fd, data, self._end)
            if written < len(data):
                # A torn record in the middle of the file would cost a reader all that follows.
                self._files.ftruncate(fd, self._end)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        finally:
            self._files.close(fd)
        self._end += written

    def _numbers(self, parts: list[Part], rows: Rows) -> None:
        if len(rows):
            self.restart(int(rows.steps.min()))
        for block in numeric_events(parts, rows):
            self._append(block)

    def _put(self, step: int, record: bytes) -> None:
        self.restart(step)
        self._append(record)

    def _append(self, data: bytes) -> None:
        self._pending.append(data)
        self._pending_bytes += len(data)
        if self._pending_bytes >= self._flush_bytes:
            self.flush()

    def _parts_of(self, spec: SeriesSpec) -> list[Part]:
        known = self._parts.get(id(spec))
        if known is None or known[0] is not spec:
            if len(self._parts) > _MAX_PARTS:
                self._parts.clear()
            self._parts[id(spec)] = known = (spec, parts_of(spec, self.dialect, newer=self._newer))
        return known[1]


def _new_path(folder: Path, dialect: str, seconds: float, rank: int) -> Path:
    """A file that no writer of this process has, and that is not there yet."""
    number = 0
    while (path := folder / new_name(dialect, seconds, rank, number)) in _TAKEN or path.exists():
        number += 1
    _TAKEN.add(path)
    return path


def _holds_events(folder: Path) -> bool:
    return folder.is_dir() and any(named(path) is not None for path in folder.iterdir())
