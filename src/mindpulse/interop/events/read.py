"""The rows of one series out of indexed event files, forwards and from the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mindpulse.errors import StoreError
from mindpulse.interop.events.columns import Source, found_in, rows_of
from mindpulse.interop.events.index import FileIndex
from mindpulse.interop.events.scan import Scanner
from mindpulse.interop.events.window import Window
from mindpulse.series import Rows


@dataclass(frozen=True, slots=True)
class EventImage:
    """An image that was recorded. Its bytes are read when they are asked for, not decoded.

    Attributes:
        height, width: in pixels, as the file says.
        path, start, end: where the encoded bytes (PNG, as a rule) stand.
    """

    step: int
    wall_time: float
    height: int
    width: int
    path: Path
    start: int
    end: int

    def data(self) -> bytes:
        """The encoded bytes."""
        with self.path.open("rb") as file:
            file.seek(self.start)
            return file.read(self.end - self.start)


@dataclass(frozen=True, slots=True)
class Part:
    """What one file holds of a series.

    Attributes:
        index: the file.
        before: the step from which a later file hides it; None for all.
    """

    index: FileIndex
    before: int | None

    def rows(self, source: Source, columns: Sequence[int] | None) -> Iterator[Rows]:
        """The rows, window by window; none of them is empty."""
        yield from self._of(windows_of(self.index), source, columns)

    def backwards(self, source: Source) -> Iterator[Rows]:
        """The rows from the end of the file to its beginning, some MiB at a time."""
        marks = self.index.marks
        ends = [*marks[1:], self.index.end]
        for start, end in list(zip(marks, ends, strict=True))[::-1]:
            pieces = list(self._of(windows_of(self.index, start, end), source, None))
            if pieces:
                yield Rows.concat(pieces)

    def _of(
        self, windows: Iterator[Window], source: Source, columns: Sequence[int] | None
    ) -> Iterator[Rows]:
        wanted = frozenset(source.members or (source.tag,))
        for window in windows:
            found = found_in(window, wanted)
            if found:
                rows = rows_of(source, found, self.index.dialect.name, columns)
                kept = rows if self.before is None else rows[rows.steps < self.before]
                if len(kept):
                    yield kept


def parts_of(
    source: Source, files: Sequence[tuple[int, FileIndex]], attempt: int | str | None
) -> list[Part]:
    """The files that hold a series, in their order.

    Args:
        files: of one rank, with the numbers of their attempts.
        attempt: None hides what a later file says anew; a number takes that file alone.
    """
    key = (source.tag, source.kind)
    found: list[Part] = []
    limit: int | None = None
    for number, index in reversed(files):
        wanted = not isinstance(attempt, int) or attempt == number
        if index.file.prefix != source.prefix or key not in index.tags or not wanted:
            continue
        found.append(Part(index, limit if attempt is None else None))
        first = index.tags[key].first_step
        limit = first if limit is None else min(limit, first)
    return found[::-1]


def last_rows(source: Source, parts: Sequence[Part], limit: int) -> Rows:
    """The last `limit` rows, read from the end."""
    pieces = [Rows.empty(source.spec.width, source.spec.dtype)]
    count = 0
    for part in reversed(parts):
        backwards = part.backwards(source)
        while count < limit and (rows := next(backwards, None)) is not None:
            pieces.append(rows)
            count += len(rows)
    whole = Rows.concat(pieces[::-1])
    return whole[max(0, len(whole) - limit) :]


def windows_of(index: FileIndex, start: int = 0, end: int | None = None) -> Iterator[Window]:
    """The windows of a file whose sums were checked when it was indexed.

    Raises:
        StoreError: the file cannot be read.
    """
    damage = frozenset(index.damaged)
    size = index.end if end is None else end
    try:
        with open(index.file.path, "rb", buffering=0) as file:
            scanner = Scanner(
                file, size, index.dialect, index.shapes, start=start, known_damage=damage
            )
            yield from scanner.windows()
    except OSError as error:
        raise StoreError(f"{index.file.path}: cannot be read: {error.strerror}") from error
