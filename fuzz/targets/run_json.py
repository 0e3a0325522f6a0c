"""`run.json`: opened, and repaired."""

from __future__ import annotations

from harness import REFUSED, example_files, file_with, folder

from mindpulse.store.folder_run import open_folder
from mindpulse.store.repair import Repair


def seeds() -> list[bytes]:
    """Real ones, and one that is odd."""
    return [*example_files("run.json"), b'{"id": 3, "created": 1e400, "tags": {"a": [1]}}']


def one_input(data: bytes) -> None:
    """A run is opened whatever its description says."""
    file_with(b"", "described", "attempt-0001", "rank-0000", "x.ms")
    file_with(data, "described", "run.json")
    with REFUSED:
        run = open_folder(folder() / "described")
        assert isinstance(run.created, float)
        assert all(isinstance(text, str) for text in run.tags.values())
        list(Repair(folder() / "described", dry_run=True).outcomes())
