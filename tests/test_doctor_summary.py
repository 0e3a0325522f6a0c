"""Why is my summary empty: each cause is brought about, and told with evidence and cure."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from doctoring import PLANTED, findings, problems, record
from mindpulse.doctor.place import check_place
from mindpulse.doctor.summary import check_summary
from mindpulse.recorder import Recorder
from mindpulse.store.folder import attempt_name, rank_name
from processes import running

ROOT = os.geteuid() == 0


@contextmanager
def mounted(place: Path, *options: str) -> Iterator[Path]:
    """A small disk of its own; skipped where nothing can be mounted."""
    place.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", *options, "tmpfs", str(place)]
    if not ROOT or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("this user or container cannot mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def empty_start(run: Path, *notes: dict[str, object], attempt: int = 1) -> Path:
    """A start that left these notes and no row."""
    recorder = Recorder(run)
    for note in notes:
        recorder.note(**note)  # type: ignore[arg-type]
    recorder.flush()
    recorder.close()
    return run / attempt_name(attempt) / rank_name(0)


def test_a_run_in_order(tmp_path: Path) -> None:
    record(tmp_path)
    found = findings(check_summary(tmp_path, {}))
    assert {r.status for r in found.values()} == {"ok"}
    assert {
        *("summary_folder_there", "summary_writable", "summary_room", "summary_local"),
        *("recording_on", "summary_run", "rows_there", "attached_in_time", "sampling_reached"),
        *("probes_run", "writers_none", "format_fits", "clock_fine"),
    } == set(found)
    assert "6 rows of 1 rank(s), up to step 3" in found["rows_there"].evidence()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".doctor")]


# -- the folder -------------------------------------------------------------------------------


def test_no_folder_and_runs_beside_it(tmp_path: Path) -> None:
    found = problems(check_summary(tmp_path / "a" / "summary", {}))
    assert str(tmp_path) in found["summary_missing"].evidence()
    record(tmp_path / "experiment-7")
    found = problems(check_summary(tmp_path / "summary", {}))
    assert "experiment-7" in found["summary_missing_but"].evidence()
    assert found["summary_missing_but"].command.endswith("experiment-7")


def test_a_file_and_a_broken_link(tmp_path: Path) -> None:
    file = tmp_path / "summary"
    file.write_text("")
    assert "summary_is_file" in problems(check_summary(file, {}))
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "gone")
    assert "summary_link" in problems(check_summary(link, {}))


def test_a_folder_without_the_right_to_write(tmp_path: Path) -> None:
    record(tmp_path / "run")
    (tmp_path / "run").chmod(0o555)
    try:
        found = problems(check_summary(tmp_path / "run", {}))
        name = "summary_mode" if ROOT else "summary_refused"
        assert "0555" in found[name].evidence()
    finally:
        (tmp_path / "run").chmod(0o755)


def test_another_user_may_not_write() -> None:
    if not ROOT:
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the child only looks and ends
        Path(folder).chmod(0o755)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.setuid(65534)
            os.write(writing, " ".join(problems(check_place(Path(folder)))).encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        with os.fdopen(reading) as file:
            assert file.read() == "summary_refused"


def test_a_full_disk(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "-o", "size=256k") as disk:
        record(disk / "run")
        with suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        found = problems(check_summary(disk / "run", {}))
    assert "No space left" in found["summary_no_room"].evidence()
    assert "0 B left" in found["summary_full"].evidence()


def test_no_inodes_are_left(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "-o", "nr_inodes=20") as disk:
        record(disk / "run")
        with suppress(OSError):
            for number in range(20):
                (disk / f"{number}").touch()
        found = problems(check_summary(disk / "run", {}))
    assert {"summary_no_room", "summary_no_files"} <= set(found)
    assert "only 0 more files" in found["summary_no_files"].evidence()


def test_a_disk_that_is_nearly_full(tmp_path: Path) -> None:
    def statvfs(_: Path) -> os.statvfs_result:
        told = [4096, 4096, 10**6, 5000, 5000, 10**6, 10**5, 10**5, 0, 255]
        return os.statvfs_result(told)

    found = problems(check_place(tmp_path, statvfs=statvfs))
    assert "19.5 MiB left" in found["summary_nearly_full"].evidence()


def test_a_file_system_that_is_mounted_read_only(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk") as disk:
        record(disk / "run")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        found = problems(check_summary(disk / "run", {}))
    assert "Read-only file system" in found["summary_read_only"].evidence()


def test_a_network_file_system(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(f"30 1 0:30 / {tmp_path} rw,relatime - nfs4 server:/share rw,vers=4.2\n")
    found = problems(check_place(tmp_path, table=table))
    assert "(nfs4)" in found["summary_network"].evidence()


# -- what it is -------------------------------------------------------------------------------


def test_what_the_folder_is(tmp_path: Path) -> None:
    def finding(folder: Path) -> str:
        folder.mkdir(exist_ok=True)
        (found,) = [r for r in check_summary(folder, {}) if r.check == "summary.kind"]
        assert findings([found])
        return found.finding

    assert finding(tmp_path / "empty") == "summary_empty"
    other = tmp_path / "other"
    other.mkdir()
    (other / "log.csv").write_text("step,loss\n1,2.5\n2,2.25\n3,2.0\n")
    assert finding(other) == "summary_other_tool"
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    (nothing / "notes.txt").write_text("to do\n")
    assert finding(nothing) == "summary_not_a_run"
    lfs = tmp_path / "lfs" / "attempt-0001" / "rank-0000"
    lfs.mkdir(parents=True)
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    (lfs / "train_loss.ms").write_text(pointer)
    assert finding(tmp_path / "lfs") == "summary_lfs"
    record(tmp_path / "runs" / "one")
    record(tmp_path / "runs" / "two")
    assert finding(tmp_path / "runs") == "summary_several"
    inside = tmp_path / "runs" / "one" / "attempt-0001"
    assert finding(inside) == finding(inside / "rank-0000") == "summary_part_of_run"
    described = tmp_path / "described"
    described.mkdir()
    (described / "run.json").write_text("{}")
    assert finding(described) == "summary_no_attempt"
    (described / "attempt-0001").mkdir()
    assert finding(described) == "summary_no_rank"


@pytest.mark.parametrize("value", ["off", "0", "OFF", "false"])
def test_recording_is_switched_off(tmp_path: Path, value: str) -> None:
    found = problems(check_summary(tmp_path, {"MINDPULSE": value}))
    assert f"MINDPULSE={value}" in found["recording_off"].evidence()
    assert "recording_off" not in problems(check_summary(tmp_path, {"MINDPULSE": "on"}))


def test_a_training_that_only_compiles(tmp_path: Path) -> None:
    found = problems(check_summary(tmp_path, {"MS_SIMULATION_LEVEL": "1"}))
    assert "MS_SIMULATION_LEVEL=1" in found["recording_idle"].evidence()


# -- rows -------------------------------------------------------------------------------------

KILLED = """
import sys, time
from mindpulse.recorder import Recorder
recorder = Recorder(sys.argv[1])
recorder.note("attached", flush_interval_s=120.0, intervals={}, compiled=[], optimizer_steps=0)
recorder.note("start", step=1)
recorder.flush()
recorder.add_scalars(1, {"train_loss": 1.0})
print("here", flush=True)
time.sleep(60)
"""


def test_a_training_that_is_killed_before_its_first_write(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with running([sys.executable, "-c", KILLED, str(run)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        alive = findings(check_summary(run, {}))
        assert alive["rows_not_yet"].status == "unknown"
        assert "every 120 s" in alive["rows_not_yet"].evidence()
        assert "attempt 1, rank 0" in alive["writers_at_work"].evidence()
        late = findings(check_summary(run, {}, now=time.time() + 1000))
        assert late["rows_overdue"].status == "problem"
        process.kill()
        process.wait()
    found = problems(check_summary(run, {}))
    assert "killed before its first write" in found["rows_killed"].evidence()


def test_starts_without_a_row(tmp_path: Path) -> None:
    start = {"kind": "start", "step": 1}
    error = {"kind": "monitor_error", "what": "starting MindPulse", "error": "PlantError: none"}
    empty_start(tmp_path / "ended", start)
    assert "rows_none_ended" in problems(check_summary(tmp_path / "ended", {}))
    empty_start(tmp_path / "failed", error)
    found = problems(check_summary(tmp_path / "failed", {}))
    assert "PlantError: none" in found["rows_never_started"].evidence()
    (tmp_path / "bare" / "attempt-0001" / "rank-0000").mkdir(parents=True)
    assert "rows_no_notes" in problems(check_summary(tmp_path / "bare", {}))
    empty_start(tmp_path / "again", start)
    record(tmp_path / "again")
    found = problems(check_summary(tmp_path / "again", {}))
    assert set(found) == {"rows_none_before"}
    assert "attempt 1, rank 0" in found["rows_none_before"].evidence()


def test_the_steps_do_not_reach_a_sampling_step(tmp_path: Path) -> None:
    """Steps count from 1, 1 + n, ...: a training that goes on at 5003 first samples at 5011."""
    every = {"attn_focus": 10, "grad_sparsity": 100}
    record(tmp_path / "short", steps=4, first_step=5003, intervals=every)
    found = problems(check_summary(tmp_path / "short", {}))
    told = found["sampling_not_reached"].evidence()
    assert "from step 5003 to 5006" in told
    assert "attn_focus, grad_sparsity are due every 10 steps, the first time at step 5011" in told
    record(tmp_path / "begun", steps=4, intervals=every)
    assert not problems(check_summary(tmp_path / "begun", {}))


# -- probes -----------------------------------------------------------------------------------


def test_probes_that_never_ran_or_failed(tmp_path: Path) -> None:
    recorder = record(tmp_path, close=False)
    reason = {"reason": "planted, but the step never came by here"}
    recorder.note("probe", path="layers.0", **{**PLANTED, "state": "never ran", **reason})
    recorder.note("probe", path="layers.1", **{**PLANTED, "state": "failed"})
    recorder.close()
    found = problems(check_summary(tmp_path, {}))
    assert set(found) == {"probes_silent", "probes_failed"}
    assert "1 probe(s) were planted and never ran: layers.0" in found["probes_silent"].evidence()
    assert found["probes_silent"].command.startswith("mindpulse probe")


def test_the_hook_matched_nothing(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.note("start", step=1)
    recorder.note("probe", path="optimizer", what="optimizer", state="planted", reason="")
    skipped = {"what": "attention", "state": "skipped", "reason": "left out by include"}
    recorder.note("probe", path="layers.0", **skipped)
    recorder.add_scalars(1, {"train_loss": 1.0, "grad_norm": 1.0})
    recorder.close()
    found = problems(check_summary(tmp_path, {}))
    assert "left out by include" in found["probes_matched_nothing"].evidence()


def test_the_monitor_came_late(tmp_path: Path) -> None:
    recorder = record(tmp_path / "late", close=False, optimizer_steps=3, compiled=["Step"])
    silent = {**PLANTED, "state": "never ran"}
    recorder.note("probe", path="layers.0", **silent)
    recorder.close()
    found = problems(check_summary(tmp_path / "late", {}))
    told = found["attached_late"].evidence()
    assert "had made 3 step(s)" in told
    assert "compiled were: Step; 1 probe(s) never ran" in told
    record(tmp_path / "counted", optimizer_steps=3)
    found = problems(check_summary(tmp_path / "counted", {}))
    assert "first_step=4" in found["attached_after_steps"].cure()
    record(tmp_path / "resumed", optimizer_steps=3, first_step=4)
    assert not problems(check_summary(tmp_path / "resumed", {}))


def test_nothing_but_what_the_host_writes(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.note("start", step=1)
    recorder.note("probe", path="layers.0", **PLANTED)
    recorder.add_scalars(1, {"train_loss": 1.0, "step_time_s": 1.0, "host_memory_rss": 1.0})
    recorder.close()
    assert "rows_host_only" in problems(check_summary(tmp_path, {}))


# -- writers, format, clock -------------------------------------------------------------------


def test_two_trainings_write_one_run(tmp_path: Path) -> None:
    first, second = record(tmp_path, close=False), record(tmp_path, close=False)
    now = problems(check_summary(tmp_path, {}))
    assert "attempt 1, rank 0, and attempt 2, rank 0" in now["writers_two_now"].evidence()
    first.add_scalars(4, {"train_loss": 1.0})
    first.close()
    second.close()
    afterwards = problems(check_summary(tmp_path, {}))
    assert "attempt 1, rank 0 went on writing after" in afterwards["writers_overlap"].evidence()


def test_two_ranks_are_no_two_trainings(tmp_path: Path) -> None:
    first, second = record(tmp_path, close=False), record(tmp_path, rank=1, close=False)
    assert not problems(check_summary(tmp_path, {}))
    first.close()
    second.close()


def test_a_later_format(tmp_path: Path) -> None:
    record(tmp_path)
    path = tmp_path / "attempt-0001" / "rank-0000" / "train_loss.ms"
    data = bytearray(path.read_bytes())
    data[4] = 7
    path.write_bytes(data)
    found = problems(check_summary(tmp_path, {}))
    assert "format version 7; this MindPulse reads 1" in found["format_later"].evidence()


def test_clocks_that_are_wrong(tmp_path: Path) -> None:
    hour = 3600.0
    Recorder(tmp_path / "ahead", clock=lambda: time.time() + hour).close()
    found = problems(check_summary(tmp_path / "ahead", {}))
    assert "ahead of this machine's clock" in found["clock_ahead"].evidence()
    Recorder(tmp_path / "unset", clock=lambda: 100.0).close()
    found = problems(check_summary(tmp_path / "unset", {}))
    assert "1970-01-01 00:01:40 UTC" in found["clock_unset"].evidence()


def test_a_check_that_fails_is_no_traceback(tmp_path: Path) -> None:
    record(tmp_path)
    notes = tmp_path / "attempt-0001" / "rank-0000" / "notes.jsonl"
    notes.unlink()
    notes.mkdir()
    found = findings(check_summary(tmp_path, {}))
    assert found["check_failed"].status == "unknown"
    assert found["summary_writable"].status == "ok"


def test_a_place_where_nobody_can_make_files() -> None:
    if not Path("/proc/self").is_dir():
        pytest.skip("this system has no /proc")
    found = problems(check_place(Path("/proc/self")))
    assert {"summary_write_failed", "summary_refused"} & set(found)
