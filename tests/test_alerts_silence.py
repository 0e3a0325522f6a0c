"""Silences: always with an end, kept in the journal, told when they are over."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from mindpulse.alerts import AlertEvent
from mindpulse.alerts.journal import Journal, read_alerts
from mindpulse.alerts.silence import Silence, Silences, iso, seconds_of
from mindpulse.control import ControlLog
from mindpulse.errors import UsageError
from mindpulse.rules.load import load_rules
from mindpulse.testing import FakeClock, write_run
from mindpulse.watcher import watch
from test_cli_group import call

ALERT = AlertEvent("big/1", "gradient-explosion", "firing", "error", "gradient", 9, 9, 0.0, 0, 1)
LOUD = [1.0] * 10 + [80.0] * 5


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("2h", 7200), ("1d12h", 129600), ("0.5h", 1800)],
)
def test_times(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "h", "-2h", "31d", "0s", "2 hours", "1e9s", "2h!"])
def test_what_is_no_time_is_quoted(text: str) -> None:
    with pytest.raises(UsageError, match="use a time from 1s to 30d"):
        seconds_of(text)


def test_the_last_line_on_a_rule_counts(tmp_path: Path) -> None:
    silences = Silences(tmp_path)
    silences.add(Silence("a", 500.0, 100.0))
    silences.add(Silence("", 300.0, 100.0))
    assert silences.until("a", 200.0) == 500.0
    assert silences.until("b", 200.0) == 300.0
    silences.add(Silence("a", 200.0, 200.0))
    assert silences.until("a", 201.0) == 300.0
    assert silences.until("a", 301.0) == 0.0


@pytest.mark.parametrize(
    "line",
    ["nonsense", "[1]", '{"rule": "a"}', '{"rule": 3, "until": 9, "created": 1}',
     '{"rule": "", "until": 1e18, "created": 1}', '{"rule": "", "until": "nan", "created": 1}',
     '{"rule": "", "until": 5, "created": 9}'],
)  # fmt: skip
def test_a_broken_line_silences_nothing(tmp_path: Path, line: str) -> None:
    (tmp_path / "silences.jsonl").write_text(line + "\n")
    assert Silences(tmp_path).in_force(2.0) == []


def test_a_silenced_alert_is_kept_and_told_when_the_silence_is_over(tmp_path: Path) -> None:
    clock = FakeClock(1000.0)
    journal = Journal(tmp_path, load_rules(), clock)
    Silences(tmp_path).add(Silence("gradient-explosion", 1100.0, 1000.0))
    (kept,) = journal.add([ALERT])
    assert (kept.delivered, kept.silenced) == (False, iso(1100.0))
    assert journal.after_silence() == []
    clock.now_s = 1101.0
    assert journal.after_silence() == [ALERT]
    assert journal.after_silence() == []
    over = AlertEvent(**{**{f: getattr(ALERT, f) for f in ALERT.__slots__}, "state": "resolved"})
    assert [event.delivered for event in journal.add([over])] == [True]
    assert Journal(tmp_path, load_rules(), clock).add([ALERT, over]) == []


def test_an_alert_that_was_never_told_ends_in_silence(tmp_path: Path) -> None:
    clock = FakeClock(1000.0)
    Silences(tmp_path).add(Silence("", 1100.0, 1000.0))
    Journal(tmp_path, load_rules(), clock).add([ALERT])
    again = Journal(tmp_path, load_rules(), clock)  # a watcher that was started again
    over = AlertEvent(**{**{f: getattr(ALERT, f) for f in ALERT.__slots__}, "state": "resolved"})
    assert [event.delivered for event in again.add([over])] == [False]


def test_the_watcher_says_and_asks_nothing_about_a_silenced_alert(tmp_path: Path) -> None:
    write_run(tmp_path, grad_norm=LOUD)
    clock = FakeClock(1000.0)
    Silences(tmp_path).add(Silence("gradient-explosion", 2000.0, 1000.0))
    act = frozenset({"scale_lr"})
    assert list(watch(tmp_path, load_rules(), once=True, clock=clock, act=act)) == []
    assert [event.silenced for event in read_alerts(tmp_path)] == [iso(2000.0)]
    assert ControlLog(tmp_path).poll() == []
    clock.now_s = 2001.0
    told = list(watch(tmp_path, load_rules(), once=True, clock=clock, act=act))
    assert [getattr(event, "kind", "alert") for event in told] == ["alert", "request"]


# The command.


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_run(tmp_path, grad_norm=LOUD)
    return tmp_path


def test_silencing_listing_and_ending(run: Path) -> None:
    made = call("silence", run, "gradient-explosion", "--for", "2h", "--reason", "a known spike")
    assert made.exit_code == 0
    assert "gradient-explosion: silent until " in made.stdout
    assert "(a known spike)" in made.stdout
    (listed,) = json.loads(call("silence", run, "--list", "--json").stdout)
    assert (listed["rule"], listed["reason"]) == ("gradient-explosion", "a known spike")
    assert call("watch", run, "--once").stdout == ""
    assert "no silence is in force" in call("silence", run, "--end").stdout
    assert "gradient-explosion" in call("watch", run, "--once").stdout


def test_all_rules_at_once(run: Path) -> None:
    assert "all rules: silent until" in call("silence", run, "--for", "30m").stdout
    (silence,) = Silences(run).in_force(time.time())
    assert silence.rule == ""
    assert 1700 < silence.until - time.time() <= 1800


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["gradient-explosion"], "a silence always has an end"),
        (["--for", "2h", "--list"], "a silence always has an end"),
        (["gradient-exposion", "--for", "2h"], "did you mean 'gradient-explosion'?"),
        (["--for", "soon"], "'soon': use a time"),
        (["--end"], "no silence is in force"),
    ],
)
def test_what_cannot_be_meant_is_refused(run: Path, words: list[str], says: str) -> None:
    result = call("silence", run, *words)
    assert result.exit_code == 2
    assert says in result.stderr
    assert not (run / "silences.jsonl").exists()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert call("silence", tmp_path / "no", "--list").exit_code == 2
