"""Profiles that land in a run while it is watched: read once, kept as series, judged."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mindpulse.alerts import AlertEvent
from mindpulse.alerts.journal import read_alerts
from mindpulse.ascend.profile import read_profile
from mindpulse.interop import open_run
from mindpulse.recorder import Recorder
from mindpulse.rules.load import load_rules
from mindpulse.store.check import check_files
from mindpulse.testing import FakeClock, ScriptedWaiter, write_run
from mindpulse.watcher import watch, watch_runs
from mindpulse.watcher.fleet import RESCAN_S
from mindpulse.watcher.profiles import FIGURES, OUTPUT, QUIET_S, figures_of

KERNELS = (
    "Name,Type,Accelerator Core,Start Time(us),Duration(us),cube_utilization(%),"
    "aic_r0_read_cache_hit,aic_r0_read_cache_miss_allocate\n"
)
LOW = (
    "a,FlashAttentionScore,MIX_AIC,1,2,50,40,60\n"
    "b,FlashAttentionScoreGrad,MIX_AIC,3,2,50,70,30\n"
    "c,MatMulV3,AI_CORE,5,4,80,10,90\n"
)
REAL = Path(__file__).parent.parent.parent / "shared" / "real" / "ascend_profiler"


def profile(rank: Path, step: int = 120, kernels: str = KERNELS + LOW, old: bool = True) -> Path:
    """A profile as the analysis leaves it."""
    place = rank / "profiles" / f"s{step:06d}"
    folder = place / "host_1_20261201_ascend_ms" / OUTPUT
    folder.mkdir(parents=True)
    (folder / "kernel_details.csv").write_text(kernels)
    (folder / "step_trace_time.csv").write_text(
        "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble\n"
        "120,60.0,30.0,0,30.0,10.0,100.0,0\n"
    )
    if old:
        for path in folder.iterdir():
            os.utime(path, (1e9, 1e9))
    return place


def alerts(run: Path, **options: bool) -> list[AlertEvent]:
    told = watch(run, load_rules(), **options)
    return [event for event in told if isinstance(event, AlertEvent)]


def test_its_figures_become_series_and_the_rule_names_the_operator(tmp_path: Path) -> None:
    rank = write_run(tmp_path, train_loss=[2.0] * 150)
    place = profile(rank)
    told = alerts(tmp_path, once=True)
    assert [(a.rule, a.step, a.columns) for a in told] == [
        ("l2-hit-rate-low", 120, ("operator=FlashAttentionScore",)),
    ]  # fmt: skip
    run = open_run(tmp_path)
    rates = run.series("l2_hit_rate")
    assert rates.spec.columns == (("FlashAttentionScore",), ("FlashAttentionScoreGrad",))
    assert rates.steps.tolist() == [120]
    assert rates.values[0].tolist() == pytest.approx([0.4, 0.7])
    assert run.series("comm_not_overlapped_share").values.tolist() == [0.3]
    assert run.series("device_free_share").values.tolist() == [0.1]
    wanted = read_profile(place).figures()["cube_utilization"]
    assert run.series("cube_utilization").values.tolist() == [wanted]
    assert wanted == pytest.approx((2 * 0.5 + 2 * 0.5 + 4 * 0.8) / 8)
    kept = json.loads((place / FIGURES).read_text())
    assert kept["l2_hit_rate"] == {"FlashAttentionScore": 0.4, "FlashAttentionScoreGrad": 0.7}
    assert all(not r.problem for r in check_files(tmp_path))


def test_it_is_read_once_and_a_later_one_too(tmp_path: Path) -> None:
    rank = write_run(tmp_path, train_loss=[2.0] * 300)
    profile(rank)
    assert len(alerts(tmp_path, once=True)) == 1
    assert alerts(tmp_path, once=True) == []
    assert open_run(tmp_path).series("l2_hit_rate").steps.tolist() == [120]
    profile(rank, 240, KERNELS + LOW.replace("40,60", "90,10"))
    alerts(tmp_path, once=True)
    assert open_run(tmp_path).series("l2_hit_rate").steps.tolist() == [120, 240]


def test_other_operators_may_miss_their_cache(tmp_path: Path) -> None:
    profile(write_run(tmp_path, train_loss=[2.0] * 150), kernels=KERNELS + LOW.splitlines()[2])
    assert alerts(tmp_path, once=True) == []
    assert "l2_hit_rate" not in open_run(tmp_path).specs()
    assert "cube_utilization" in open_run(tmp_path).specs()


def test_an_analysis_that_still_writes_is_waited_for(tmp_path: Path) -> None:
    place = profile(write_run(tmp_path, train_loss=[2.0] * 150), old=False)
    assert alerts(tmp_path, once=True) == []
    assert not (place / FIGURES).exists()
    for path in place.rglob("*.csv"):
        os.utime(path, (time.time() - QUIET_S - 1,) * 2)
    assert len(alerts(tmp_path, once=True)) == 1


def test_a_profile_that_cannot_be_read_is_told_and_left(tmp_path: Path) -> None:
    said = list[str]()
    place = profile(write_run(tmp_path, train_loss=[2.0] * 150))
    for path in place.rglob("*.csv"):
        path.write_bytes(b"\0\1\2" * 50)
        os.utime(path, (1e9, 1e9))
    for _ in range(2):
        list(watch_runs([tmp_path], load_rules(), once=True, tell=said.append))
    assert len(said) == 1
    assert "kernel_details.csv" in said[0] or "step_trace_time.csv" in said[0]
    assert (place / FIGURES).exists()
    assert sorted(open_run(tmp_path).specs()) == ["train_loss"]


def test_a_run_that_is_watched_reads_it_in_a_thread(tmp_path: Path) -> None:
    rank, stop = write_run(tmp_path, train_loss=[2.0] * 150), threading.Event()
    profile(rank)
    for event in watch(tmp_path, load_rules(), stop=stop):
        if isinstance(event, AlertEvent) and event.rule == "l2-hit-rate-low":
            stop.set()
    assert open_run(tmp_path).series("l2_hit_rate").steps.tolist() == [120]


def test_a_run_that_ended_stays_awake_until_its_profile_was_read(tmp_path: Path) -> None:
    clock = FakeClock(time.time())
    recorder = Recorder(tmp_path, clock=clock)
    recorder.add_scalars(150, {"train_loss": 2.0})
    recorder.close()
    place = profile(tmp_path / "attempt-0001" / "rank-0000", old=False)
    stop, seen = threading.Event(), list[bool]()

    def later(seconds: float) -> Callable[[], None]:
        def act() -> None:
            seen.append((tmp_path / "watcher.json").exists())
            clock.now_s += seconds

        return act

    def settle() -> None:
        later(RESCAN_S)()
        for path in place.rglob("*.csv"):
            os.utime(path, (clock.now_s - 60,) * 2)

    def read() -> None:
        time.sleep(0.5)
        later(RESCAN_S)()

    for path in place.rglob("*.csv"):
        os.utime(path, (clock.now_s + 500,) * 2)
    script = [later(100), later(100), settle, read, later(100)]
    waiter = ScriptedWaiter(stop, script)
    list(watch(tmp_path, load_rules(), stop=stop, waiter=lambda *_: waiter, clock=clock))
    assert seen == [True] * 4 + [False]
    assert [alert.rule for alert in read_alerts(tmp_path)] == ["l2-hit-rate-low"]
    assert open_run(tmp_path).series("l2_hit_rate").steps.tolist() == [120]


def test_folders_of_other_names_are_left_alone(tmp_path: Path) -> None:
    rank = write_run(tmp_path, train_loss=[2.0] * 150)
    profile(rank).rename(rank / "profiles" / "mine")
    (rank / "profiles" / "s000005").mkdir()
    (rank / "profiles" / "s000006").write_text("a file")
    assert alerts(tmp_path, once=True) == []
    assert not list(tmp_path.rglob(FIGURES))


@pytest.mark.skipif(not REAL.is_dir(), reason=f"{REAL} is not here")
def test_figures_of_real_profiles_are_those_that_are_shown() -> None:
    seen = 0
    for folder in sorted(path for path in REAL.iterdir() if path.is_dir()):
        try:
            told = figures_of(folder)
        except Exception as error:
            pytest.fail(f"{folder}: {error!r}")
        shown = read_profile(folder).figures()
        assert told.keys() - {"l2_hit_rate"} == shown.keys() - {"l2_hit_rate"}, folder
        seen += bool(told)
    assert seen
