"""What there is to say about an event file as a file, and the texts in it."""

from __future__ import annotations

from mindpulse.interop.events.index import FileIndex
from mindpulse.interop.events.sources import too_wide
from mindpulse.store.check import FileReport
from mindpulse.store.notes import Note

TEXT_NOTE = "text"


def report_of(index: FileIndex) -> FileReport:
    """A report of one event file; its rows are its whole records."""
    damaged = len(index.damaged) + bool(index.lost_bytes and not index.problem)
    torn = 0 if index.lost_bytes else index.size - index.end
    told = [*_wrong(index, damaged), *_harmless(index, torn)]
    valid = not index.problem and not damaged
    return FileReport(index.file.path, "", index.records, damaged, torn, valid, "; ".join(told))


def _wrong(index: FileIndex, damaged: int) -> list[str]:
    if index.problem:
        return [index.problem]
    found = []
    if damaged:
        found.append(f"{damaged} of {index.records + damaged} records are damaged and left out")
    if index.lost_bytes:
        found.append(f"no record can be found in the last {index.lost_bytes} bytes")
    return found


def _harmless(index: FileIndex, torn: int) -> list[str]:
    found = [] if not torn else [f"the last {torn} bytes are part of a record"]
    if not index.size:
        found.append("empty")
    elif not index.tags and not index.problem:
        found.append("no series in it")
    found += [f"{count} x {name} passed over" for name, count in sorted(index.skipped.items())]
    found += [
        f"{name!r} is too wide, or of too many shapes, to be a series" for name in too_wide([index])
    ]
    return found + index.odd


def texts_of(index: FileIndex, rank: int, attempt: int) -> list[Note]:
    """The texts of a file as notes."""
    prefix = f"{index.file.prefix}/" if index.file.prefix else ""
    return [
        Note(
            rank,
            attempt,
            TEXT_NOTE,
            text.step,
            text.wall_time,
            {"tag": prefix + text.tag.decode("utf-8", "backslashreplace"), "text": text.text},
        )
        for text in index.texts
    ]
