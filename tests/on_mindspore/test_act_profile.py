"""profile: a window of steps under MindSpore's profiler, asked for while the training runs."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from acting import Asking, asked, assert_same_state, plain, wait_until
from mindpulse import open_run
from mindpulse.cli.profile import analysed
from mindpulse.mindspore.acting import profiling
from mindpulse.mindspore.acting.profiling import Profile
from mindpulse.mindspore.acting.verb import RefusedError
from nets import batches
from ways import builder

ARGS = {"steps": 3.0, "rank": -1.0, "metrics": 0.0}


def operators(folder: Path) -> dict[str, int]:
    """Type -> how often it ran, out of the profiler's own table."""
    place = analysed(folder, time.monotonic() + 60)
    assert place is not None
    with next(place.glob("FRAMEWORK/cpu_op_type_info_*.csv")).open() as file:
        return {row["op_type"]: int(row["type_occurrences"]) for row in csv.DictReader(file)}


@pytest.mark.parametrize("how", ["graph", "jit", "pynative"])
def test_a_window_is_profiled_and_no_bit_changes(how: str, tmp_path: Path) -> None:
    requests = [("profile", ARGS, 3), ("profile", ARGS | {"steps": 2.0}, 7)]
    watched = asked(builder(how), batches(9), tmp_path, requests)
    assert watched.told == [(1, "done", 3), (2, "done", 7)]
    assert_same_state(watched, plain(builder(how), batches(9)))
    rank = tmp_path / "attempt-0001" / "rank-0000"
    first, second = (operators(rank / "profiles" / name) for name in ("s000003", "s000007"))
    assert (first["Softmax"], second["Softmax"]) == (3, 2)  # of one layer, once a step
    noted = [n for n in open_run(tmp_path).notes() if n.kind == "profile"]
    assert [(n.step, n.data["last_step"], n.data["folder"]) for n in noted] == [
        (3, 5, "profiles/s000003"), (7, 8, "profiles/s000007"),
    ]  # fmt: skip
    assert not any(report.problem for report in open_run(tmp_path).files())


def test_a_training_that_ends_within_the_window_keeps_what_was_seen(tmp_path: Path) -> None:
    watched = asked(
        builder("graph"), batches(4), tmp_path, [("profile", ARGS | {"steps": 50.0}, 3)]
    )
    assert [answer.status for answer in watched.answers] == ["done"]
    noted = [n for n in open_run(tmp_path).notes() if n.kind == "profile"]
    assert [(n.step, n.data["last_step"]) for n in noted] == [(3, 4)]
    assert operators(tmp_path / "attempt-0001" / "rank-0000" / noted[0].data["folder"])


def test_a_second_window_within_the_first_is_refused(tmp_path: Path) -> None:
    requests = [("profile", ARGS | {"steps": 4.0}, 2), ("profile", ARGS, 4)]
    watched = asked(builder("graph"), batches(6), tmp_path, requests)
    assert [answer.status for answer in watched.answers] == ["done", "refused"]
    assert "being taken until step 5" in watched.answers[1].detail


def test_a_profiler_of_the_training_is_left_alone(tmp_path: Path) -> None:
    from mindspore import profiler

    own = profiler.profile(
        activities=[profiler.ProfilerActivity.CPU],
        start_profile=False,
        schedule=profiler.schedule(wait=0, warmup=0, active=100, repeat=1),
        on_trace_ready=profiler.tensorboard_trace_handler(str(tmp_path / "own"), async_mode=True),
    )
    own.start()
    try:
        watched = asked(builder("graph"), batches(3), tmp_path / "run", [("profile", ARGS, 2)])
    finally:
        own.stop()
    assert [answer.status for answer in watched.answers] == ["refused"]
    assert "uses MindSpore's profiler itself" in watched.answers[0].detail


class Failing:
    """A profiler that breaks at a step."""

    def __init__(self, *_: Any) -> None:
        self.stopped = False

    def start(self) -> None:
        """Well."""

    def step(self) -> None:
        """Not well."""
        raise RuntimeError("the device has no counters left")

    def stop(self) -> None:
        """Well."""
        self.stopped = True


def test_a_profiler_that_fails_costs_the_profile_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Failing] = []

    def make(*_: Any) -> Failing:
        made.append(Failing())
        return made[-1]

    monkeypatch.setattr(profiling, "mindspore_profiler", make)

    def at(step: int, out: Asking) -> None:
        out.monitor._guard.failures = 0

    watched = asked(builder("graph"), batches(6), tmp_path, [("profile", ARGS, 2)], at=at)
    assert [answer.status for answer in watched.answers] == ["done"]
    assert [one.stopped for one in made] == [True]
    assert_same_state(watched, plain(builder("graph"), batches(6)))
    notes = [n for n in open_run(tmp_path).notes() if n.kind == "monitor_error"]
    assert any("no counters left" in str(n.data["error"]) for n in notes)


def test_a_disk_without_room_and_another_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = Profile(tmp_path, 0, print)
    told, _ = profile.do(ARGS | {"rank": 3.0}, 5)
    assert told == "rank 3 is profiled, not this one"
    assert profile.until is None
    usage = namedtuple("usage", "total used free")(10, 9, 1_000_000_000)
    monkeypatch.setattr(profiling.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(RefusedError, match=r"1\.0 GB are free; a profile may take 2 GB"):
        profile.do(ARGS, 5)


TRAINING = """
import sys, time
from nets import batches
from ways import builder
from mindpulse.mindspore import attach
training = builder("graph")()
monitor = attach(training.net, training.optimizer, summary_dir=sys.argv[1], measures="cheap",
                 train_cell=training.cell, flush_interval=0.5)
for batch in batches(100_000):
    training.step(*batch)
    if monitor.step():
        break
    time.sleep(0.02)
monitor.close()
"""


def test_the_command_and_a_running_training(tmp_path: Path) -> None:
    run, folder = tmp_path / "run", Path(__file__).parent
    script = tmp_path / "train.py"
    script.write_text(f"import sys\nsys.path[:0] = [{str(folder)!r}]\n{TRAINING}")
    training = subprocess.Popen([sys.executable, str(script), str(run)], cwd=tmp_path)
    try:
        wait_until(lambda: bool(list(run.glob("attempt-0001/rank-0000/step_time_s.ms"))), 60)
        told = mindpulse("profile", run, "--steps", "5", "--json")
        assert told.returncode == 0, told.stderr
        [(place, found)] = json.loads(told.stdout)["profiles"].items()
        assert found.startswith(place)
        assert operators(Path(place))
    finally:
        stopped = mindpulse("act", run, "stop")
        training.wait(10 if stopped.returncode else 60)
    assert training.returncode == 0, stopped.stderr
    late = mindpulse("profile", run)
    assert late.returncode == 2
    assert "no training writes here now" in late.stderr


def mindpulse(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mindpulse.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
