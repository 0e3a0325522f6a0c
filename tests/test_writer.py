"""The writer: what it promises when calls fail, files vanish and disks fill."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from faulty_files import FaultyFiles
from mindpulse import open_run
from mindpulse.errors import StoreError, UsageError
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.check import check_files
from mindpulse.store.files import OS_FILES
from mindpulse.store.notes import NOTES_NAME, Note
from mindpulse.store.one_file import read_file
from mindpulse.store.part import WRITE_BYTES
from mindpulse.store.reader import NotesTail
from mindpulse.store.writer import RankWriter
from series_samples import FOCUS, LOSS, assert_same, rows_of

ROW = 34


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "attempt-0001" / "rank-0000"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 64 KiB."""
    path = tmp_path / "small"
    path.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"mounting a tmpfs is not permitted here: {done.stderr.strip()}")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def rows_in(folder: Path, spec: SeriesSpec = LOSS) -> Rows:
    return open_run(folder.parent.parent).series(spec.tag).rows


def notes_in(folder: Path) -> list[Note]:
    return NotesTail(folder / NOTES_NAME, 0, 1).poll()


def test_one_write_a_file_and_flush(folder: Path) -> None:
    files = FaultyFiles(lambda number, name: False, 0)
    writer = RankWriter(folder, 0, 1, files=files)
    writer.append(LOSS, rows_of(LOSS, range(1)))
    writer.flush()
    files.calls.clear()
    for step in range(1, 4):
        writer.append(LOSS, rows_of(LOSS, range(step, step + 1)))
    writer.flush()
    assert files.calls == ["open", "fstat", "pwrite", "pwrite", "close"]  # rows, then the length
    writer.flush()
    assert len(files.calls) == 5
    assert_same(rows_in(folder), rows_of(LOSS, range(4)))
    assert writer.rows_written == 4


def test_length_in_the_header_follows_each_flush(folder: Path) -> None:
    writer = RankWriter(folder, 0, 1)
    for step in range(3):
        writer.append(LOSS, rows_of(LOSS, range(step, step + 1)))
        writer.flush()
        content = read_file(folder / "train_loss.ms")
        assert content.header is not None
        assert content.header.end == content.size


def test_large_blocks_are_written_in_pieces(folder: Path) -> None:
    count = 3 * WRITE_BYTES // ROW
    writer = RankWriter(folder, 0, 1)
    writer.append(LOSS, rows_of(LOSS, range(count)))
    writer.close()
    assert writer.pending_rows == writer.pending_bytes == 0
    assert_same(rows_in(folder), rows_of(LOSS, range(count)))


def test_a_new_part_is_begun_before_a_file_is_too_large(folder: Path) -> None:
    writer = RankWriter(folder, 0, 1, max_file_bytes=200)
    for start in range(0, 40, 10):
        writer.append(LOSS, rows_of(LOSS, range(start, start + 10)))
        writer.flush()
    assert len(list(folder.glob("train_loss*.ms"))) > 5
    assert all(path.stat().st_size <= 200 for path in folder.glob("*.ms"))
    assert_same(rows_in(folder), rows_of(LOSS, range(40)))


def test_a_file_holds_a_row_however_small_the_limit(folder: Path) -> None:
    writer = RankWriter(folder, 0, 1, max_file_bytes=1)
    writer.append(LOSS, rows_of(LOSS, range(3)))
    writer.close()
    assert len(list(folder.glob("*.ms"))) == 3
    assert_same(rows_in(folder), rows_of(LOSS, range(3)))


def test_other_columns_begin_a_new_part(folder: Path) -> None:
    fewer = SeriesSpec("attn_focus", "vector", "", FOCUS.axes, FOCUS.columns[1:], "float32")
    writer = RankWriter(folder, 0, 1)
    writer.append(FOCUS, rows_of(FOCUS, range(2)))
    writer.append(fewer, rows_of(fewer, range(2, 4)))
    writer.append(fewer, rows_of(fewer, range(4, 5)))
    writer.close()
    assert sorted(path.name for path in folder.glob("*.ms")) == [
        "attn_focus.0002.ms",
        "attn_focus.ms",
    ]
    series = open_run(folder.parent.parent).series("attn_focus")
    assert series.spec == fewer
    assert series.steps.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(series.values[0], [0.1, 0.2])
    np.testing.assert_allclose(series.values[4], [4.0, 4.1])
    assert writer.rows_written == 5


@pytest.mark.parametrize(
    "values", [np.zeros((1, 2)), np.zeros(1), np.array([["a"]]), np.array([[None]])]
)
def test_rows_that_do_not_fit_are_refused_before_they_wait(folder: Path, values: object) -> None:
    writer = RankWriter(folder, 0, 1)
    rows = Rows(np.array([1]), np.array([0.0]), np.asarray(values))
    with pytest.raises(UsageError, match="'train_loss': steps, wall times and values"):
        writer.append(LOSS, rows)
    assert writer.pending_rows == 0


