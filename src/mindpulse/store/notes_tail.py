"""The notes of a rank, read while they are written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mindpulse.errors import StoreError
from mindpulse.store.notes import Note, decode_note

_REMEMBERED_LINES = 256
_MARK_BYTES = 64


class NotesTail:
    """Reads the notes of one rank that are new since the last call."""

    def __init__(self, path: Path, rank: int, attempt: int) -> None:
        self._path, self._rank, self._attempt = path, rank, attempt
        self._offset = 0
        # The last bytes that were read: if they are not there, the file is another one.
        self._mark = b""
        self._recent: dict[bytes, None] = {}

    def poll(self) -> list[Note]:
        """New notes; a line that is not complete yet is left for later, a bad one skipped.

        Raises:
            StoreError: the file cannot be read, for another reason than that it is missing.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset - len(self._mark))
                if file.read(len(self._mark)) != self._mark:  # another file, or a shorter one
                    self._offset, self._mark = 0, b""
                    file.seek(0)
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"{self._path}: cannot be read: {error.strerror}") from error
        self._offset += sum(len(line) + 1 for line in lines[:-1])
        if len(lines) > 1:
            self._mark = (lines[-2] + b"\n")[-_MARK_BYTES:]
        notes = (decode_note(line, self._rank, self._attempt) for line in self._new(lines[:-1]))
        return [note for note in notes if note is not None]

    def _new(self, lines: list[bytes]) -> Iterator[bytes]:
        """Without those that a writer repeated because it could not tell if they were saved."""
        for line in lines:
            if line in self._recent:
                continue
            yield line
            self._recent[line] = None
            if len(self._recent) > _REMEMBERED_LINES:
                del self._recent[next(iter(self._recent))]
