"""`notes.jsonl`: read at once and in pieces."""

from __future__ import annotations

from harness import REFUSED, file_with

from mindpulse.store.folder_run import open_folder
from mindpulse.store.reader import NotesTail


def seeds() -> list[bytes]:
    """Notes of every kind that the reading side looks into."""
    return [
        b'{"kind": "start", "step": 5, "wall_time": 1.5}\n',
        b'{"kind": "tag", "key": "data", "text": "wikitext", "step": null, "wall_time": 2}\n{"ki',
        b'{"kind": "fingerprint", "tags": {"git": "abc"}}\n[1]\n\0\0\0{"kind": "rows_lost"}\n',
    ]


def one_input(data: bytes) -> None:
    """In two pieces as in one; a run with such notes is opened."""
    path = file_with(data[: len(data) // 2], "notes", "attempt-0001", "rank-0000", "notes.jsonl")
    with REFUSED:
        tail = NotesTail(path, 0, 1)
        found = tail.poll()
        path.write_bytes(data)
        found += tail.poll()
        assert [n.kind for n in found] == [n.kind for n in NotesTail(path, 0, 1).poll()]
        run = open_folder(path.parents[2])
        assert isinstance(run.tags, dict)
        run._starts(0)