@pytest.mark.parametrize("moved", [False, True])
def test_a_file_that_is_gone_is_begun_anew_and_noted(folder: Path, moved: bool) -> None:
    writer = RankWriter(folder, 0, 1)
    writer.append(LOSS, rows_of(LOSS, range(2)))
    writer.close()
    path = folder / "train_loss.ms"
    path.rename(folder.parent / "elsewhere") if moved else path.unlink()
    writer.append(LOSS, rows_of(LOSS, range(2, 4)))
    writer.close()
    assert_same(read_file(path).rows, rows_of(LOSS, range(2, 4)))
    (note,) = notes_in(folder)
    assert (note.kind, note.data["file"]) == ("file_missing", "train_loss.ms")


def test_a_folder_that_is_gone_is_made_anew(folder: Path) -> None:
    writer = RankWriter(folder, 0, 1)
    writer.append(LOSS, rows_of(LOSS, range(2)))
    writer.flush()
    (folder / "train_loss.ms").unlink()
    folder.rmdir()
    folder.parent.rmdir()
    writer.append(LOSS, rows_of(LOSS, range(2, 4)))
    writer.close()
    assert_same(rows_in(folder), rows_of(LOSS, range(2, 4)))


@pytest.mark.parametrize("what", ["replaced", "longer", "shorter"])
def test_a_file_that_somebody_else_wrote_is_left_alone(folder: Path, what: str) -> None:
    writer = RankWriter(folder, 0, 1)
    writer.append(LOSS, rows_of(LOSS, range(2)))
    writer.flush()
    path = folder / "train_loss.ms"
    data = path.read_bytes()
    if what == "replaced":
        path.unlink()
    path.write_bytes(data + b"xx" if what == "longer" else data[: -3 if what == "shorter" else 99])
    before = path.read_bytes()
    writer.append(LOSS, rows_of(LOSS, range(2, 4)))
    writer.close()
    assert path.read_bytes() == before
    assert_same(read_file(folder / "train_loss.0002.ms").rows, rows_of(LOSS, range(2, 4)))
    assert [note.kind for note in notes_in(folder)] == ["part_begun"]


def test_a_part_that_exists_is_never_written_over(folder: Path) -> None:
    (folder / "train_loss.ms").write_bytes(b"precious")
    writer = RankWriter(folder, 0, 1)
    writer.append(LOSS, rows_of(LOSS, range(2)))
    writer.close()
    assert (folder / "train_loss.ms").read_bytes() == b"precious"
    assert_same(rows_in(folder), rows_of(LOSS, range(2)))


def test_a_short_write_is_cut_back_to_whole_rows(folder: Path) -> None:
    files = FaultyFiles(lambda number, name: name == "pwrite" and number == 12, 0)
    writer = RankWriter(folder, 0, 1, files=files)
    writer.append(LOSS, rows_of(LOSS, range(1)))
    writer.flush()
    writer.append(LOSS, rows_of(LOSS, range(1, 6)))
    writer.flush()
    assert files.faults == 1
    assert "ftruncate" in files.calls
    (report,) = check_files(folder.parent.parent)
    assert (report.rows, report.torn_bytes, report.valid, report.problem) == (6, 0, True, "")
    assert_same(rows_in(folder), rows_of(LOSS, range(6)))


def test_a_failed_sync_repeats_the_rows_in_a_new_part(folder: Path) -> None:
    files = FaultyFiles(lambda number, name: name == "fdatasync", errno.EIO)
    writer = RankWriter(folder, 0, 1, files=files)
    writer.append(LOSS, rows_of(LOSS, range(3)))
    writer.flush()
    with pytest.raises(StoreError, match="could not be synced: Input/output error"):
        writer.sync()
    files.when = lambda number, name: False
    (folder / "train_loss.ms").write_bytes(b"")  # the worst case: the disk has nothing
    writer.append(LOSS, rows_of(LOSS, range(3, 5)))
    writer.close()
    assert_same(rows_in(folder), rows_of(LOSS, range(5)))
    assert writer.rows_written == 5


def write_three_times(writer: RankWriter) -> int:
    """Nine steps of two series, flushed and synced; how many calls raised StoreError."""
    errors = 0
    for start in (0, 3, 6):
        for spec in (LOSS, FOCUS):
            writer.append(spec, rows_of(spec, range(start, start + 3)))
        writer.note({"kind": "at", "step": start})
        for act in (writer.flush, writer.sync):
            try:
                act()
            except StoreError:
                errors += 1
    return errors


