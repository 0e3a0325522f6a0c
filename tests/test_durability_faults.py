"""The n-th call to the system fails, n = 1 to 100: training goes on, every row is accounted for."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest

from faulty_files import FaultyFiles
from mindpulse.recorder import Recorder
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.entries import Block, Scalars, Told
from mindpulse.store.folder import create_attempt
from mindpulse.store.folder_run import open_folder
from mindpulse.store.reader import RunTail
from mindpulse.store.recording import RecorderStats, Recording
from mindpulse.store.writer import RankWriter
from series_samples import FOCUS

pytestmark = pytest.mark.slow

CALLS = 100
STEPS = 24
SHORT_WRITE = 0
NO_SYNC = -1
CODES = [SHORT_WRITE, errno.ENOSPC, errno.EIO, errno.EINTR, NO_SYNC]
NAMES = ["short_write", "ENOSPC", "EIO", "EINTR", "failed_sync"]
WIDE = SeriesSpec("grad_norm_param", "vector", "", ("p",), tuple((f"{i}",) for i in range(60)))
NARROWER = SeriesSpec("grad_norm_param", "vector", "", ("p",), tuple((f"{i}",) for i in range(9)))
TAGS = ("train_loss", "learning_rate", FOCUS.tag, WIDE.tag)
ROWS_A_STEP = len(TAGS)


def faulty(nth: int, code: int, sticky: bool) -> FaultyFiles:
    """Fails at the n-th call, or from then on; a failed sync at the n-th sync."""
    syncs: list[int] = []

    def when(number: int, name: str) -> bool:
        if code != NO_SYNC:
            return number >= nth if sticky else number == nth
        if name not in ("fdatasync", "sync_folder"):
            return False
        syncs.append(number)
        return len(syncs) >= nth if sticky else len(syncs) == nth

    return FaultyFiles(when, errno.EIO if code == NO_SYNC else code)


def one_row(spec: SeriesSpec, step: int) -> Rows:
    values = step + np.arange(spec.width) / 8
    return Rows(np.array([step]), np.array([float(step)]), values.astype(spec.dtype)[None, :])


def train(made: Recording, first: int, steps: int) -> None:
    """Steps of half a second; the columns of a series change on the way."""
    for step in range(first, first + steps):
        wide = NARROWER if step > STEPS // 2 else WIDE
        made.take([Scalars(step, float(step), {"train_loss": step, "learning_rate": step / 8})])
        made.take([Block(FOCUS, one_row(FOCUS, step)), Block(wide, one_row(wide, step))])
        made.take([Told({"kind": "at", "step": step, "wall_time": float(step)})])
        made.turn(step / 2)


def recorded(run: Path, files: FaultyFiles, capacity_bytes: int) -> Recording:
    writer = RankWriter(create_attempt(run), 0, 1, files=files, max_file_bytes=4000)
    return Recording(
        run,
        writer,
        files,
        flush_interval=1.0,
        capacity_bytes=capacity_bytes,
        clock=lambda: 0.0,
    )


def check(run: Path, stats: RecorderStats, given: int) -> None:
    """Written and lost are what was given; read is what was written, in line, once, and right."""
    assert stats.rows_written + stats.rows_lost == given
    opened = open_folder(run)
    read = 0
    for tag in opened.specs():
        series = opened.series(tag)
        steps = series.steps.tolist()
        assert steps == sorted(set(steps)), tag
        scale = 8 if tag == "learning_rate" else 1
        np.testing.assert_array_equal(np.atleast_2d(series.rows.values)[:, 0] * scale, steps)
        read += len(steps)
    assert read == stats.rows_written
    followed = sum(len(chunk.rows) for chunk in RunTail(run).poll() if hasattr(chunk, "rows"))
    assert followed == read
    told = [note.data["rows"] for note in opened.notes() if note.kind == "rows_lost"]
    assert sum(told) == stats.rows_lost
    if stats.errors:
        assert "recorder_error" in {note.kind for note in opened.notes()}


@pytest.mark.parametrize("sticky", [False, True], ids=["once", "from_then_on"])
@pytest.mark.parametrize("code", CODES, ids=NAMES)
def test_a_fault_at_the_nth_call(tmp_path: Path, code: int, sticky: bool) -> None:
    for nth in range(1, CALLS + 1):
        run = tmp_path / str(nth)
        files = faulty(nth, code, sticky)
        made = recorded(run, files, 1 << 20)
        train(made, 1, STEPS)
        if code == NO_SYNC and not files.faults:
            continue  # there are not so many syncs
        assert files.faults, nth
        files.when = lambda number, name: False
        train(made, STEPS + 1, 15)
        assert made.flush(100.0)
        assert made.sync(100.0)
        assert made.stats.rows_lost == 0, nth
        check(run, made.stats, ROWS_A_STEP * (STEPS + 15))


@pytest.mark.parametrize("code", CODES[:4], ids=NAMES[:4])
def test_what_does_not_fit_into_memory_is_counted_and_told(tmp_path: Path, code: int) -> None:
    """The disk is full for so long that rows have to go: the oldest do."""
    for nth in (1, 2, 5, 17, 40, 77, 100):
        run = tmp_path / str(nth)
        files = faulty(nth, code, sticky=True)
        made = recorded(run, files, 20_000)
        train(made, 1, STEPS)
        files.when = lambda number, name: False
        train(made, STEPS + 1, 15)
        assert made.flush(100.0)
        assert made.stats.rows_lost > 0 or code == SHORT_WRITE, nth
        check(run, made.stats, ROWS_A_STEP * (STEPS + 15))


@pytest.mark.parametrize("sticky", [False, True], ids=["once", "from_then_on"])
@pytest.mark.parametrize("code", CODES, ids=NAMES)
def test_the_training_side_never_notices(tmp_path: Path, code: int, sticky: bool) -> None:
    """With the real recorder and its thread: no call raises; what is read is what it says."""
    for nth in (1, 2, 3, 7, 20, 50):
        run = tmp_path / str(nth)
        files = faulty(10**9, code, sticky)
        recorder = Recorder(run, flush_interval=0.01, files=files)
        files.when = faulty(len(files.calls) + nth, code, sticky).when
        for step in range(1, 30):
            recorder.add_scalars(step, {"train_loss": float(step), "learning_rate": step / 8})
            recorder.write(FOCUS, one_row(FOCUS, step))
            if step % 9 == 0:
                recorder.flush()
        recorder.close()
        stats = recorder.stats
        assert stats.rows_written + stats.rows_lost == 3 * 29
        opened = open_folder(run)
        read = sum(len(opened.series(tag)) for tag in opened.specs())
        assert read == stats.rows_written, nth
        assert stats.rows_lost == 0 or sticky


def test_a_failed_sync_while_columns_change_loses_nothing(tmp_path: Path) -> None:
    """The first writer of the tag must stay until its rows are safe."""
    files = FaultyFiles(lambda number, name: False, errno.EIO)
    made = recorded(tmp_path, files, 1 << 20)
    made.take([Block(WIDE, one_row(WIDE, 1))])
    made.flush(0.0)
    made.take([Block(WIDE, one_row(WIDE, 2)), Block(NARROWER, one_row(NARROWER, 3))])
    files.when = lambda number, name: name == "fdatasync"
    assert not made.flush(1.0)
    files.when = lambda number, name: False
    for path in tmp_path.glob("attempt-*/rank-*/*.ms"):
        path.write_bytes(b"")  # the worst case: the disk has nothing
    assert made.flush(2.0)
    assert open_folder(tmp_path).series(WIDE.tag).steps.tolist() == [1, 2, 3]
    assert made.stats.rows_written == 3
