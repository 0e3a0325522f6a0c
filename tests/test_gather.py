"""A series out of many files, read in pieces, against the same files read whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory import peak_memory
from mindpulse.errors import StoreError, UsageError
from mindpulse.series import Rows, Series, SeriesSpec
from mindpulse.store import pieces
from mindpulse.store.folder_run import FolderRun, open_folder
from mindpulse.store.merge import join
from mindpulse.store.notes import NOTES_NAME, encode_note
from mindpulse.store.part_file import PartFile
from mindpulse.store.reader import NotesTail
from mindpulse.store.repeats import repeated_rows
from run_files import part_path, write_part
from series_samples import FOCUS, LOSS, assert_same, rows_of

WIDER = SeriesSpec(FOCUS.tag, "vector", "", FOCUS.axes, (*FOCUS.columns[1:], ("2", "2")), "float64")


# Where a clock jumps back or rows are damaged, repeated rows are found within a piece.
WHOLE, SMALL = 1 << 20, 200


def drawn_rows(data: st.DataObject, spec: SeriesSpec, clock: list[float], odd: bool) -> Rows:
    steps = data.draw(st.lists(st.integers(0, 30), max_size=12))
    times = clock[0] + 0.5 * np.arange(len(steps))
    clock[0] += 0.5 * len(steps) + data.draw(st.sampled_from([0.0, 1.0, -3.25] if odd else [0.5]))
    values = np.arange(len(steps) * spec.width).reshape(len(steps), spec.width) + clock[0]
    return Rows(np.array(steps, np.int64), times, values.astype(spec.dtype))


def drawn_attempt(
    data: st.DataObject, run: Path, attempt: int, clock: list[float], odd: bool
) -> list[Series]:
    """Writes the parts of an attempt and tells how they are to be read."""
    shown: list[Series] = []
    before = Rows.empty(0)
    for part in range(1, data.draw(st.integers(1, 3)) + 1):
        spec = data.draw(st.sampled_from([FOCUS, WIDER]))
        new = drawn_rows(data, spec, clock, odd)
        repeated = data.draw(st.integers(0, len(before))) if before.values.shape[1:] else 0
        again = before[len(before) - repeated :] if before.values.shape[1] == spec.width else None
        rows = Rows.concat([again, new]) if again is not None else new
        rows = Rows(rows.steps, rows.wall_times, rows.values.astype(spec.dtype))
        damaged = data.draw(st.sets(st.integers(0, max(0, len(rows) - 1)), max_size=3))
        damaged = damaged if len(rows) and odd else set()
        path = part_path(run, spec, attempt, part)
        write_part(path, spec, rows, damaged, attempt)
        good = np.array([row not in damaged for row in range(len(rows))], np.bool_)
        held = {(s, t) for piece in shown for s, t in pairs(piece.rows)}
        fresh = [pair not in held for pair in pairs(rows)]
        shown.append(Series(spec, rows[good & np.array(fresh, np.bool_)]))
        before = rows
    return shown


def latest(attempts: dict[int, list[Series]]) -> Series:
    """All parts joined, without the rows that a later attempt hides."""
    limit = 2**63
    kept: list[Series] = []
    for number in sorted(attempts, reverse=True):
        own = attempts[number]
        kept = [Series(s.spec, s.rows[s.steps < limit]) for s in own] + kept
        limit = min([limit, *(int(step) for series in own for step in series.steps)])
    return join(kept)


def pairs(rows: Rows) -> list[tuple[Any, Any]]:
    return list(zip(rows.steps.tolist(), rows.wall_times.tolist(), strict=True))


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_series_blocks_and_last_tell_the_same(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("run")
    clock, odd = [1.7e9], data.draw(st.booleans())
    attempts = {
        number: drawn_attempt(data, folder, number, clock, odd)
        for number in range(1, data.draw(st.integers(1, 3)) + 1)
    }
    run = open_folder(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE_BYTES", WHOLE if odd else data.draw(st.integers(1, SMALL)))
        assert_reads(run, None, latest(attempts), data)
        assert_reads(
            run, "all", join([s for number in sorted(attempts) for s in attempts[number]]), data
        )
        assert_reads(run, 1, join(attempts[1]), data)


def assert_reads(run: FolderRun, attempt: Any, wanted: Series, data: st.DataObject) -> None:
    tag = FOCUS.tag
    found = run.series(tag, attempt=attempt)
    assert found.spec == wanted.spec
    assert_same(found.rows, wanted.rows)
    columns = data.draw(st.lists(st.integers(0, wanted.spec.width - 1), min_size=1, max_size=4))
    some = run.series(tag, attempt=attempt, columns=columns)
    assert some.spec == wanted.spec.pick(columns)
    assert_same(some.rows, wanted.pick(columns).rows)
    blocks = list(run.blocks(tag, attempt=attempt))
    assert all(block.spec == wanted.spec for block in blocks)
    nothing = Rows.empty(wanted.spec.width, wanted.spec.dtype)
    assert_same(Rows.concat([nothing, *(block.rows for block in blocks)]), wanted.rows)
    limit = data.draw(st.integers(0, 20))
    last = run.last(tag, limit, attempt=attempt)
    assert_same(last.rows, wanted.rows[max(0, len(wanted) - limit) :])


def test_a_column_that_is_not_there_is_told(tmp_path: Path) -> None:
    write_part(part_path(tmp_path, FOCUS), FOCUS, rows_of(FOCUS, range(3)))
    with pytest.raises(UsageError, match="column 3 of 'attn_focus': it has columns 0 to 2"):
        open_folder(tmp_path).series("attn_focus", columns=[3])


def test_a_start_note_hides_rows_also_where_the_series_has_none(tmp_path: Path) -> None:
    write_part(part_path(tmp_path, LOSS), LOSS, rows_of(LOSS, range(10)))
    later = part_path(tmp_path, FOCUS, attempt=2)
    (later.parent / "notes.jsonl").write_text('{"kind": "start", "step": 6, "wall_time": 1}\n')
    run = open_folder(tmp_path)
    assert run.series("train_loss").steps.tolist() == [0, 1, 2, 3, 4, 5]
    assert run.last("train_loss", 2).steps.tolist() == [4, 5]
    assert [b.steps.tolist() for b in run.blocks("train_loss")] == [[0, 1, 2, 3, 4, 5]]
    assert run.overview("train_loss").counts.sum() == 6


@pytest.fixture
def wide_run(tmp_path: Path) -> Path:
    columns = tuple((str(index),) for index in range(200))
    spec = SeriesSpec("wide", "vector", "", ("param",), columns, "float32")
    values = np.random.default_rng(0).normal(size=(60_000, 200)).astype(np.float32)
    steps = np.arange(60_000)
    write_part(part_path(tmp_path, spec), spec, Rows(steps, steps * 0.5, values))
    write_part(part_path(tmp_path, LOSS), LOSS, rows_of(LOSS, range(400_000)))
    return tmp_path


def test_memory_is_that_of_what_was_asked_for(wide_run: Path) -> None:
    run = open_folder(wide_run)
    most = 3 * 60_000 * 20  # steps and times of 8 bytes, values of 4
    used, series = peak_memory(lambda: run.series("wide", columns=[3]), most)
    assert used <= most
    assert series.values.shape == (60_000, 1)
    most = 2 * 400_000 * 24
    used, series = peak_memory(lambda: run.series("train_loss"), most)
    assert used <= most
    assert len(series) == 400_000
    most = 200_000
    used, last = peak_memory(lambda: run.last("train_loss", 10), most)
    assert used <= most
    assert last.steps.tolist() == list(range(399_990, 400_000))
    most = 8 << 20
    used, count = peak_memory(lambda: sum(len(block) for block in run.blocks("wide")), most)
    assert used <= most
    assert count == 60_000


def test_repeated_rows_are_looked_for_only_where_they_can_be(tmp_path: Path) -> None:
    first, second, third = (part_path(tmp_path, LOSS, part=number) for number in (1, 2, 3))
    write_part(first, LOSS, rows_of(LOSS, range(50_000)))
    write_part(second, LOSS, rows_of(LOSS, range(0)))
    write_part(third, LOSS, rows_of(LOSS, range(30_000, 60_000)))
    parts = [PartFile.at(path) for path in (first, second, third)]
    assert repeated_rows(parts[2], parts[:2]).sum() == 20_000
    write_part(third, LOSS, rows_of(LOSS, range(50_000, 60_000)))
    mask = repeated_rows(PartFile.at(third), parts[:2])
    assert not mask.any()
    assert len(mask) < 10_000
    assert open_folder(tmp_path).series("train_loss").steps.tolist() == list(range(60_000))


def test_a_file_that_is_replaced_by_another_series_is_told(tmp_path: Path) -> None:
    path = part_path(tmp_path, LOSS)
    write_part(path, LOSS, rows_of(LOSS, range(3)))
    part = PartFile.at(path)
    copy = tmp_path / "copy"
    write_part(copy, LOSS, rows_of(LOSS, range(5)))
    copy.replace(path)
    assert sum(len(piece) for piece in part.pieces()) == 3  # a newer copy of the same series
    write_part(copy, FOCUS, rows_of(FOCUS, range(3)))
    copy.replace(path)
    with pytest.raises(StoreError, match="was replaced while it was read"):
        next(part.pieces())


def test_notes_are_read_again_when_there_are_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for attempt, steps in ((1, range(30)), (2, range(20, 25))):
        write_part(part_path(tmp_path, LOSS, attempt), LOSS, rows_of(LOSS, steps), attempt=attempt)
    notes = part_path(tmp_path, LOSS, attempt=2).parent / NOTES_NAME
    notes.write_bytes(encode_note({"kind": "start", "step": 15}))
    run, read = open_folder(tmp_path), list[Path]()
    tail = NotesTail.poll
    monkeypatch.setattr(NotesTail, "poll", lambda self: read.append(self._path) or tail(self))
    for _ in range(3):
        assert run.series("train_loss").steps.tolist() == [*range(15), *range(20, 25)]
    assert read == [notes]
    with notes.open("ab") as file:
        file.write(encode_note({"kind": "start", "step": 10}))
    assert run.series("train_loss").steps.tolist() == [*range(10), *range(20, 25)]
    notes.unlink()
    assert run.series("train_loss").steps.tolist() == list(range(25))
