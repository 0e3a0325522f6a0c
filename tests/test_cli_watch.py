"""`mindpulse watch`: what it prints, how it exits, and that it ends in order when it is told to."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mindpulse.control import ControlLog
from processes import running
from synthetic import write_run
from test_cli_group import call


@pytest.fixture
def exploded(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", fault="lr-explosion", snapshots=False)


def test_a_healthy_run_is_fine(tmp_path: Path) -> None:
    result = call("watch", write_run(tmp_path, snapshots=False), "--once")
    # Of the rules that ship, some read what this run does not have: that is no mistake.
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_findings_are_printed_once_and_the_exit_code_stays(exploded: Path) -> None:
    first, second = (call("watch", exploded, "--once") for _ in range(2))
    assert "gradient-explosion" in first.stdout
    assert "gradient-explosion: the gradient" not in second.stdout
    assert (first.exit_code, second.exit_code) == (1, 1)


def test_several_runs_are_told_apart(exploded: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "below" / "other", fault="lr-explosion", snapshots=False)
    words = ["watch", exploded, tmp_path / "below", "--once"]
    lines = call(*words).stdout.splitlines()
    assert {line.split(": ")[0] for line in lines} == {str(exploded), str(other)}
    (other / "alerts.jsonl").unlink()
    told = [json.loads(line) for line in call(*words, "--json").stdout.splitlines()]
    assert {event["run"] for event in told if event["kind"] == "alert"} == {str(other)}


def test_events_as_json_lines_in_both_languages(exploded: Path) -> None:
    lines = call("watch", exploded, "--once", "--json").stdout.splitlines()
    events = [json.loads(line) for line in lines]
    fired = next(event for event in events if event.get("rule") == "gradient-explosion")
    assert (fired["kind"], fired["state"], fired["since_step"]) == ("alert", "firing", 180)
    assert "梯度范数超过 50" in fired["message"]["zh"]


def test_chinese(exploded: Path) -> None:
    assert "梯度范数超过 50" in call("watch", exploded, "--once", "--lang", "zh").stdout


@pytest.mark.parametrize(
    ("words", "verbs"), [([], []), (["--act"], ["scale_lr"]), (["--act", "stop"], [])]
)
def test_only_allowed_actions_are_asked_for(exploded: Path, words, verbs) -> None:
    call("watch", exploded, "--once", *words)
    assert [message.verb for message in ControlLog(exploded).poll()] == verbs


def test_a_rule_on_an_unknown_series_is_named(exploded: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "mine"\nexpr = "last(train_los) > 0"\n')
    result = call("watch", exploded, "--once", "--rules", rules)
    assert result.exit_code == 1
    assert "'train_los'" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_signal_handlers_are_put_back(exploded: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    call("watch", exploded, "--once")
    assert signal.getsignal(signal.SIGINT) is before


def test_following_ends_quietly(exploded: Path) -> None:
    words = ["query", str(exploded), "--tag", "train_loss", "--limit", "1", "--follow", "--json"]
    command, pipe = [sys.executable, "-u", "-m", "mindpulse.cli", *words], subprocess.PIPE
    with running(command, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["step"] == 300
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_process_ends_in_order(exploded: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-u", "-m", "mindpulse.cli", "watch", str(exploded), "--json"]
    pipe = subprocess.PIPE
    with running(command, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["rule"] == "gradient-explosion"
        assert (exploded / "watcher.json").exists()
        process.send_signal(number)
        rest, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "Traceback" not in errors
    assert "Ctrl-C ends" in errors
    assert all(json.loads(line) for line in rest.splitlines())
    assert not (exploded / "watcher.json").exists()
