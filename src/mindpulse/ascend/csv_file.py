"""A CSV file as Ascend's tools, and the people who opened it in a spreadsheet, leave it.

Rows are read one by one, so a file may have any size. What cannot be trusted is counted and quoted,
and is not a value.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from mindpulse.errors import FormatError, StoreError

HEAD_BYTES = 4096
MAX_FIELD = 1 << 24
LARGE = 1e12  # from here on digits can have been lost
MOST_PROBLEMS = 20
NOTHING = frozenset({"", "-", "--", "n/a", "na", "nan", "null", "none"})
DELIMITERS = ",;\t"
_LFS = b"version https://git-lfs"
_ENCODINGS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# A spreadsheet shows long numbers with six digits, and saves what it shows.
_DIGITS_LOST = re.compile(r"[+-]?\d(\.\d{1,6})?[eE]\+?(1[2-9]|[2-9]\d)")


@dataclass(slots=True)
class Trouble:
    """What is wrong with a file.

    Attributes:
        damaged: rows whose number of fields is not that of the header.
        ruined: cells that should hold a number and do not, or have lost digits.
        told: sentences about the first of them, with their lines.
    """

    damaged: int = 0
    ruined: int = 0
    told: list[str] = field(default_factory=list)

    def tell(self, sentence: str) -> None:
        """Keeps a sentence, if there are not too many already."""
        if len(self.told) < MOST_PROBLEMS:
            self.told.append(sentence)


class CsvFile:
    """A file whose first line names its columns.

    Attributes:
        header: the names as they are written, without blanks around them.
        trouble: what was wrong with the rows that were read so far.
        rows: how many rows there were, damaged ones included.
        on_row: is shown every row that is handed out.

    Raises:
        StoreError: it cannot be read.
        FormatError: it is empty, binary, or a pointer of Git LFS.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trouble = Trouble()
        self.rows = 0
        self.on_row: Callable[[list[str]], object] = len
        self._encoding = _encoding(path, head_of(path))
        first = next((line for line in self._lines() if line.strip()), "")
        self._delimiter = max(DELIMITERS, key=first.count)
        try:
            names = next(filter(None, csv.reader(self._lines(), delimiter=self._delimiter)), [])
        except csv.Error as error:
            raise FormatError(f"{path}: the first line names no column: {error}") from error
        self.header = [name.strip() for name in names]
        while self.header and not self.header[-1]:  # some tools end each line with a comma
            self.header.pop()
        if not self.header:
            raise FormatError(f"{path}: the first line names no column: {first[:80]!r}")

    def __iter__(self) -> Iterator[list[str]]:
        """The rows. Of a short one the fields that it has; one that is too long is left out."""
        csv.field_size_limit(MAX_FIELD)
        reader = csv.reader(self._lines(), delimiter=self._delimiter)
        width = len(self.header)
        try:
            next(filter(None, reader), None)
            for row in reader:
                if not row or row == [""]:
                    continue
                self.rows += 1
                if len(row) != width and not self._fits(row, width, reader.line_num):
                    continue
                self.on_row(row)
                yield row
        except (csv.Error, UnicodeError) as error:
            self.trouble.damaged += 1
            self.trouble.tell(f"line {reader.line_num}: {error}; the rest is not read")

    def number(self, text: str) -> float:
        """A cell as a number; NaN where there is none, and where it cannot be trusted."""
        text = text.strip()
        try:
            value = float(text) if text[-1:].isdigit() or text[-1:] == "." else self._odd(text)
        except ValueError:
            return self._odd(text)
        if math.isinf(value) or (abs(value) >= LARGE and digits_lost(text)):
            self._ruin(text, "too large, or has lost digits")
            return math.nan
        return value

    def share(self, text: str) -> float:
        """A cell as a share from 0 to 1; one beyond is in another unit, and does not count."""
        value = self.number(text)
        if value < 0 or value > 1:
            self._ruin(text, "no share from 0 to 1")
            return math.nan
        return value

    def time_ns(self, text: str, ns_per_unit: int) -> int | None:
        """A time in whole nanoseconds: floats have too few digits for times since the epoch."""
        text = text.strip()
        whole, _, part = text.partition(".")
        if whole.isdecimal() and (not part or part.isdecimal()):
            digits = len(str(ns_per_unit)) - 1
            return int(whole) * ns_per_unit + (int(part[:digits].ljust(digits, "0") or 0))
        if text.lower() not in NOTHING:
            self._ruin(text, "no time, or one that has lost digits")
        return None

    def _odd(self, text: str) -> float:
        if text.lower() in NOTHING:
            return math.nan
        bare = text.strip("\"' \t")
        if _NUMBER.fullmatch(bare):
            return float(bare)
        self._ruin(text, "no number")
        return math.nan

    def _ruin(self, text: str, why: str) -> None:
        self.trouble.ruined += 1
        self.trouble.tell(f"row {self.rows}: {text[:40]!r} is {why}; it does not count")

    def _fits(self, row: list[str], width: int, line: int) -> bool:
        """Whether the row can be used in part; tells what is wrong with it."""
        while len(row) > width and not row[-1].strip():
            row.pop()
        if len(row) == width:
            return True
        self.trouble.damaged += 1
        what = "those that it has count" if len(row) < width else "it is left out"
        self.trouble.tell(f"line {line}: {len(row)} fields instead of {width}; {what}")
        return len(row) < width

    def _lines(self) -> Iterator[str]:
        try:
            with self.path.open(encoding=self._encoding, errors="replace", newline="") as file:
                yield from _without_zeros(file)
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror or error}") from error


def digits_lost(text: str) -> bool:
    """Whether a number was saved by a spreadsheet in the short form that it shows.

    Example:
        >>> digits_lost("1.73641E+15"), digits_lost("1736405443881410.320"), digits_lost("2.5")
        (True, False, False)
    """
    return _DIGITS_LOST.fullmatch(text.strip()) is not None


def head_of(path: Path) -> bytes:
    """The beginning of a file.

    Raises:
        StoreError: it cannot be read.
        FormatError: it is empty or a pointer of Git LFS.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from error
    if not head.strip():
        raise FormatError(f"{path}: empty file")
    if head.startswith(_LFS):
        raise FormatError(f"{path}: a pointer of Git LFS, not the file; run  git lfs pull")
    return head


def _encoding(path: Path, head: bytes) -> str:
    for mark, name in _ENCODINGS:
        if head.startswith(mark):
            return name
    if head.count(0) > len(head) // 4:
        raise FormatError(f"{path}: binary data, it begins with {head[:16]!r}")
    return "utf-8"


def _without_zeros(file: TextIO) -> Iterator[str]:
    for line in file:
        yield line.replace("\0", "") if "\0" in line else line
