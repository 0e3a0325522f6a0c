"""What a file or folder is, and why: by its content, never by its name alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from mindpulse.errors import FormatError, StoreError, UsageError
from mindpulse.interop.found import Found
from mindpulse.interop.logs import (
    deepspeed,
    dllogger,
    galore,
    huggingface_console,
    megatron,
    mindformers,
    step_pairs,
)
from mindpulse.interop.source import (
    MAX_LOG_LINE_BYTES,
    is_binary,
    lines,
    raw_head,
    read_head,
    shown,
)
from mindpulse.interop.tables import csv_files, huggingface, json_files, json_rows, msprobe
from mindpulse.store.format import MAGIC
from mindpulse.store.run import Run


class _Reader(Protocol):
    """What a module of this room that reads one kind of file has."""

    TITLE: str

    def sniff(self, head: bytes, path: Path) -> bool: ...
    def read(self, path: Path) -> Run: ...


# In this order: what is sure comes first.
WHOLE: dict[str, _Reader] = {
    "hugging-face-trainer-state": huggingface,
    "json-curves": json_files,
    "json-rows": json_rows,
    "msprobe-monitor": msprobe,
    "csv": csv_files,
    "step-loss-pairs": step_pairs,
}
# Their first record may stand far behind the beginning.
LOGS: dict[str, _Reader] = {
    "megatron-log": megatron,
    "mindformers-log": mindformers,
    "galore-log": galore,
    "dllogger-log": dllogger,
    "deepspeed-log": deepspeed,
    "hugging-face-console": huggingface_console,
}
EVENTS = "event-files"
EVENTS_TITLE = "event files of TensorBoard or MindSpore"
_SEARCHED_BYTES = 1 << 20


def identify_file(path: Path) -> Found:
    """What a file is.

    Raises:
        StoreError: it cannot be read.
        FormatError: it is nothing that MindPulse reads, or empty, or a pointer of Git LFS; the
            message quotes its beginning.
    """
    from mindpulse.interop.events import run as events_run

    if events_run.sniff(raw_head(path), path):
        why = "its first record has the length and checksums of an event file"
        return Found(path, EVENTS, EVENTS_TITLE, why, lambda: events_run.EventsRun(path))
    head = read_head(path)
    if head.startswith(MAGIC):
        raise FormatError(f"{path} is one series of a MindPulse run; give the run folder above it")
    if is_binary(head):
        raise FormatError(_unknown(path, head, "binary data of no kind that is known"))
    if json_rows.is_trace(head):
        raise FormatError(f"{path} is a profiler's trace of events, which holds no training curves")
    for kind, reader in WHOLE.items():
        if reader.sniff(head, path):
            return _found(path, kind, reader, "by its first lines")
    for number, block in _blocks(path):
        for kind, reader in LOGS.items():
            if reader.sniff(block, path):
                return _found(path, kind, reader, _where(reader, block, number, path))
    raise FormatError(_unknown(path, head, "no line in it is a step of a training"))


def understood() -> str:
    """What is understood, as a list in words."""
    titles = [reader.TITLE for reader in (*WHOLE.values(), *LOGS.values())]
    return "; ".join(["a MindPulse run folder", EVENTS_TITLE, *titles])


def identify_or_none(path: Path) -> Found | None:
    """What a file is; None where it is nothing that can be read."""
    try:
        return identify_file(path)
    except (StoreError, UsageError):
        return None


def _found(path: Path, kind: str, reader: _Reader, why: str) -> Found:
    return Found(path, kind, reader.TITLE, why, lambda: reader.read(path))


def _where(reader: _Reader, block: bytes, first: int, path: Path) -> str:
    """The first line that is one of the reader's."""
    for number, line in enumerate(block.split(b"\n"), first):
        if reader.sniff(line, path):
            return f"by the step that line {number} prints"
    return f"by a step that is printed after line {first}"


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """The text in pieces of whole lines, each with the number of its first line."""
    first, size = 1, 0
    held: list[str] = []
    for line in lines(path, MAX_LOG_LINE_BYTES):
        held.append(line.text)
        size += len(line.text) + 1
        if size >= _SEARCHED_BYTES:
            yield first, "\n".join(held).encode("utf-8", "replace")
            first, size, held = line.number + 1, 0, []
    if held:
        yield first, "\n".join(held).encode("utf-8", "replace")


def _unknown(path: Path, head: bytes, reason: str) -> str:
    return (
        f"{path}: {reason}; it begins with {shown(head)}. MindPulse reads: {understood()}. "
        "See docs/interop.md"
    )