@pytest.mark.parametrize("sticky", [False, True], ids=["once", "from_then_on"])
@pytest.mark.parametrize("code", [0, errno.ENOSPC, errno.EIO, errno.EINTR, errno.ESTALE])
def test_whichever_call_fails_nothing_is_lost(tmp_path: Path, code: int, sticky: bool) -> None:
    """The n-th call to the system fails, for every n; afterwards all works again."""
    clean = FaultyFiles(lambda number, name: False, 0)
    write_three_times(RankWriter(tmp_path / "clean", 0, 1, files=clean))
    for nth in range(1, len(clean.calls) + 1):
        folder = tmp_path / f"run{nth}" / "attempt-0001" / "rank-0000"
        files = FaultyFiles(
            lambda number, name, n=nth: number >= n if sticky else number == n, code
        )
        writer = RankWriter(folder, 0, 1, files=files)
        errors = write_three_times(writer)
        assert files.faults
        assert errors or code == 0 or not sticky
        files.when = lambda number, name: False
        writer.close()
        for spec in (LOSS, FOCUS):
            assert_same(rows_in(folder, spec), rows_of(spec, range(9)))
        assert [n.step for n in notes_in(folder) if n.kind == "at"] == [0, 3, 6]
        assert writer.pending_rows == 0


def test_an_error_names_folder_reason_and_what_happens(folder: Path) -> None:
    files = FaultyFiles(lambda number, name: name == "open", errno.ENOSPC)
    writer = RankWriter(folder, 0, 1, files=files)
    writer.append(LOSS, rows_of(LOSS, range(2)))
    with pytest.raises(StoreError) as caught:
        writer.flush()
    text = str(caught.value)
    assert "No space left on device" in text
    assert str(folder / "train_loss.ms") in text
    assert "rows are kept and tried again" in text
    assert writer.pending_rows == 2


def test_one_file_that_fails_does_not_keep_the_others_back(folder: Path) -> None:
    files = FaultyFiles(lambda number, name: number == 1, errno.EIO)
    writer = RankWriter(folder, 0, 1, files=files)
    writer.append(LOSS, rows_of(LOSS, range(2)))
    writer.append(FOCUS, rows_of(FOCUS, range(2)))
    with pytest.raises(StoreError, match="1 file"):
        writer.flush()
    assert_same(rows_in(folder, FOCUS), rows_of(FOCUS, range(2)))


def test_the_oldest_rows_are_dropped_first(folder: Path) -> None:
    writer = RankWriter(folder, 0, 1)
    for step in range(10):
        for spec in (LOSS, FOCUS):
            writer.append(spec, rows_of(spec, range(step, step + 1)))
    assert writer.drop_oldest(writer.pending_bytes // 2) == 10
    writer.close()
    assert rows_in(folder).steps.tolist() == [5, 6, 7, 8, 9]
    assert rows_in(folder, FOCUS).steps.tolist() == [5, 6, 7, 8, 9]


def test_a_really_full_disk_loses_nothing_that_was_taken(full_disk: Path) -> None:
    folder = full_disk / "attempt-0001" / "rank-0000"
    folder.mkdir(parents=True)
    filler = full_disk / "filler"
    filler.write_bytes(bytes(40 * 1024))
    writer = RankWriter(folder, 0, 1)
    count = 0
    failures = 0
    while failures < 3:
        writer.append(LOSS, rows_of(LOSS, range(count, count + 50)))
        count += 50
        try:
            writer.flush()
        except StoreError:
            failures += 1
    written = writer.rows_written
    assert writer.pending_rows == count - written > 0
    assert_same(rows_in(folder), rows_of(LOSS, range(written)))
    filler.unlink()
    writer.close()
    assert_same(rows_in(folder), rows_of(LOSS, range(count)))
    assert all(report.valid for report in check_files(full_disk) if not report.foreign)


def test_a_rank_of_many_tags_holds_no_descriptor(folder: Path) -> None:
    writer = RankWriter(folder, 0, 1)
    before = len(os.listdir("/proc/self/fd"))
    for index in range(200):
        spec = SeriesSpec(f"tag/{index}")
        writer.append(spec, rows_of(spec, range(1)))
    writer.close()
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(list(folder.glob("*.ms"))) == 200


def test_a_caller_who_never_syncs_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindpulse.store.backlog.MAX_UNSYNCED_BYTES", 4096)
    writer = RankWriter(folder, 0, 1, files=OS_FILES)
    for step in range(100):
        writer.append(LOSS, rows_of(LOSS, range(step, step + 1)))
        writer.flush()
    (series,) = writer._writers()
    assert series._unsynced.size_bytes <= 4096
