"""Reading damaged, cut, growing, replaced and foreign files."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindpulse.errors import StoreError
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.check import FileReport, check_files
from mindpulse.store.codec import RowCodec
from mindpulse.store.folder_run import open_folder
from mindpulse.store.format import encode_header
from mindpulse.store.names import file_name
from mindpulse.store.notes import NOTES_NAME, Note, encode_note
from mindpulse.store.one_file import FileTail, read_file
from mindpulse.store.reader import Chunk, NotesTail, RunTail, without_repeated
from series_samples import FOCUS, LOAD, LOSS, assert_same, rows_of

COUNT = 5


def rank_folder(run_dir: Path, attempt: int = 1, rank: int = 0) -> Path:
    folder = run_dir / f"attempt-{attempt:04d}" / f"rank-{rank:04d}"
    folder.mkdir(parents=True)
    return folder


def file_bytes(spec: SeriesSpec, count: int = COUNT) -> bytes:
    header = encode_header(spec, 1.7e9, 0, 1)
    rows = RowCodec(spec).encode(rows_of(spec, range(count)))
    payload = len(header) + len(rows) - 10
    return header[:6] + struct.pack("<I", payload) + header[10:] + rows


def report(run_dir: Path, path: Path, data: bytes) -> FileReport:
    path.write_bytes(data)
    (found,) = check_files(run_dir)
    return found


@pytest.mark.parametrize("spec", [LOSS, FOCUS], ids=lambda spec: spec.plugin)
def test_cut_at_each_byte_the_whole_rows_are_read(tmp_path: Path, spec: SeriesSpec) -> None:
    path = rank_folder(tmp_path) / file_name(spec.tag)
    data = file_bytes(spec)
    start = len(encode_header(spec, 1.7e9, 0, 1))
    row_bytes = RowCodec(spec).row_bytes
    for size in range(len(data)):
        found = report(tmp_path, path, data[:size])
        rows = max(0, size - start) // row_bytes
        assert (found.rows, found.damaged_rows, found.tag) == (rows, 0, spec.tag)
        assert not found.valid  # the length in the header tells that something is missing
        assert found.problem
        assert_same(read_file(path).rows, rows_of(spec, range(rows)) if rows else read_none(path))
        assert len(FileTail(path).poll()) == rows


def read_none(path: Path) -> Rows:
    rows = read_file(path).rows
    assert not len(rows)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("spec", [LOSS, FOCUS], ids=lambda spec: spec.plugin)
def test_each_flipped_bit_is_seen_and_costs_one_row_at_most(
    tmp_path: Path, spec: SeriesSpec
) -> None:
    path = rank_folder(tmp_path) / file_name(spec.tag)
    data = file_bytes(spec)
    start = len(encode_header(spec, 1.7e9, 0, 1))
    row_bytes = RowCodec(spec).row_bytes
    wanted = rows_of(spec, range(COUNT))
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        found = report(tmp_path, path, bytes(damaged))
        assert not found.valid, bit
        assert found.problem
        kept = np.ones(COUNT, np.bool_)
        if bit // 8 >= start:
            kept[(bit // 8 - start) // row_bytes] = False
        assert found.rows == kept.sum(), bit
        assert found.tag == spec.tag
        assert_same(read_file(path).rows, wanted[kept])


@given(st.data())
def test_any_damage_to_some_rows_leaves_the_others(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("run") / "train_loss.ms"
    content = bytearray(file_bytes(LOSS, 200))
    start, row_bytes = len(content) - 200 * 34, 34
    hurt = data.draw(st.sets(st.integers(0, 199), max_size=20))
    for row in hurt:
        at = start + row * row_bytes
        size = data.draw(st.integers(1, row_bytes))
        content[at : at + size] = bytes(b ^ 0x5A for b in content[at : at + size])
    path.write_bytes(content)
    kept = np.array([row not in hurt for row in range(200)])
    assert_same(read_file(path).rows, rows_of(LOSS, range(200))[kept])


def test_zeros_where_rows_should_be_are_damaged_rows(tmp_path: Path) -> None:
    path = tmp_path / "train_loss.ms"
    path.write_bytes(file_bytes(LOSS) + bytes(34 * 3))
    content = read_file(path)
    assert content.damaged.tolist() == [False] * 5 + [True] * 3


@pytest.mark.parametrize("spec", [LOSS, FOCUS, LOAD], ids=lambda spec: spec.plugin)
def test_a_lost_header_costs_the_labels_not_the_rows(tmp_path: Path, spec: SeriesSpec) -> None:
    path = tmp_path / file_name(spec.tag)
    data = file_bytes(spec)
    start = len(encode_header(spec, 1.7e9, 0, 1))
    path.write_bytes(bytes(start) + data[start:])
    content = read_file(path)
    assert content.header is not None
    assert content.header.salvaged
    assert (content.header.spec.tag, content.header.spec.dtype) == (spec.tag, spec.dtype)
    assert_same(content.rows, rows_of(spec, range(COUNT)))


def test_a_lost_header_and_no_row_is_given_up(tmp_path: Path) -> None:
    path = rank_folder(tmp_path) / "train_loss.ms"
    found = report(tmp_path, path, b"MSFM\x01\x00" + bytes(200))
    assert (found.rows, found.valid, found.foreign, found.tag) == (0, False, False, "train_loss")


@pytest.mark.parametrize("size", [0, 3, 4, 5000])
def test_zeros_are_what_a_power_loss_leaves_of_a_file_of_ours(tmp_path: Path, size: int) -> None:
    path = rank_folder(tmp_path) / "train_loss.ms"
    found = report(tmp_path, path, bytes(size))
    assert (found.rows, found.valid, found.foreign, found.tag) == (0, False, False, "train_loss")


def test_a_growing_file_is_read_row_by_row(tmp_path: Path) -> None:
    path = tmp_path / "attn_focus.ms"
    tail = FileTail(path)
    assert not len(tail.poll())
    data = file_bytes(FOCUS)
    got: list[Rows] = []
    for size in range(0, len(data) + 1, 7):
        path.write_bytes(data[:size])  # the same file grows: write_bytes keeps its inode
        got.append(tail.poll())
        assert tail.problem == "" or tail.header is None
    path.write_bytes(data)
    got.append(tail.poll())
    assert_same(Rows.concat([r for r in got if len(r)]), rows_of(FOCUS, range(COUNT)))
    assert tail.spec == FOCUS
    assert tail.damaged_rows == 0


def test_a_part_of_a_row_that_is_cut_back_is_no_new_file(tmp_path: Path) -> None:
    path = tmp_path / "train_loss.ms"
    path.write_bytes(file_bytes(LOSS) + b"\x12\x20")
    tail = FileTail(path)
    assert len(tail.poll()) == COUNT
    path.write_bytes(file_bytes(LOSS))
    assert len(tail.poll()) == 0
    path.write_bytes(file_bytes(LOSS, COUNT + 1))
    assert tail.poll().steps.tolist() == [COUNT]


def test_a_replaced_or_shrunk_file_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "train_loss.ms"
    path.write_bytes(file_bytes(LOSS))
    tail = FileTail(path)
    assert len(tail.poll()) == COUNT
    other = tmp_path / "other"
    other.write_bytes(file_bytes(LOSS, 3))
    other.replace(path)
    assert len(tail.poll()) == 3
    path.write_bytes(file_bytes(LOSS, 2))
    assert len(tail.poll()) == 2


def test_damaged_rows_at_the_end_are_looked_at_again(tmp_path: Path) -> None:
    path = tmp_path / "train_loss.ms"
    whole = file_bytes(LOSS)
    path.write_bytes(whole[:-34] + bytes(34))  # the last page has not arrived
    tail = FileTail(path)
    assert len(tail.poll()) == COUNT - 1
    assert tail.damaged_rows == 0
    path.write_bytes(whole)
    assert tail.poll().steps.tolist() == [COUNT - 1]
    assert tail.damaged_rows == 0


def test_damaged_rows_before_good_ones_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "train_loss.ms"
    data = bytearray(file_bytes(LOSS))
    data[-40] ^= 1
    path.write_bytes(data)
    tail = FileTail(path)
    assert tail.poll().steps.tolist() == [0, 1, 2, 4]
    assert tail.damaged_rows == 1


def test_a_file_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "train_loss.ms").mkdir()
    with pytest.raises(StoreError, match="cannot be read"):
        read_file(tmp_path / "train_loss.ms")


def test_run_tail_finds_new_files_parts_ranks_and_attempts(tmp_path: Path) -> None:
    run = tmp_path / "run"
    tail = RunTail(run)
    assert tail.poll() == []
    first = rank_folder(run)
    (first / "train_loss.ms").write_bytes(file_bytes(LOSS))
    (first / NOTES_NAME).write_bytes(encode_note({"kind": "start", "step": 1, "wall_time": 2.0}))
    note, chunk = tail.poll()
    assert note == Note(0, 1, "start", 1, 2.0, {})
    assert isinstance(chunk, Chunk)
    assert (chunk.rank, chunk.attempt, chunk.spec, len(chunk.rows)) == (0, 1, LOSS, COUNT)
    assert tail.poll() == []
    later = rows_of(LOSS, range(COUNT, COUNT + 2))
    header = encode_header(LOSS, 1.7e9, 0, 1)
    repeated = rows_of(LOSS, range(COUNT - 1, COUNT))
    codec = RowCodec(LOSS)
    (first / "train_loss.0002.ms").write_bytes(
        header + codec.encode(repeated) + codec.encode(later)
    )
    (rank_folder(run, rank=1) / "attn_focus.ms").write_bytes(file_bytes(FOCUS))
    (rank_folder(run, attempt=2) / "train_loss.ms").write_bytes(file_bytes(LOSS, 1))
    found = [(c.rank, c.attempt, c.spec.tag, len(c.rows)) for c in tail.poll() if type(c) is Chunk]
    assert found == [(0, 1, "train_loss", 2), (1, 1, "attn_focus", 5), (0, 2, "train_loss", 1)]


def test_run_tail_leaves_foreign_files_alone(tmp_path: Path) -> None:
    folder = rank_folder(tmp_path)
    (folder / "model.ckpt").write_bytes(b"x" * 100)
    (folder / "not_ours.ms").write_bytes(b"x" * 100)
    (folder / "a_folder.ms").mkdir()
    (folder / "a b.ms").write_bytes(b"MSFM")
    (tmp_path / "attempt-1").write_bytes(b"")
    (folder / "train_loss.ms").write_bytes(file_bytes(LOSS))
    tail = RunTail(tmp_path)
    assert [type(found) for found in tail.poll()] == [Chunk]
    assert {path.name for path in tail.problems} == {"not_ours.ms", "a_folder.ms"}


def test_a_pipe_under_the_name_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    folder = rank_folder(tmp_path)
    os.mkfifo(folder / "grad_norm.ms")
    (folder / "train_loss.ms").write_bytes(file_bytes(LOSS))
    run = open_folder(tmp_path)
    assert list(run.specs()) == ["train_loss"]
    assert [report.foreign for report in run.files()] == [True, False]
    tail = RunTail(tmp_path)
    assert [type(found) for found in tail.poll()] == [Chunk]
    assert {path.name for path in tail.problems} == {"grad_norm.ms"}


def test_notes_wait_for_the_end_of_the_line(tmp_path: Path) -> None:
    path = tmp_path / NOTES_NAME
    line = encode_note({"kind": "a", "x": float("nan"), "y": np.float32(1.5), "z": {1, 2}})
    path.write_bytes(b"not json\n[1]\n" + line[:-5])
    tail = NotesTail(path, 3, 4)
    assert tail.poll() == []
    path.write_bytes(b"not json\n[1]\n" + line)
    (note,) = tail.poll()
    assert (note.kind, note.rank, note.step) == ("a", 3, None)
    assert note.data == {"x": "nan", "y": 1.5, "z": [1, 2]}
    os.truncate(path, 0)
    assert tail.poll() == []


def test_rows_that_a_new_part_repeats_are_dropped() -> None:
    before, after = rows_of(LOSS, range(10)), rows_of(LOSS, range(7, 15))
    assert without_repeated(before, after).steps.tolist() == [10, 11, 12, 13, 14]
    assert without_repeated(None, after) is after
    again = Rows(after.steps, after.wall_times + 100, after.values)  # the same steps, written anew
    assert len(without_repeated(before, again)) == 8
