"""What is wrong with a run: each fault is put into one, and told; and what the command prints."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from doctoring import findings, problems, record
from faulty_files import FaultyFiles
from mindpulse.alerts.journal import Journal
from mindpulse.alerts.life import AlertEvent
from mindpulse.cli import main
from mindpulse.doctor.checked import checked
from mindpulse.doctor.result import Result, in_order
from mindpulse.doctor.run import check_run
from mindpulse.recorder import Recorder
from mindpulse.rules.load import load_rules
from mindpulse.series import SeriesSpec
from mindpulse.store.check import check_files
from run_files import part_path, write_part
from series_samples import rows_of

SHOULD_BE = {"run_files_whole", "run_nothing_lost", "run_no_errors", "run_ended"}


def test_a_run_in_order(tmp_path: Path) -> None:
    record(tmp_path)
    found = findings(check_run(tmp_path))
    assert SHOULD_BE | {"run_ranks_together", "run_versions_fit"} <= set(found)
    assert {name for name, r in found.items() if r.status != "ok"} == {"run_not_watched"}
    assert found["run_not_watched"].command == f"mindpulse report {tmp_path}"


def test_what_was_lost(tmp_path: Path) -> None:
    recorder = record(tmp_path, close=False)
    recorder.note("steps_lost", count=7)
    recorder.note("steps_lost", count=5)
    recorder.note("calls_lost", count=2)
    recorder.close()
    found = problems(check_run(tmp_path))
    assert "12 step(s) were overwritten" in found["run_steps_lost"].evidence()
    assert "2 call(s)" in found["run_calls_lost"].evidence()


def test_rows_that_a_full_disk_did_not_take(tmp_path: Path) -> None:
    """The recorder itself loses them: the disk is full from some call on, and then has room."""
    full = [False]
    files = FaultyFiles(lambda _, name: full[0] and name == "pwrite", errno.ENOSPC)
    recorder = Recorder(tmp_path, files=files, capacity_bytes=2000)
    full[0] = True
    recorder.note("start", step=1)
    for step in range(1, 400):
        recorder.add_scalars(step, {"train_loss": 1.0})
    recorder.flush()
    full[0] = False
    recorder.flush()
    recorder.close()
    found = problems(check_run(tmp_path))
    assert "row(s) could not be written" in found["run_rows_lost"].evidence()
    assert "No space left" in found["run_recorder_error"].evidence()


def test_errors_of_the_monitor(tmp_path: Path) -> None:
    recorder = record(tmp_path, close=False)
    for _ in range(3):
        recorder.note("monitor_error", what="reading the ring", error="RuntimeError: device")
    recorder.close()
    told = problems(check_run(tmp_path))["run_monitor_error"].evidence()
    assert told == "attempt 1, rank 0: reading the ring failed (3 time(s)): RuntimeError: device"


def test_damaged_files(tmp_path: Path) -> None:
    record(tmp_path)
    spec = SeriesSpec("val_loss")
    rows = rows_of(spec, range(20))
    write_part(part_path(tmp_path, spec), spec, rows, damaged={4, 5})
    (tmp_path / "run.json").write_text("{")
    found = problems(check_run(tmp_path, check_files(tmp_path)))
    told = found["run_damaged"].evidence()
    assert "1 file(s) are damaged (2 rows): attempt-0001/rank-0000/val_loss.ms" in told
    assert found["run_damaged"].command == f"mindpulse repair {tmp_path} --dry-run"
    assert "the description of the run is damaged" in found["run_description"].evidence()


def test_an_end_that_is_missing_and_one_that_hangs(tmp_path: Path) -> None:
    recorder = record(tmp_path, close=False)
    assert "run_running" in findings(check_run(tmp_path))
    hangs = problems(check_run(tmp_path, now=recorder._clock() + 1000))
    assert "since step 3" in hangs["run_hangs"].evidence()
    recorder.close()
    notes = recorder.directory / "notes.jsonl"
    notes.write_bytes(b"".join(notes.read_bytes().splitlines(keepends=True)[:-1]))
    ended = problems(check_run(tmp_path))
    assert "ended without a word, after step 3" in ended["run_no_end"].evidence()


def test_ranks_that_are_missing_or_behind(tmp_path: Path) -> None:
    record(tmp_path, steps=200)
    record(tmp_path, steps=3, rank=2)
    found = problems(check_run(tmp_path))
    assert "missing: 1" in found["run_ranks_missing"].evidence()
    assert "rank 2 is at step 3 while others are at 200" in found["run_ranks_behind"].evidence()


def test_versions_that_do_not_go_together(tmp_path: Path) -> None:
    Recorder(tmp_path, fingerprint={"mindspore": "2.10.0", "numpy": "2.2.0"}).close()
    told = problems(check_run(tmp_path))["run_misfit"].evidence()
    assert "mindspore 2.10.0 and numpy 2.2.0" in told


def alert(rule: str, state: str, severity: str = "critical", **more: str) -> AlertEvent:
    return AlertEvent(f"{rule}-1", rule, state, severity, "loss", 9, 7, 1.0, 0, 1, **more)  # type: ignore[arg-type]


def test_alerts(tmp_path: Path) -> None:
    record(tmp_path)
    journal = Journal(tmp_path, load_rules())
    journal.add([alert("loss-spike", "firing", "warning"), alert("grad-norm-high", "firing")])
    journal.add([alert("loss-spike", "resolved", "warning")])
    journal.add([alert("loss-plateau", "firing", grouped_under="grad-norm-high-1")])
    results = [r for r in check_run(tmp_path) if r.check == "run.alerts"]
    assert [result.finding for result in in_order(results)] == ["run_alert", "run_alert_over"]
    assert "grad-norm-high (critical) on rank 0 since step 7" in results[1].evidence()
    assert findings(results)


def test_no_run_at_all(tmp_path: Path) -> None:
    assert set(problems(check_run(tmp_path))) == {"summary_empty"}


def test_problems_come_first_and_the_likeliest_before_the_others() -> None:
    results = [
        Result("run.lost", "ok", "run_nothing_lost", weight=0.9),
        Result("run.errors", "problem", "check_failed", {"error": ""}, weight=0.2),
        Result("run.files", "unknown", "check_failed", {"error": ""}, weight=0.9),
        Result("run.end", "problem", "check_failed", {"error": ""}, weight=0.8),
    ]
    order = [result.check for result in in_order(results)]
    assert order == ["run.end", "run.errors", "run.files", "run.lost"]


def test_what_a_failing_check_says() -> None:
    def fails() -> list[Result]:
        raise ValueError("first line\nsecond line")

    (result,) = checked("run.files", fails)
    assert result.status == "unknown"
    assert result.evidence() == "this check failed: ValueError: first line"


# -- the command ------------------------------------------------------------------------------


def test_the_command_in_its_three_forms(tmp_path: Path) -> None:
    run = tmp_path / "run"
    recorder = record(run, close=False)
    recorder.note("steps_lost", count=7)
    recorder.close()
    call = CliRunner().invoke(main, ["doctor", "run", str(run)])
    assert call.exit_code == 1
    head, cure, *_ = call.output.splitlines()
    assert head.startswith("problem what was lost (run.lost): attempt 1, rank 0: 7 step(s)")
    assert cure.startswith("    cure: give the monitor a larger capacity=")
    assert call.output.splitlines()[-1].startswith("1 problem(s), 1 could not be told, ")
    lines = CliRunner().invoke(main, ["doctor", "run", str(run), "--format", "problems"]).output
    assert lines.splitlines()[0].startswith("doctor: problem: run.lost: attempt 1, rank 0: 7 step")
    assert lines.splitlines()[1].startswith("doctor: unknown: run.alerts: ")
    told = json.loads(CliRunner().invoke(main, ["doctor", "--json", "run", str(run)]).output)
    assert (told["problems"], told["unknown"]) == (1, 1)
    assert told["results"][0]["values"] == {"name": "attempt 1, rank 0", "count": 7}
    assert {r["status"] for r in told["results"]} == {"problem", "unknown", "ok"}
    chinese = CliRunner().invoke(main, ["doctor", "--lang", "zh", "run", str(run)]).output
    assert chinese.startswith("问题 丢失的数据 (run.lost)：attempt 1")


def test_exit_codes(tmp_path: Path) -> None:
    record(tmp_path / "run")
    assert CliRunner().invoke(main, ["doctor", "summary", str(tmp_path / "run")]).exit_code == 0
    assert CliRunner().invoke(main, ["doctor", "summary", str(tmp_path / "none")]).exit_code == 1
    assert CliRunner().invoke(main, ["doctor", "run", str(tmp_path / "none")]).exit_code == 2
    assert CliRunner().invoke(main, ["doctor", "nothing"]).exit_code == 2


def test_the_doctor_without_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINDPULSE", "off")
    told = json.loads(CliRunner().invoke(main, ["doctor", "--json"]).output)
    checks = {result["check"] for result in told["results"]}
    assert {"env.python", "debug.python", "summary.recording"} <= checks
    assert told["results"][0]["finding"] == "recording_off"
    assert "summary.rows" not in checks
    record(tmp_path / "summary")
    told = json.loads(CliRunner().invoke(main, ["doctor", "--json"]).output)
    assert "summary.rows" in {result["check"] for result in told["results"]}


def test_env_and_memory_as_parts(tmp_path: Path) -> None:
    call = CliRunner().invoke(main, ["doctor", "env", "--root", str(tmp_path), "--json"])
    assert "env.python" in {result["check"] for result in json.loads(call.output)["results"]}
    log = tmp_path / "train.log"
    log.write_text("nothing here\n")
    call = CliRunner().invoke(main, ["doctor", "memory", str(log), "--format", "problems"])
    assert call.output.startswith("doctor: unknown: memory.log: ")
    assert CliRunner().invoke(main, ["doctor", "memory", "nowhere"]).exit_code == 2
