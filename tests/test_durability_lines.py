"""Bytes put into a file, or cut out of its middle: what follows is read all the same."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.check import check_files
from mindpulse.store.codec import RowCodec
from mindpulse.store.folder_run import open_folder
from mindpulse.store.index_format import index_path
from mindpulse.store.index_writer import rebuild_index
from mindpulse.store.one_file import FileTail, read_file
from mindpulse.store.overview import overview_of
from mindpulse.store.reader import Chunk, RunTail
from mindpulse.testing import write_run
from run_files import part_path, write_part
from series_samples import FOCUS, LOAD, LOSS, assert_same, rows_of

COUNT = 60


def start_of(path: Path) -> int:
    header = read_file(path).header
    assert header
    return header.size


def harmed(path: Path, at: int, put: bytes, cut: int) -> None:
    """Puts bytes into a file or cuts some out, `at` bytes behind its header, and makes it old."""
    data, at = path.read_bytes(), at + start_of(path)
    path.write_bytes(data[:at] + put + data[at + cut :])
    os.utime(path, (0, 0))


def survivors(path: Path, spec: SeriesSpec) -> Rows:
    """The rows whose bytes still stand somewhere in the file, in their order."""
    rows, data, at = rows_of(spec, range(COUNT)), path.read_bytes(), 0
    kept = []
    for row in range(COUNT):
        found = data.find(RowCodec(spec).encode(rows[row : row + 1]), at)
        if found >= 0:
            kept.append(row)
            at = found + RowCodec(spec).row_bytes
    return rows[kept]


@pytest.mark.parametrize("spec", [LOSS, FOCUS, LOAD], ids=lambda spec: spec.plugin)
@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_all_readers_go_on_behind_the_harm(
    tmp_path_factory: pytest.TempPathFactory, spec: SeriesSpec, data: st.DataObject
) -> None:
    size = RowCodec(spec).row_bytes
    at = data.draw(st.integers(0, (COUNT - 4) * size), "at")
    put = data.draw(st.sampled_from([b"", b"\0", b"\x12" * 3, b"noise" * 40]), "put")
    cut = 0 if put else data.draw(st.integers(1, 3 * size - 1), "cut")
    run = tmp_path_factory.mktemp("run")
    path = part_path(run, spec)
    write_part(path, spec, rows_of(spec, range(COUNT)))
    whole = path.stat().st_size
    harmed(path, at, put, cut)
    wanted = survivors(path, spec)
    content = read_file(path)
    assert_same(content.rows, wanted)
    tail = FileTail(path)
    assert_same(tail.poll(), wanted)
    opened = open_folder(run)
    assert_same(opened.series(spec.tag).rows, wanted)
    assert_same(Rows.concat([block.rows for block in opened.blocks(spec.tag)]), wanted)
    assert_same(opened.last(spec.tag, 7).rows, wanted[-7:])
    assert_same(Rows.concat([chunk.rows for chunk in RunTail(run).poll()]), wanted)
    # Whole rows cut out leave rows that are all in line: nothing tells of them but the length. So
    # does a cut within the first bytes, which are the same in all rows.
    in_line = (
        bool(cut) and path.stat().st_size == whole - cut == whole - (COUNT - len(wanted)) * size
    )
    (report,) = check_files(run)
    assert not report.valid
    assert bool(report.damaged_rows) == (not in_line)


def test_several_places(tmp_path: Path) -> None:
    path = part_path(tmp_path, LOSS)
    write_part(path, LOSS, rows_of(LOSS, range(COUNT)))
    for row in (50, 30, 10):
        harmed(path, row * 34 + 5, b"xyz", 0)
    wanted = rows_of(LOSS, [step for step in range(COUNT) if step not in (10, 30, 50)])
    content = read_file(path)
    assert_same(content.rows, wanted)
    assert content.damaged.nonzero()[0].tolist() == [10, 30, 50]
    assert_same(FileTail(path).poll(), wanted)
    assert_same(open_folder(tmp_path).last("train_loss", 40).rows, wanted[-40:])


def test_positions_stay_so_that_the_index_still_fits(tmp_path: Path) -> None:
    path = part_path(tmp_path, LOSS)
    rows = rows_of(LOSS, range(40_000))
    write_part(path, LOSS, rows)
    assert rebuild_index(path)
    harmed(path, 30_000 * 34 + 9, b"four", 0)
    run = open_folder(tmp_path)
    seen = run.overview("train_loss", points=100)
    # The blocks were made before the harm; only the last rows are read.
    whole = overview_of(open_folder(tmp_path).series("train_loss"), 100)
    assert int(seen.counts.sum()) == 40_000
    assert int(whole.counts.sum()) == 39_999
    assert index_path(path, 0).exists()
    assert np.nanmax(seen.maximum) == rows.values.max()


def test_a_tail_waits_while_the_file_is_young(tmp_path: Path) -> None:
    """A network file system may deliver the bytes in between later."""
    path = part_path(tmp_path, LOSS)
    write_part(path, LOSS, rows_of(LOSS, range(COUNT)))
    harmed(path, 20 * 34 + 5, b"xyz", 0)
    now = [100.0]
    os.utime(path, (99.0, 99.0))
    tail = FileTail(path, clock=lambda: now[0])
    assert len(tail.poll()) == 20
    now[0] = 130.0
    assert tail.poll().steps.tolist() == list(range(21, COUNT))
    assert tail.damaged_rows == 1


def test_a_file_of_noise_takes_no_time(tmp_path: Path) -> None:
    path = part_path(tmp_path, LOSS)
    write_part(path, LOSS, rows_of(LOSS, range(2)))
    key = RowCodec(LOSS).layout.blank
    with path.open("ab") as file:
        file.write((key[:33] + b"!") * 60_000 + os.urandom(1_000_003))
    os.utime(path, (0, 0))
    assert len(read_file(path).rows) == 2
    assert len(FileTail(path).poll()) == 2


@pytest.mark.parametrize("left", range(6))
def test_a_file_whose_header_was_cut_out_gives_its_rows(tmp_path: Path, left: int) -> None:
    """The first row begins with the file, or a few bytes behind it."""
    write_run(tmp_path, train_loss=np.arange(500.0), grad_norm=np.arange(500.0))
    path = tmp_path / "attempt-0001" / "rank-0000" / "train_loss.ms"
    path.write_bytes(path.read_bytes()[start_of(path) - left :])
    os.utime(path, (0, 0))  # nobody writes it: what is wrong will stay so
    run = open_folder(tmp_path)
    assert run.series("train_loss").values.tolist() == list(range(500))
    assert run.last("train_loss", 2).values.tolist() == [498, 499]
    chunks = [chunk for chunk in RunTail(tmp_path).poll() if isinstance(chunk, Chunk)]
    assert [chunk.rows.values.sum() for chunk in chunks] == [124750, 124750]
    assert [report.rows for report in run.files()] == [500, 500]
    assert list(run.specs()) == ["grad_norm", "train_loss"]
