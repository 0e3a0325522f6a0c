"""Text files as lines: compressed or not, in any of the encodings that are met, of any size."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from mindpulse.errors import FormatError, StoreError

HEAD_BYTES = 65_536
MAX_LINE_BYTES = 1 << 26
MAX_LOG_LINE_BYTES = 1 << 20
_READ_BYTES = 1 << 18
_GZIP = b"\x1f\x8b"
_LFS = b"version https://git-lfs"
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_LINE_END = re.compile(r"\r\n|\n|\r")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Attributes:
        number: from 1 up.
        text: without its line end and without colour codes.
        whole: it has a line end; the last line of a file that is being written may have none.
    """

    number: int
    text: str
    whole: bool


def open_bytes(path: Path) -> BufferedReader | gzip.GzipFile:
    """The file for reading, unpacked if it is compressed by gzip.

    Raises:
        StoreError: it cannot be opened.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
        return gzip.open(path) if packed else path.open("rb")
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror or error}") from error


def raw_head(path: Path) -> bytes:
    """The first bytes of the file as they stand.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror or error}") from error


def read_head(path: Path) -> bytes:
    """The first bytes of the file, unpacked, as UTF-8 without a mark.

    Raises:
        StoreError: it cannot be read.
        FormatError: it is empty, or only a pointer to a file that Git LFS keeps elsewhere.
    """
    raw = b"".join(_pieces(path, HEAD_BYTES, HEAD_BYTES))
    if not raw:
        raise FormatError(f"{path} is empty: nothing was written yet, or it was not copied whole")
    if raw.startswith(_LFS):
        size = re.search(rb"size (\d{1,19})", raw)
        told = f" to {int(size[1])} bytes" if size else ""
        raise FormatError(
            f"{path} is a Git LFS pointer{told}, not the file itself: fetch it with 'git lfs pull'"
        )
    mark, encoding = _encoding(raw)
    if encoding == "utf-8":
        return raw[len(mark) :]
    return raw[len(mark) :].decode(encoding, "replace").encode()


def read_text(path: Path) -> str:
    """The whole file as text; bytes that are no text become the replacement character.

    Raises:
        StoreError, FormatError: as `read_head`.
    """
    raw = b"".join(_pieces(path, _READ_BYTES))
    mark, encoding = _encoding(raw)
    return raw[len(mark) :].decode(encoding, "replace")


def lines(path: Path, longest: int = MAX_LINE_BYTES) -> Iterator[Line]:
    """The lines in order; a carriage return ends one too, as progress bars write it.

    Args:
        longest: a line of more characters is none: it is left out.

    Raises:
        StoreError, FormatError: as `read_head`.
    """
    for number, (text, whole) in enumerate(_split(path, longest), 1):
        if text is not None:
            yield Line(number, _COLOUR.sub("", text) if "\x1b" in text else text, whole)


def _split(path: Path, longest: int) -> Iterator[tuple[str | None, bool]]:
    """Each line and whether it has an end; None for one that is too long."""
    parts: list[str] = []
    size = 0
    for piece in _texts(path):
        first, *others = _LINE_END.split(piece)
        size += len(first)
        if size <= longest:
            parts.append(first)
        if not others:
            continue
        yield "".join(parts) if size <= longest else None, True
        *between, last = others
        for text in between:
            yield text if len(text) <= longest else None, True
        parts, size = [last], len(last)
    if size and size <= longest:
        yield "".join(parts), False


def _texts(path: Path) -> Iterator[str]:
    """The file as text in pieces; no piece begins between the two characters of a line end."""
    decoder: codecs.IncrementalDecoder | None = None
    held = ""
    for piece in _pieces(path, _READ_BYTES):
        if decoder is None:
            mark, encoding = _encoding(piece)
            decoder = codecs.getincrementaldecoder(encoding)("replace")
            piece = piece[len(mark) :]
        text = held + decoder.decode(piece)
        held = "\r" if text.endswith("\r") else ""
        yield text[: len(text) - len(held)]
    if held:
        yield held


def _pieces(path: Path, size: int, limit: int | None = None) -> Iterator[bytes]:
    read = 0
    with open_bytes(path) as file:
        while limit is None or read < limit:
            try:
                piece = file.read1(size)
            except EOFError:  # a compressed file that is still being written
                return
            except (OSError, zlib.error) as error:
                raise FormatError(f"{path}: cannot be unpacked: {error}; copy it again") from error
            if not piece:
                return
            read += len(piece)
            yield piece


def _encoding(start: bytes) -> tuple[bytes, str]:
    """The mark at the beginning of a text and what it says; UTF-8 without one.

    UTF-16 without a mark shows by its zero bytes.
    """
    for mark, encoding in _MARKS.items():
        if start.startswith(mark):
            return mark, encoding
    probe = start[:200]
    if len(probe) >= 4 and probe[1::2].count(0) == len(probe) // 2 and 0 not in probe[::2]:
        return b"", "utf-16-le"
    if len(probe) >= 4 and probe[::2].count(0) == (len(probe) + 1) // 2 and 0 not in probe[1::2]:
        return b"", "utf-16-be"
    return b"", "utf-8"


def shown(head: bytes) -> str:
    """The first bytes as a message quotes them.

    Example:
        >>> shown(b"PK" + bytes([3, 4]))
        "b'PK\\\\x03\\\\x04'"
    """
    return repr(head[:40])


def is_binary(head: bytes) -> bool:
    """Whether the bytes are no text: zero bytes, or mostly not UTF-8."""
    if b"\0" in head:
        return True
    text = head.decode("utf-8", "replace")
    odd = sum(char == "\ufffd" or (char < " " and char not in "\t\n\r\x0c\x1b") for char in text)
    return odd > 0.1 * len(text)
