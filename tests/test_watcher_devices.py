"""What npu-smi tells while a run is watched: asked in a thread, joined to ranks, kept as series."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mindpulse.alerts import AlertEvent
from mindpulse.ascend.npu_smi import parse
from mindpulse.cli import main
from mindpulse.interop import open_run
from mindpulse.recorder import Recorder
from mindpulse.rules.load import load_rules
from mindpulse.series import SeriesSpec
from mindpulse.store.check import check_files
from mindpulse.testing import FakeClock, ScriptedWaiter
from mindpulse.watcher import watch_runs
from mindpulse.watcher.beside import Beside
from mindpulse.watcher.devices import chips_of, label, values
from mindpulse.watcher.fleet import RESCAN_S
from mindpulse.watcher.sampler import Sample, Sampler, sampler
from processes import until
from test_ascend_npu_smi import OWN

HOST = os.uname().nodename
PID = os.getpid()
MIB = 1 << 20


def table(pid: int, health: str = "OK", processes: bool = True) -> str:
    """Two NPUs of one chip, a process on the second."""
    listed = f"| 1       0       | {pid} | python3 | 59000 |\n" if processes else ""
    return f"""+-----+
| npu-smi 24.1.rc2   Version: 24.1.rc2 |
| NPU   Name   | Health | Power(W) Temp(C) Hugepages-Usage(page) |
| Chip         | Bus-Id | AICore(%) Memory-Usage(MB) HBM-Usage(MB) |
+=====+
| 0     910B2  | OK     | 90.0   40   0 / 0 |
| 0            | 0000:C1:00.0 | 0   0 / 0   3000/ 65536 |
| 1     910B2  | {health} | 310.5   61   0 / 0 |
| 0            | 0000:C2:00.0 | 93   0 / 0   60000/ 65536 |
+=====+
| NPU     Chip    | Process id | Process name | Process memory(MB) |
+=====+
{listed}"""


def tool(folder: Path, script: str) -> Path:
    """An executable of that name, as the driver installs one."""
    folder.mkdir(exist_ok=True)
    path = folder / "npu-smi"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


# The thread that asks.


def test_without_the_tool_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    before = threading.active_count()
    assert sampler(15.0) is None
    assert threading.active_count() == before
    tool(tmp_path, "exit 1")
    assert sampler(0.0) is None


def test_the_newest_answer_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tool(tmp_path, f'[ "$1" = info ] && cat {tmp_path}/table')
    (tmp_path / "table").write_text(OWN)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    asking = sampler(0.05)
    assert asking is not None
    with closing(asking):
        assert until(lambda: asking.newest)
        first = asking.newest
        assert first is not None
        assert [chip.npu for chip in first.smi.chips] == [3, 3]
        assert abs(first.wall_time - time.time()) < 10
        (tmp_path / "other").write_text(table(PID))
        (tmp_path / "other").replace(tmp_path / "table")
        assert until(lambda: asking.newest and asking.newest.smi.chips[0].name == "910B2")
    count = len(list(Path("/proc/self/task").iterdir()))
    path.unlink()
    assert until(lambda: len(list(Path("/proc/self/task").iterdir())) <= count)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("exit 3", "ended with code 3"),
        ("echo nothing of use", "printed no chips but 'nothing of use'"),
        ("sleep 1000 & sleep 1000", "gave no answer within 0.3 s"),
    ],
)
def test_a_tool_that_fails_is_told_once_and_asked_again(
    tmp_path: Path, script: str, told: str
) -> None:
    path, said = tool(tmp_path, f"echo x >> {tmp_path}/asked\n{script}"), list[str]()
    with closing(Sampler(0.05, [str(path), "info"], timeout_s=0.3, tell=said.append)) as asking:
        assert until(lambda: len((tmp_path / "asked").read_text().split()) >= 3 if said else 0)
        assert asking.newest is None
        assert len(said) == 1
        assert told in said[0]
        tool(tmp_path, f"cat <<'EOF'\n{OWN}\nEOF")
        assert until(lambda: asking.newest)
    assert not subprocess.run(
        ["pgrep", "-f", f"{path}"], capture_output=True, check=False
    ).stdout  # nothing that was killed goes on


def test_a_tool_that_is_not_there_is_told() -> None:
    said = list[str]()
    with closing(Sampler(0.05, ["/no/such/npu-smi"], tell=said.append)):
        assert until(lambda: said)
    assert "cannot be run" in said[0]


def test_closing_does_not_wait_for_an_answer(tmp_path: Path) -> None:
    asking = Sampler(5.0, [str(tool(tmp_path, "exec sleep 1000"))])
    assert until(lambda: asking._process)
    begun = time.monotonic()
    asking.close()
    assert time.monotonic() - begun < 5.0


# Which chips a process is on.


def living(*pids: int) -> Callable[[int], bool]:
    return lambda pid: pid in pids


def test_a_process_is_found_on_all_its_chips() -> None:
    assert [label(c) for c in chips_of(4711, None, parse(OWN), living(4711))] == ["6", "7"]
    assert [label(c) for c in chips_of(7, None, parse(table(7)), living(7))] == ["1"]
    assert chips_of(8, 1, parse(table(7)), living(7, 8)) == []


def test_in_a_container_the_number_of_the_device_counts() -> None:
    without, foreign = parse(table(0, processes=False)), parse(table(4_000_000))
    for smi in (without, foreign):
        assert [label(c) for c in chips_of(8, 1, smi, living(8))] == ["1"]
        assert chips_of(8, None, smi, living(8)) == []
        assert chips_of(8, 2, smi, living(8)) == []
        assert chips_of(8, 1, smi, living()) == []  # that training is over


def test_what_is_not_told_is_no_number() -> None:
    found = values(parse(OWN).chips)
    assert found["npu_alarm"] == [1.0, 0.0]
    assert found["npu_power"][0] == 201.5
    assert np.isnan(found["npu_power"][1])
    assert found["npu_utilization"][0] == 0.97
    assert found["npu_memory_used"] == [60000.0 * MIB, 123.0 * MIB]
    assert "npu_power" not in values(parse(OWN).chips[1:])


def test_two_chips_of_one_npu_have_two_names() -> None:
    without = OWN.replace("| 0     6  ", "| 0        ").replace("| 1     7  ", "| 1        ")
    assert [label(chip) for chip in parse(without).chips] == ["3", "3.1"]


# Beside a run.


class Told:
    """Stands for the thread: what it tells is set by the test."""

    def __init__(self) -> None:
        self.newest: Sample | None = None
        self._count = 0

    def tell(self, text: str) -> None:
        self._count += 1
        self.newest = Sample(1e9 + self._count, parse(text))


def training(run: Path, clock: FakeClock, pid: int = PID, host: str = HOST) -> Recorder:
    recorder = Recorder(run, clock=clock)
    recorder.note("attached", pid=pid, host=host, device=None)
    return recorder


def watched(
    run: Path, script: list[Callable[[], object]], told: Any, clock: FakeClock
) -> Iterator[AlertEvent]:
    stop = threading.Event()
    waiter = ScriptedWaiter(stop, script)
    events = watch_runs(
        [run], load_rules(), stop=stop, waiter=lambda *_: waiter, clock=clock, sampler=told
    )
    return (event for _, event in events if isinstance(event, AlertEvent))


def step(recorder: Recorder, number: int, clock: FakeClock) -> Callable[[], None]:
    def act() -> None:
        recorder.add_scalars(number, {"train_loss": 2.0})
        assert recorder.flush()
        clock.now_s += RESCAN_S

    return act


def test_the_chips_of_a_rank_become_series_of_its_run(tmp_path: Path) -> None:
    clock, told = FakeClock(), Told()
    with closing(training(tmp_path, clock)) as recorder:
        script = [
            step(recorder, 1, clock), lambda: told.tell(table(PID)), step(recorder, 2, clock),
            step(recorder, 3, clock), lambda: told.tell(table(PID, "Alarm")),
            step(recorder, 4, clock), step(recorder, 5, clock), lambda: told.tell(table(PID)),
            lambda: None, lambda: None,
        ]  # fmt: skip
        alerts = list(watched(tmp_path, script, told, clock))
    run = open_run(tmp_path)
    alarm = run.series("npu_alarm")
    assert alarm.spec.columns == (("1",),)
    assert alarm.steps.tolist() == [1, 3, 5]
    assert alarm.wall_times.tolist() == [1e9 + 1, 1e9 + 2, 1e9 + 3]
    assert alarm.values[:, 0].tolist() == [0, 2, 0]
    assert run.series("npu_temperature").values[:, 0].tolist() == [61] * 3
    assert run.series("npu_power").values[0, 0] == np.float32(310.5)
    assert run.series("npu_utilization").values[0, 0] == np.float32(0.93)
    assert run.series("npu_memory_used").values[0, 0] == 60000 * MIB
    assert run.series("npu_memory_total").spec.unit == "bytes"
    assert [(a.rule, a.severity, a.columns) for a in alerts] == [
        ("npu-unhealthy", "error", ("chip=1",)),
    ]  # fmt: skip
    reports = [report for report in check_files(tmp_path) if report.path.suffix == ".ms"]
    assert all(report.valid and not report.problem for report in reports)
    assert len(reports) == 7
    assert [note.kind for note in run.notes()] == ["attached", "end"]


def test_a_watcher_that_is_started_again_goes_on(tmp_path: Path) -> None:
    clock, told = FakeClock(), Told()
    with closing(training(tmp_path, clock)) as recorder:
        for number in (1, 2):
            script = [
                step(recorder, number, clock), lambda: told.tell(table(PID)),
                lambda: None, lambda: None,
            ]  # fmt: skip
            assert list(watched(tmp_path, script, told, clock)) == []
    assert open_run(tmp_path).series("npu_power").steps.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("pid", "host", "ends"), [(PID, "elsewhere", False), (PID + 1, HOST, False), (PID, HOST, True)]
)
def test_what_is_on_another_host_or_over_is_left_alone(
    tmp_path: Path, pid: int, host: str, ends: bool
) -> None:
    clock, told = FakeClock(), Told()
    recorder = training(tmp_path, clock, pid, host)
    script = [
        step(recorder, 1, clock), recorder.close if ends else (lambda: None),
        lambda: None, lambda: told.tell(table(PID)), lambda: None, lambda: None,
    ]  # fmt: skip
    list(watched(tmp_path, script, told, clock))
    recorder.close()
    assert not list(tmp_path.rglob("npu_*"))


def test_rows_of_the_watcher_are_no_sign_of_life(tmp_path: Path) -> None:
    clock, told = FakeClock(), Told()
    recorder = training(tmp_path, clock)
    script: list[Callable[[], object]] = [step(recorder, 1, clock), step(recorder, 2, clock)]

    def later() -> None:
        told.tell(table(PID))
        clock.now_s += 100.0

    alerts = list(watched(tmp_path, [*script, *[later] * 25], told, clock))
    recorder.close()
    assert [(a.rule, a.state) for a in alerts][:1] == [("stalled-run", "firing")]


def test_a_folder_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    said, spec = list[str](), SeriesSpec("npu_power")
    (tmp_path / "attempt-0001").write_text("in the way")
    beside = Beside(tmp_path, said.append)
    for number in range(3):
        beside.add(0, 1, spec, number, 1e9, [1.0])
        beside.flush()
    assert len(said) == 1
    assert "is not recorded" in said[0]
    (tmp_path / "attempt-0001").unlink()
    beside.add(0, 1, spec, 3, 1e9, [1.0])
    beside.flush()
    assert open_run(tmp_path).series("npu_power").steps.tolist() == [3]  # nothing was piled up


def test_the_command_asks_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path / "bin", f"cat <<'EOF'\n{table(PID)}\nEOF")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    run = tmp_path / "run"
    recorder = Recorder(run)
    recorder.note("attached", pid=PID, host=HOST)
    recorder.add_scalars(7, {"train_loss": 2.0})
    assert recorder.flush()
    command = [sys.executable, "-m", "mindpulse.cli", "watch", str(run), "--device-interval", "0.1"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as child:
        try:
            path = run / "attempt-0001" / "rank-0000" / "npu_temperature.ms"
            assert until(lambda: path.exists() and len(open_run(run).series("npu_temperature")), 60)
        finally:
            child.terminate()
    recorder.close()
    assert open_run(run).series("npu_temperature").values[0, 0] == 61
    shown = CliRunner().invoke(main, ["analyze", str(run)])
    assert "npu_temperature" in shown.output
