"""What one event file holds: found in one pass that checks every sum, and kept."""

from __future__ import annotations

import os
from collections import Counter

from mindpulse.errors import FormatError, StoreError
from mindpulse.interop.events.columns import Found, found_in
from mindpulse.interop.events.decode import ImagePlace, image, tensor, texts
from mindpulse.interop.events.entries import ImageEntry, Key, TagInfo, Text
from mindpulse.interop.events.histogram import histogram
from mindpulse.interop.events.names import EventFile
from mindpulse.interop.events.scan import Scanner
from mindpulse.interop.events.shapes import Shapes
from mindpulse.interop.events.tensors import HISTOGRAM, IMAGE, OTHER, SCALAR, TENSOR, TEXT, Slot
from mindpulse.interop.events.values import Dialect
from mindpulse.interop.events.window import Single, Window

MAX_TEXTS = 10_000
MAX_TEXT = 1 << 16
_MAX_ODD = 20
MARK_BYTES = 1 << 22
# Says by which program the file was written, and no more.
_WRITER = "source_metadata"
_LFS = b"version https://git-lfs"


class FileIndex:
    """What one event file holds.

    Attributes:
        file: its name and what that says.
        dialect: whose it is, as its first record says.
        tags: what is under each (tag, kind).
        records: whole records.
        damaged: offsets of those that are not.
        size, end: bytes of the file when it was read; where its last whole record ends.
        lost_bytes: bytes at the end in which no record can be found.
        texts, images: in the order of the file.
        skipped: how many records of each kind that is no series.
        odd: what else there is to say, at most a few of each.
        first_wall_time: of the first event, None without one.
        marks: places where a record begins, some MiB apart.
        stamp: inode, size and time of change of the file that was read.
    """

    def __init__(self, file: EventFile) -> None:
        self.file = file
        self.stamp = (-1, -1, -1)
        self._clear()

    def _clear(self) -> None:
        self.dialect, self.shapes = Dialect(self.file.dialect), Shapes()
        self.tags: dict[Key, TagInfo] = {}
        self.records = self.size = self.end = self.lost_bytes = 0
        self.damaged: list[int] = []
        self.texts: list[Text] = []
        self.images: list[ImageEntry] = []
        self.skipped: Counter[str] = Counter()
        self.odd: list[str] = []
        self.first_wall_time: float | None = None
        self.marks: list[int] = [0]

    @property
    def problem(self) -> str:
        """Why nothing can be read of this file, "" if something can or it is empty."""
        if self.records or self.damaged or not self.size:
            return ""
        with open(self.file.path, "rb") as file:
            start = file.read(64)
        if start.startswith(_LFS):
            return "a Git LFS pointer, not the file itself; get it with `git lfs pull`"
        if self.lost_bytes:
            return f"no event file: it begins with {start[:16]!r}, not with a record"
        return ""

    def update(self) -> FileIndex:
        """Reads what was added since the last call; a replaced file is read from its beginning.

        Raises:
            StoreError: the file cannot be read.
        """
        try:
            with open(self.file.path, "rb", buffering=0) as file:
                status = os.fstat(file.fileno())
                stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
                if stamp == self.stamp:
                    return self
                if stamp[0] != self.stamp[0] or stamp[1] <= self.size or self.lost_bytes:
                    self._clear()
                self.size = status.st_size
                scanner = Scanner(file, self.size, self.dialect, self.shapes, start=self.end)
                for window in scanner.windows():
                    self._add(window)
                self.end, self.lost_bytes = scanner.at, scanner.lost_bytes
                self.stamp = stamp
        except OSError as error:
            raise StoreError(f"{self.file.path}: cannot be read: {error.strerror}") from error
        return self

    def _add(self, window: Window) -> None:
        self.records += window.records
        self.damaged += window.damaged
        self.odd += window.odd[: max(0, _MAX_ODD - len(self.odd))]
        found = found_in(window)
        for key, place in found.items():
            self._add_columns(key, place)
        for single in sorted(window.singles, key=lambda single: single.offset):
            self._add_single(single)
        if window.end - self.marks[-1] >= MARK_BYTES:
            self.marks.append(window.end)
        self._note_time(window)

    def _note_time(self, window: Window) -> None:
        if self.first_wall_time is None:
            times = [(g.offsets[0], g.wall_times()[0]) for g in window.groups if len(g)]
            times += [(s.offset, s.time()[1]) for s in window.singles]
            self.first_wall_time = float(min(times)[1]) if times else None

    def _add_columns(self, key: Key, found: Found) -> None:
        for group, slot in found.groups:
            if len(group):
                info = self.tags.setdefault(key, TagInfo())
                info.add(len(group), group.first_step(), slot.dtype, slot.shape)
                info.meet(int(group.offsets[0]), len(group))

    def _add_single(self, single: Single) -> None:
        step, wall_time = single.time()
        if single.event.skipped not in ("", _WRITER):
            self.skipped[single.event.skipped] += 1
        for slot in single.event.slots:
            try:
                self._add_slot(single, slot, step, wall_time)
            except FormatError as error:
                self._say(f"{slot.tag!r} at byte {single.offset}: {error}")

    def _add_slot(self, single: Single, slot: Slot, step: int, wall_time: float) -> None:
        if slot.kind in (SCALAR, TENSOR):
            if not slot.dtype:
                tensor(self.dialect.name, single.data, slot)  # raises if it cannot be decoded
            info = self.tags.setdefault((slot.tag, slot.kind), TagInfo())
            info.add(1, step, slot.dtype or "<f8", slot.shape)
            info.meet(single.offset, 1)
        elif slot.kind == HISTOGRAM:
            found = histogram(self.dialect.name, single.data, slot)
            info = self.tags.setdefault((slot.tag, HISTOGRAM), TagInfo())
            info.add(1, step, "<f8", (len(found.counts),))
            info.statistics = info.statistics or tuple(found.statistics)
        elif slot.kind == TEXT and len(self.texts) < MAX_TEXTS:
            told = "\n".join(texts(single.data, slot))[:MAX_TEXT]
            self.texts.append(Text(slot.tag, step, wall_time, told))
        elif slot.kind == IMAGE:
            self._add_image(single, slot, step, wall_time)
        elif slot.kind != OTHER:
            self.skipped[slot.kind] += 1

    def _add_image(self, single: Single, slot: Slot, step: int, wall_time: float) -> None:
        place = image(single.data, slot)
        if place is not None:
            start, end = single.offset + place.start, single.offset + place.end
            there = ImagePlace(place.height, place.width, start, end)
            self.images.append(ImageEntry(slot.tag, step, wall_time, there))

    def _say(self, text: str) -> None:
        if len(self.odd) < _MAX_ODD:
            self.odd.append(text)
