"""A whole run out of one stream of bytes: several files, notes and a description at once."""

from __future__ import annotations

import shutil

from harness import REFUSED, example_files, folder

from mindpulse import SummaryReader
from mindpulse.store.reader import RunTail

NAMES = (
    "attempt-0001/rank-0000/train_loss.ms",
    "attempt-0001/rank-0000/train_loss.0002.ms",
    "attempt-0002/rank-0000/train_loss.ms",
    "attempt-0001/rank-0000/notes.jsonl",
    "run.json",
)
CUT = b"\xff\xfe CUT \xfe\xff"


def seeds() -> list[bytes]:
    """The files of a run, one after the other."""
    loss = example_files("train_loss.ms")
    return [CUT.join([loss[0], loss[0][:80], loss[1], b'{"kind": "start", "step": 2}\n', b"{}"])]


def one_input(data: bytes) -> None:
    """What is read at once has the rows of what is followed, or more: parts that overlap."""
    run = folder() / "whole"
    shutil.rmtree(run, ignore_errors=True)
    for name, piece in zip(NAMES, data.split(CUT), strict=False):
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(piece)
    with REFUSED:
        reader = SummaryReader(run)
        for tag in reader.tags():
            for attempt in (None, 1, "all"):
                with REFUSED:
                    reader.series(tag, attempt=attempt)  # type: ignore[arg-type]
        RunTail(run).poll()
