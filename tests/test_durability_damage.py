"""Every cut of the last 8 KiB and every flipped bit of 4 KiB: what is left is read, all is told."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.check import check_files
from mindpulse.store.codec import RowCodec
from mindpulse.store.folder import create_attempt
from mindpulse.store.folder_run import open_folder
from mindpulse.store.one_file import FileTail, read_file
from mindpulse.store.writer import RankWriter
from series_samples import FOCUS, LOSS, assert_same, rows_of

pytestmark = pytest.mark.slow

CUT_BYTES = 8192
FLIPPED_BYTES = 4096
HEADS = SeriesSpec(
    "attn_entropy",
    "vector",
    "nats",
    ("layer", "head"),
    tuple((str(layer), str(head)) for layer in range(4) for head in range(4)),
)


def written(run: Path, spec: SeriesSpec, count: int) -> Path:
    """A file of a new attempt with the steps from 0 up."""
    folder = create_attempt(run)
    writer = RankWriter(folder, 0, int(folder.parent.name[8:]))
    writer.append(spec, rows_of(spec, range(count)))
    writer.close()
    (path,) = folder.glob("*.ms")
    return path


def start_of(path: Path) -> int:
    header = read_file(path).header
    assert header
    return header.size


@pytest.mark.parametrize("spec", [LOSS, HEADS], ids=lambda spec: spec.tag)
def test_cut_anywhere_in_the_last_8_kib(tmp_path: Path, spec: SeriesSpec) -> None:
    row_bytes = RowCodec(spec).row_bytes
    path = written(tmp_path, spec, 2 * CUT_BYTES // row_bytes)
    wanted = rows_of(spec, range(2 * CUT_BYTES // row_bytes))
    start, size = start_of(path), path.stat().st_size
    for end in range(size - 1, size - CUT_BYTES - 1, -1):
        os.truncate(path, end)
        content = read_file(path)
        whole = (end - start) // row_bytes
        assert len(content.rows) == whole, end
        assert content.torn_bytes == (end - start) % row_bytes, end
        assert not content.damaged.any(), end
        if end % 256 == 0:
            assert_same(content.rows, wanted[:whole])
            assert len(FileTail(path).poll()) == whole
            (report,) = check_files(tmp_path)
            assert not report.valid
            assert "missing at the end" in report.problem


@pytest.mark.parametrize("spec", [LOSS, HEADS], ids=lambda spec: spec.tag)
def test_each_bit_of_4_kib_from_the_beginning_of_the_file(tmp_path: Path, spec: SeriesSpec) -> None:
    """The header is in the stretch. One row is lost at most, and something is always told."""
    row_bytes = RowCodec(spec).row_bytes
    path = written(tmp_path, spec, FLIPPED_BYTES // row_bytes + 3)
    wanted = rows_of(spec, range(FLIPPED_BYTES // row_bytes + 3))
    start, data = start_of(path), path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for bit in range(8 * FLIPPED_BYTES):
            at = bit // 8
            os.pwrite(file.fileno(), bytes([data[at] ^ 1 << bit % 8]), at)
            check_flip(path, wanted, start, row_bytes, bit)
            os.pwrite(file.fileno(), data[at : at + 1], at)


def check_flip(path: Path, wanted: Rows, start: int, row_bytes: int, bit: int) -> None:
    content = read_file(path)
    hit = (bit // 8 - start) // row_bytes
    if hit >= 0:
        assert np.flatnonzero(content.damaged).tolist() == [hit], bit
        assert content.problem == "", bit
    else:
        assert content.header, bit
        # A flipped length is seen by comparing it with the file: `check` does, below.
        assert content.problem or 6 <= bit // 8 < 10, bit
    kept = np.arange(len(wanted)) != hit
    assert content.rows.steps.tolist() == wanted.steps[kept].tolist(), bit
    if bit % 64 == 0 or hit < 0:
        assert_same(content.rows, wanted[kept])
        (report,) = check_files(path.parents[2])
        assert report.problem, bit
        assert not report.valid, bit


def test_labels_of_a_flipped_header_come_from_the_neighbours(tmp_path: Path) -> None:
    """By the file name and another attempt, the series is as it was, whichever bit is flipped."""
    written(tmp_path, FOCUS, 20)
    path = written(tmp_path, FOCUS, 30)
    data = path.read_bytes()
    for bit in range(0, 8 * start_of(path), 3):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        run = open_folder(tmp_path)
        assert run.specs() == {FOCUS.tag: FOCUS}, bit
        series = run.series(FOCUS.tag)
        assert series.spec == FOCUS, bit
        assert_same(series.rows, rows_of(FOCUS, range(30)))


@pytest.mark.parametrize("length", [0, 9, 44, 61])
def test_a_length_that_cannot_be_is_damage(tmp_path: Path, length: int) -> None:
    """Less than the header, or within a row; whole rows too few is what a kill leaves."""
    path = written(tmp_path, LOSS, 5)
    data = path.read_bytes()
    start = start_of(path)
    path.write_bytes(data[:6] + (start - 10 + length - 44).to_bytes(4, "little") + data[10:])
    (report,) = check_files(tmp_path)
    assert not report.valid or length == 44
    assert report.problem
    assert report.rows == 5


def test_empty_and_very_small_files_are_told_and_left(tmp_path: Path) -> None:
    path = written(tmp_path, LOSS, 5)
    small = {"empty.ms": b"", "small.ms": path.read_bytes()[:7], "header.ms": b""}
    small["header.ms"] = path.read_bytes()[: start_of(path)]
    for name, data in small.items():
        (path.parent / name).write_bytes(data)
    found = {report.path.name: report for report in check_files(tmp_path)}
    assert set(found) == {"train_loss.ms", *small}
    assert [found[name].rows for name in small] == [0, 0, 0]
    assert [found[name].foreign for name in small] == [False, False, False]
    assert "empty" in found["empty.ms"].problem
    assert not found["empty.ms"].valid
    assert "after 7 bytes" in found["small.ms"].problem
    assert "bytes are missing" in found["header.ms"].problem
    assert len(open_folder(tmp_path).series("train_loss")) == 5
    assert {n: (path.parent / n).read_bytes() for n in small} == small
