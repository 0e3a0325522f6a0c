"""The recorder writes event files for other tools beside ours, live, and never at our cost."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from event_samples import points
from faulty_files import FaultyFiles
from mindpulse import open_run
from mindpulse.errors import UsageError
from mindpulse.interop.events.run import EventsRun
from mindpulse.recorder import Recorder
from mindpulse.series import Rows, SeriesSpec
from series_samples import FOCUS, rows_of

BOTH = ("tensorboard", "mindspore")


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_tensorboard_reads_live_what_ours_reads(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, mirror="tensorboard")
    live = EventAccumulator(str(tmp_path / "tensorboard"), size_guidance={"scalars": 0})
    for stop in (50, 170, 300):
        for step in range(stop - 50, stop):
            recorder.add_scalars(step, {"train_loss": 1 / (step + 1), "my value": float(step)})
        assert recorder.flush()
        ours = open_run(tmp_path).series("train_loss")
        theirs = live.Reload().Scalars("train/loss")
        assert [e.step for e in theirs] == ours.steps.tolist()
        assert [e.wall_time for e in theirs] == ours.wall_times.tolist()
        assert [e.value for e in theirs] == ours.values.astype(np.float32).tolist()
        assert len(live.Scalars("my value")) == len(ours)
    recorder.close()
    assert recorder.stats.errors == 0


def test_both_at_once_hold_the_wide_series_too(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, mirror=BOTH)
    rows = rows_of(FOCUS, range(40))
    recorder.write(FOCUS, rows)
    recorder.note("tag", key="data set", text="wiki")
    recorder.close()
    for name in BOTH:
        run = EventsRun(tmp_path / name)
        for index in range(FOCUS.width):
            column = run.series(f"{FOCUS.tag}/{FOCUS.column_name(index)}")
            assert column.steps.tolist() == rows.steps.tolist()
            wanted = rows.values[:, index].astype(np.float32)
            assert np.array_equal(column.values, wanted, equal_nan=True)
    assert EventsRun(tmp_path / "tensorboard").run_tags["data set"] == "wiki"
    (file,) = files_in(tmp_path / "mindspore")
    assert file.name.endswith("_MS")


def test_numbers_of_one_step_are_one_event(tmp_path: Path) -> None:
    with_mirror = Recorder(tmp_path, mirror="mindspore")
    for step in range(9):
        with_mirror.add_scalars(step, {"a": 1.0, "b": 2.0})
    with_mirror.close()
    (file,) = files_in(tmp_path / "mindspore")
    assert {tag: len(found) for tag, found in points(file, "mindspore").items()} == {"a": 9, "b": 9}
    (report,) = EventsRun(file).files()
    assert report.rows == 1 + 9


def test_no_mirror_no_folder(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.add_scalars(1, {"a": 1.0})
    recorder.close()
    assert not (tmp_path / "tensorboard").exists()
    with pytest.raises(UsageError, match="mirror 'wandb'"):
        Recorder(tmp_path / "other", mirror="wandb")
    assert not (tmp_path / "other").exists()


def test_a_mirror_is_no_foreign_file(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, mirror=BOTH)
    recorder.add_scalars(1, {"a": 1.0})
    recorder.close()
    assert [(report.tag, report.valid) for report in open_run(tmp_path).files()] == [("a", True)]


def test_an_attempt_supersedes_in_the_mirror_too(tmp_path: Path) -> None:
    now = [1.7e9]
    for first in (0, 30):
        recorder = Recorder(tmp_path, mirror="tensorboard", clock=lambda: now[0])
        recorder.note("start", step=first)
        for step in range(first, first + 50):
            recorder.add_scalars(step, {"train_loss": float(first)})
        recorder.close()
        now[0] += 100
    ours = open_run(tmp_path).series("train_loss")
    mirror = EventsRun(tmp_path / "tensorboard").series("train_loss")
    shown = EventAccumulator(str(tmp_path / "tensorboard"), size_guidance={"scalars": 0}).Reload()
    assert ours.steps.tolist() == list(range(80))
    assert mirror.values.tolist() == ours.values.tolist()
    assert [event.value for event in shown.Scalars("train/loss")] == ours.values.tolist()


def test_other_ranks_have_a_folder_each(tmp_path: Path) -> None:
    for rank in (0, 2):
        recorder = Recorder(tmp_path, rank=rank, mirror=BOTH)
        recorder.add_scalars(1, {"a": float(rank)})
        recorder.close()
    for name in BOTH:
        run = EventsRun(tmp_path / name)
        assert run.ranks == [0, 2]
        assert [run.series("a", rank=rank).values.tolist() for rank in (0, 2)] == [[0.0], [2.0]]


class FullMirror(FaultyFiles):
    """A disk on which only event files find no room."""

    def __init__(self) -> None:
        super().__init__(lambda number, name: False, errno.ENOSPC)
        self.full = True

    def open(self, path: Path, flags: int) -> int:
        if self.full and "tensorboard" in path.parts:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return super().open(path, flags)


def test_a_full_disk_costs_only_the_mirror(tmp_path: Path) -> None:
    files = FullMirror()
    recorder = Recorder(tmp_path, mirror="tensorboard", files=files)
    for step in range(100):
        recorder.add_scalars(step, {"a": float(step)})
    assert recorder.flush()
    assert len(open_run(tmp_path).series("a")) == 100
    assert recorder.stats.rows_lost == 0
    assert recorder.stats.errors == 1
    assert "tensorboard" in recorder.stats.last_error
    files.full = False
    recorder.add_scalars(100, {"a": 100.0})
    recorder.close()
    assert EventsRun(tmp_path / "tensorboard").series("a").steps.tolist() == list(range(101))
    kinds = [note.kind for note in open_run(tmp_path).notes()]
    assert kinds.count("recorder_error") == 1


def test_a_mirror_takes_bounded_memory(tmp_path: Path) -> None:
    files = FullMirror()
    recorder = Recorder(tmp_path, mirror="tensorboard", files=files, capacity_bytes=1 << 20)
    spec = SeriesSpec("a")
    for first in range(0, 40_000, 4000):
        steps = np.arange(first, first + 4000)
        recorder.write(spec, Rows(steps, np.full(4000, 1.7e9), steps[:, None] / 2))
        recorder.flush()
    (mirror,) = recorder._mirrors
    assert mirror._writer.pending_bytes < 2 * (1 << 18)
    told = [str(note.data.get("error")) for note in open_run(tmp_path).notes()]
    assert sum("too much waited and is lost here" in error for error in told) == 1
    files.full = False
    recorder.add_scalars(40_000, {"a": 1.0})
    recorder.close()
    assert len(open_run(tmp_path).series("a")) == 40_001
    assert EventsRun(tmp_path / "tensorboard").series("a").steps[-1] == 40_000


def test_much_in_one_batch_is_kept_while_the_disk_takes_it(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, mirror="mindspore", capacity_bytes=4 << 20)
    steps = np.arange(100_000)
    recorder.write(SeriesSpec("a"), Rows(steps, np.full(100_000, 1.7e9), steps[:, None] / 2))
    recorder.close()
    assert recorder.stats.errors == 0
    assert len(EventsRun(tmp_path / "mindspore").series("a")) == 100_000


def test_what_the_recorder_refuses_is_not_mirrored(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, mirror="tensorboard")
    bad: object = "text"
    recorder.add_scalars(1, {"a": 1.0, "b": bad})  # type: ignore[dict-item]
    recorder.add_scalars(2, {"a": 2.0, "b": 3.0})
    recorder.write(FOCUS, Rows.one(1, 1.7e9, 2.0))
    recorder.write("no spec", Rows.one(1, 1.7e9, 2.0))  # type: ignore[arg-type]
    recorder.write(SeriesSpec("c"), Rows.one(1, 1.7e9, 4.0))
    recorder.close()
    run, ours = EventsRun(tmp_path / "tensorboard"), open_run(tmp_path)
    assert list(run.specs()) == list(ours.specs()) == ["a", "b", "c"]
    for tag in "abc":
        assert run.series(tag).values.tolist() == ours.series(tag).values.tolist()
