"""One series of one rank: rows wait here and go into its current file.

A file is opened for each flush and closed again: a training with hundreds of tags then holds
no descriptors, a network file system shows other machines what was written, and a file that
was deleted, moved, cut or written by somebody else is noticed at the next flush.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from mindpulse.errors import UsageError
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.backlog import Unsynced, Waiting
from mindpulse.store.codec import RowCodec
from mindpulse.store.crc import SUM_BYTES
from mindpulse.store.files import FileLayer, make_folders, with_file
from mindpulse.store.format import LENGTH_OFFSET, PAYLOAD_OFFSET, encode_header
from mindpulse.store.index_writer import IndexWriter
from mindpulse.store.names import file_name

# Rows are encoded in pieces of this size, so a full disk costs one piece and no more per try.
WRITE_BYTES = 1 << 20
MAX_FILE_BYTES = 1 << 30


@dataclass(slots=True)
class Place:
    """What all series of a rank share."""

    directory: Path
    rank: int
    attempt: int
    clock: Callable[[], float]
    files: FileLayer
    max_file_bytes: int
    tell: Callable[[str, Path, str], None]
    # Folders with names that may not be on the disk yet.
    unsynced_folders: set[Path] = field(default_factory=set)


@dataclass(slots=True)
class OpenFile:
    """A file as this writer left it: anything else found later means somebody touched it."""

    path: Path
    number: int
    identity: tuple[int, int]
    header_bytes: int
    size: int
    index: IndexWriter


class SeriesWriter:
    """Appends rows of one series, in order, to one file after another."""

    def __init__(self, spec: SeriesSpec, place: Place, next_part: int = 1) -> None:
        self.spec = spec
        self.next_part = next_part
        self.waiting = Waiting()
        self.rows_written = 0
        self._place = place
        self._codec = RowCodec(spec)
        self._file: OpenFile | None = None
        # A file that was left for the next part: the rows in it may not be on the disk yet.
        self._left: Path | None = None
        self._unsynced = Unsynced()

    def append(self, rows: Rows) -> None:
        """Keeps a block until the next flush.

        Raises:
            UsageError: the values are not numbers of shape (T, W).
        """
        self._check(rows)
        self.waiting.append(rows)

    def flush(self) -> None:
        """Hands all rows to the operating system; what an OSError leaves stays pending."""
        while self.waiting:
            self._settle()
            rows, blocks = self.waiting.front(WRITE_BYTES // self._codec.row_bytes)
            written = self._write_some(rows)
            self.waiting.take(blocks, rows[written:])
            if written:
                self._tell_index()

    def sync(self) -> None:
        """Waits until the rows are on the disk.

        After a failed sync the system may have marked the pages clean without writing them,
        so the same file cannot be trusted: the rows go into a new one at the next flush.

        Raises:
            OSError: the sync failed.
        """
        self._settle()
        if self._unsynced and self._file is not None:
            self._sync_file(self._file.path)

    def _settle(self) -> None:
        """Syncs the file that was left, so that unsynced rows are never in two files."""
        if self._left is not None:
            self._sync_file(self._left)
            self._left = None

    def _sync_file(self, path: Path) -> None:
        try:
            with_file(self._place.files, path, os.O_WRONLY, self._place.files.fdatasync)
        except FileNotFoundError:
            pass  # deleted: the next flush notes it
        except OSError as error:
            self._distrust(path, error)
            raise
        self._unsynced.clear()

    def _distrust(self, path: Path, error: OSError, written: int = 0) -> None:
        reason = f"could not be saved ({error.strerror}); its last rows are repeated"
        self._place.tell("part_begun", path, reason)
        self._file = self._left = None
        self.waiting.repeat(self._unsynced, written)

    def _check(self, rows: Rows) -> None:
        wanted = (len(rows), self.spec.width)
        shapes = (rows.steps.shape, rows.wall_times.shape, rows.values.shape)
        if shapes != (wanted[:1], wanted[:1], wanted) or rows.values.dtype.kind not in "fiub":
            raise UsageError(
                f"{self.spec.tag!r}: steps, wall times and values of shapes {shapes}, type "
                f"{rows.values.dtype}; wanted numbers of shape {wanted}"
            )

    def _write_some(self, rows: Rows) -> int:
        """Writes as many rows as one piece and one file take; how many these were."""
        file = self._current_file()
        room = (self._place.max_file_bytes - file.size) // self._codec.row_bytes
        if room < 1 and file.size > file.header_bytes:
            self._file, self._left = None, file.path
            return 0
        piece = max(1, min(room, WRITE_BYTES // self._codec.row_bytes))
        data = self._codec.encode(rows[:piece])

        def put(fd: int) -> int:
            return self._put(fd, file, data)

        before = file.size
        try:
            count = with_file(self._place.files, file.path, os.O_WRONLY, put)
        except OSError as error:
            if file.size != before:  # written, then refused when closing, as NFS may do
                written = (file.size - before) // self._codec.row_bytes
                self.rows_written += self.waiting.never_written(written)
                self._distrust(file.path, error, written)
            raise
        if count:
            self._unsynced.append(rows[:count])
        self.rows_written += self.waiting.never_written(count)
        return count

    def _tell_index(self) -> None:
        file = self._file
        if file is None:
            return
        rows = (file.size - file.header_bytes) // self._codec.row_bytes
        problem = file.index.grew(rows)
        if problem:
            self._place.tell("index_given_up", file.path, problem)

    def _put(self, fd: int, file: OpenFile, data: bytes) -> int:
        files = self._place.files
        stat = files.fstat(fd)
        if (stat.st_dev, stat.st_ino) != file.identity or stat.st_size != file.size:
            self._leave("was changed by somebody else; a new part was begun")
            return 0
        whole = written = files.pwrite(fd, data, file.size)
        if written < len(data):
            whole = written // self._codec.row_bytes * self._codec.row_bytes
            self._cut_back(fd, file, whole, written)
            if not whole:  # no progress: the disk is full, though the system does not say so
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file.path))
        file.size += whole
        self._patch_length(fd, file)
        return whole // self._codec.row_bytes

    def _patch_length(self, fd: int, file: OpenFile) -> None:
        length = struct.pack("<I", file.size - PAYLOAD_OFFSET)
        try:
            if self._place.files.pwrite(fd, length, LENGTH_OFFSET) < len(length):
                raise OSError(errno.EIO, "written in part")
        except OSError as error:  # the rows are there: this must not write them twice
            self._leave(f"has an old length ({error.strerror}); a new part was begun")

    def _cut_back(self, fd: int, file: OpenFile, whole: int, written: int) -> None:
        """After a short write no part of a row may stay: the next row would be out of line."""
        if whole == written:
            return
        try:
            self._place.files.ftruncate(fd, file.size + whole)
        except OSError as error:
            self._leave(f"ends in part of a row ({error.strerror}); a new part was begun")

    def _leave(self, reason: str) -> None:
        if self._file is not None:
            self._place.tell("part_begun", self._file.path, reason)
            self._left = self._file.path
        self._file = None

    def _current_file(self) -> OpenFile:
        if self._file is not None and not self._file.path.exists():
            lost = self._file
            self._place.tell("file_missing", lost.path, "deleted or moved away; begun anew")
            self._file, self.next_part = None, lost.number
        if self._file is None:
            self._file = self._begin()
        return self._file

    def _begin(self) -> OpenFile:
        """A new file of the lowest part that is free."""
        files, place = self._place.files, self._place
        make_folders(files, place.directory)
        header = encode_header(self.spec, place.clock(), place.rank, place.attempt)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        while True:
            number = self.next_part
            path = place.directory / file_name(self.spec.tag, number)
            self.next_part += 1
            try:
                fd = files.open(path, flags)
            except FileExistsError:
                continue
            except OSError:
                self.next_part = number
                raise
            place.unsynced_folders.add(place.directory)
            return self._headed(fd, path, number, header)

    def _headed(self, fd: int, path: Path, number: int, header: bytes) -> OpenFile:
        files = self._place.files
        try:
            stat = files.fstat(fd)
            if files.pwrite(fd, header, 0) == len(header):
                identity = (stat.st_dev, stat.st_ino)
                index = IndexWriter(path, len(header), header[-SUM_BYTES:], self.spec, files)
                return OpenFile(path, number, identity, len(header), len(header), index)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        except OSError:
            # Half a header is no file: take it away, so that the part is free again.
            files.unlink(path)
            self.next_part = number
            raise
        finally:
            files.close(fd)
