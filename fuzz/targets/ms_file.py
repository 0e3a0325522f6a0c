"""A `.ms` file: read at once, followed, checked, and repaired."""

from __future__ import annotations

from harness import REFUSED, example_files, file_with, folder

from mindpulse.store.check import check_files
from mindpulse.store.folder_run import open_folder
from mindpulse.store.one_file import FileTail, read_file
from mindpulse.store.repair import Repair

RANK = ("file", "attempt-0001", "rank-0000")


def seeds() -> list[bytes]:
    """Real files."""
    return example_files("*.ms")


def one_input(data: bytes) -> None:
    """All that reads the bytes agrees on how many rows there are."""
    path = file_with(data, *RANK, "train_loss.ms")
    with REFUSED:
        content = read_file(path)
        tail = FileTail(path, clock=lambda: 1e12)
        assert len(tail.poll()) == len(content.rows)
        (report,) = [r for r in check_files(folder() / "file") if r.path == path]
        assert report.rows == len(content.rows)
        run = open_folder(folder() / "file")
        for tag in run.specs():
            run.series(tag)
            run.overview(tag, points=10)
            run.last(tag, 3)
        for outcome in Repair(folder() / "file", dry_run=True).outcomes():
            assert outcome.rows >= 0
