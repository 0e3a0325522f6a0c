"""The watcher: as a generator with a scripted waiter, and as a real second process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from mindpulse.alerts import AlertEvent
from mindpulse.alerts.journal import read_alerts
from mindpulse.control import Agenda, Answer, ControlLog, Request
from mindpulse.deliver.words import line
from mindpulse.errors import StoreError, UsageError
from mindpulse.rules.load import load_rules
from mindpulse.rules.rule import make_rule
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.reader import Chunk, RunTail
from mindpulse.store.writer import RankWriter
from mindpulse.testing import FakeClock, ScriptedWaiter, attempt_of, chunk, write_run
from mindpulse.watcher import ActionEvent, Event, watch
from mindpulse.watcher.portions import portions

QUIET, LOUD = [1.0] * 10, [80.0] * 5
HALVE = frozenset({"scale_lr"})


def once(run: Path, rules: object = None, **options: object) -> list[Event]:
    return list(watch(run, rules or load_rules(), once=True, **options))  # type: ignore[arg-type]


def scripted(
    run: Path, script: list[Callable[[], object]], rules: object = None, **options: object
) -> Iterator[Event]:
    stop = threading.Event()
    waiter = ScriptedWaiter(stop, script)
    return watch(
        run,
        rules or load_rules(),
        stop=stop,
        waiter=lambda *_: waiter,
        clock=FakeClock(),
        **options,
    )  # type: ignore[arg-type]


class Training:
    """The other side: writes rows, and does what it is asked for."""

    def __init__(self, run: Path, **first: object) -> None:
        self.folder = write_run(run, **first)  # type: ignore[arg-type]
        self.writer = RankWriter(self.folder, 0, attempt_of(self.folder))
        self.log = ControlLog(run)
        self.agenda = Agenda(0, attempt_of(self.folder))
        self.done: list[Request] = []

    def rows(self, first_step: int, **series: object) -> None:
        for tag, values in series.items():
            part = chunk(tag, values, first_step=first_step)  # type: ignore[arg-type]
            self.writer.append(part.spec, part.rows)
        self.writer.flush()

    def answer(self, step: int, status: str = "done") -> None:
        self.agenda.add(self.log.poll())
        due, expired = self.agenda.due(step)
        for request in [*due, *expired]:
            self.done.append(request)
            self.log.answer(Answer(request.seq, 0.0, 0, request.attempt, step, status))


def test_a_finished_run_is_judged_in_one_look(tmp_path: Path) -> None:
    write_run(tmp_path, grad_norm=QUIET + LOUD)
    events = once(tmp_path)
    assert [(e.rule, e.state, e.step) for e in events if isinstance(e, AlertEvent)] == [
        ("gradient-explosion", "firing", 11)
    ]
    assert [e.kind for e in events if isinstance(e, ActionEvent)] == ["advice"]
    assert read_alerts(tmp_path) == [e for e in events if isinstance(e, AlertEvent)]
    assert not (tmp_path / "watcher.json").exists()
    assert not (tmp_path / "control.jsonl").exists()


def test_a_line_of_the_journal_says_everything_in_both_languages(tmp_path: Path) -> None:
    write_run(tmp_path, grad_norm=[*QUIET, float("inf")])
    once(tmp_path)
    lines = [json.loads(text) for text in (tmp_path / "alerts.jsonl").read_text().splitlines()]
    found = next(entry for entry in lines if entry["rule"] == "gradient-explosion")
    assert found["advice"] == {"request": "scale_lr", "factor": 0.5}
    assert found["evidence"] == {"last(grad_norm)": "inf"}
    assert (found["step"], found["since_step"], found["rank"], found["attempt"]) == (11, 11, 0, 1)
    assert "above 50" in found["message"]["en"]
    assert "超过 50" in found["message"]["zh"]


def test_nothing_is_said_twice_after_a_restart(tmp_path: Path) -> None:
    training = Training(tmp_path, grad_norm=QUIET + LOUD)
    assert len([e for e in once(tmp_path) if isinstance(e, AlertEvent)]) == 1
    assert [e for e in once(tmp_path) if isinstance(e, AlertEvent)] == []
    training.rows(16, grad_norm=[1.0] * 40)
    assert [e.state for e in once(tmp_path) if isinstance(e, AlertEvent)] == ["resolved"]
    assert [e for e in once(tmp_path) if isinstance(e, AlertEvent)] == []
    training.writer.close()


def test_rows_are_judged_as_they_come(tmp_path: Path) -> None:
    training = Training(tmp_path, grad_norm=QUIET)
    script = [
        lambda: training.rows(11, grad_norm=[1.0]),
        lambda: training.rows(12, grad_norm=[70.0]),
        lambda: training.rows(13, grad_norm=[1.0] * 20),
    ]
    events = scripted(tmp_path, script)
    alerts = [(e.state, e.step) for e in events if isinstance(e, AlertEvent)]
    assert alerts == [("firing", 12), ("resolved", 22)]
    training.writer.close()


def test_with_act_it_asks_ahead_and_waits_for_the_effect(tmp_path: Path) -> None:
    training = Training(tmp_path, grad_norm=QUIET + LOUD, step_time_s=[0.5] * 15)
    loud = {"grad_norm": [80.0], "step_time_s": [0.5]}
    steps = iter(range(16, 60))

    def step() -> None:
        number = next(steps)
        training.rows(number, **loud)
        training.answer(number + 1)

    events = list(scripted(tmp_path, [step] * 40, act=HALVE))
    asked = [e for e in events if isinstance(e, ActionEvent) and e.kind == "request"]
    # 3 seconds are 6 steps ahead of step 15; then 10 steps to settle before the next.
    assert [e.step for e in asked] == [21, 37, 53]
    assert [request.step for request in training.done] == [21, 37, 53]
    assert [e.answer.status for e in events if isinstance(e, ActionEvent) and e.answer] == [
        "done", "done", "done",
    ]  # fmt: skip
    (request, *_) = [m for m in ControlLog(tmp_path).poll() if isinstance(m, Request)]
    assert request.rule == "gradient-explosion"
    assert request.evidence == {"last(grad_norm)": 80.0}
    assert request.alert == "gradient-explosion/a1/r0/s11"
    training.writer.close()


def test_a_spike_that_is_over_is_asked_for_once(tmp_path: Path) -> None:
    training = Training(tmp_path, grad_norm=[*QUIET, 80.0, 1.0])
    steps = iter(range(13, 40))

    def step() -> None:
        number = next(steps)
        training.rows(number, grad_norm=[80.0 if number == 20 else 1.0])
        training.answer(number + 1)

    asked = [e.step for e in scripted(tmp_path, [step] * 20, act=HALVE) if is_request(e)]
    # The first one for the spike at step 11; that at step 20 comes before its effect is known.
    assert asked == [14]
    training.writer.close()


def is_request(event: Event) -> bool:
    return isinstance(event, ActionEvent) and event.kind == "request"


def test_a_restarted_watcher_does_not_ask_again(tmp_path: Path) -> None:
    training = Training(tmp_path, grad_norm=QUIET + LOUD)
    asked = [e for e in once(tmp_path, act=HALVE) if isinstance(e, ActionEvent)]
    assert [e.kind for e in asked] == ["request"]
    assert [e for e in once(tmp_path, act=HALVE) if isinstance(e, ActionEvent)] == []
    training.writer.close()


def test_a_verb_that_is_not_allowed_is_held_back_and_said_once(tmp_path: Path) -> None:
    write_run(tmp_path, grad_norm=QUIET + LOUD)
    events = list(scripted(tmp_path, [lambda: None] * 3, act=frozenset({"stop"})))
    held = [e for e in events if isinstance(e, ActionEvent)]
    assert [(e.kind, e.held.key if e.held else "") for e in held] == [("held", "held.verb")]
    assert "--act does not allow scale_lr" in line(held[0])


def test_an_action_waits_for_its_own_condition(tmp_path: Path) -> None:
    rule = make_rule(
        {"name": "settled", "expr": "std(attn_focus[100]) < 0.01", "for_steps": 100,
         "action": {"request": "scale_lr", "factor": 0.5, "when": "last(train_loss) < 1"}}
    )  # fmt: skip
    write_run(tmp_path / "a", attn_focus=np.full((250, 4), 0.2), train_loss=np.full(250, 3.0))
    write_run(tmp_path / "b", attn_focus=np.full((250, 4), 0.2), train_loss=np.full(250, 0.5))
    kinds = {
        name: [
            e.kind for e in once(tmp_path / name, [rule], act=HALVE) if isinstance(e, ActionEvent)
        ]
        for name in "ab"
    }
    assert kinds == {"a": ["held"], "b": ["request"]}


def test_a_resumed_training_is_a_new_chance(tmp_path: Path) -> None:
    write_run(tmp_path, grad_norm=QUIET + LOUD)
    once(tmp_path, act=HALVE)
    write_run(tmp_path, first_step=11, grad_norm=[1.0, 90.0])
    events = once(tmp_path, act=HALVE)
    alerts = [(e.state, e.step, e.attempt) for e in events if isinstance(e, AlertEvent)]
    assert alerts == [("resolved", 11, 1), ("firing", 12, 2)]
    asked = [m for m in ControlLog(tmp_path).poll() if isinstance(m, Request)]
    assert [m.attempt for m in asked] == [1, 2]


def test_foreign_files_and_broken_lines_do_not_matter(tmp_path: Path) -> None:
    folder = write_run(tmp_path, grad_norm=QUIET + LOUD)
    (folder / "holiday.jpg").write_bytes(b"\xff" * 100)
    (folder / "train_loss.ms").write_bytes(b"not ours at all")
    (tmp_path / "alerts.jsonl").write_bytes(b'{"id": 3}\nnonsense\n[1]\n')
    (tmp_path / "control.jsonl").write_bytes(b"nonsense\n")
    (tmp_path / "control.jsonl").chmod(0o600)
    assert [e.rule for e in once(tmp_path) if isinstance(e, AlertEvent)] == ["gradient-explosion"]


def test_a_missing_folder_is_an_error_once_and_waited_for_otherwise(tmp_path: Path) -> None:
    run = tmp_path / "later"
    with pytest.raises(UsageError, match="no such folder"):
        once(run)
    stop = threading.Event()
    timer = threading.Timer(0.3, lambda: (write_run(run, grad_norm=LOUD), stop.set()))
    timer.start()
    events = list(watch(run, load_rules(), stop=stop))
    timer.join()
    assert [e.rule for e in events if isinstance(e, AlertEvent)] == ["gradient-explosion"]


def test_a_stopped_watcher_does_not_wait_for_a_folder(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    assert list(watch(tmp_path / "never", load_rules(), stop=stop)) == []


def test_a_run_has_one_watcher(tmp_path: Path) -> None:
    write_run(tmp_path, grad_norm=QUIET)
    events = scripted(tmp_path, [lambda: check_taken(tmp_path)])
    assert list(events) == []
    assert once(tmp_path) == []


def check_taken(run: Path) -> None:
    told = json.loads((run / "watcher.json").read_text())
    assert told["pid"] == os.getpid()
    with pytest.raises(UsageError, match="is being watched already by"):
        once(run)


def test_a_folder_that_cannot_be_written_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path, grad_norm=LOUD)

    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("mindpulse.watcher.presence.os.open", refuse)
    with pytest.raises(StoreError, match=r"watcher\.json: Permission denied"):
        once(tmp_path)


def test_a_long_run_is_caught_up_with_in_portions(tmp_path: Path) -> None:
    write_run(tmp_path, grad_norm=np.ones(2500), train_loss=np.ones(2500))
    write_run(tmp_path, first_step=2000, grad_norm=np.ones(100))
    chunks = [c for c in RunTail(tmp_path).poll() if isinstance(c, Chunk)]
    sizes = [[(c.attempt, c.spec.tag, len(c.rows)) for c in part] for part in portions(chunks)]
    assert [dict.fromkeys(attempt for attempt, _, _ in part) for part in sizes] == [
        {1: None}, {1: None}, {1: None}, {2: None},
    ]  # fmt: skip
    assert sizes[2] == [(1, "grad_norm", 500), (1, "train_loss", 500)]
    assert sum(size for part in sizes for _, _, size in part) == 5100


def test_rows_out_of_order_stay_in_their_order_within_a_portion() -> None:
    steps = np.array([5, 2500, 7, 5, 1200, 3, 2400])
    late = Chunk(0, 1, SeriesSpec("x"), Rows(steps, np.zeros(7), np.arange(7.0)[:, None]))
    parts = list(portions([chunk("y", np.ones(2500)), late]))
    found = [[c.rows.values[:, 0].tolist() for c in part if c.spec.tag == "x"] for part in parts]
    assert found == [[[0, 2, 3, 5]], [[4]], [[1, 6]]]


# A real second process.

RUNNER = """
import signal, sys, threading
from mindpulse.rules.load import load_rules
from mindpulse.watcher import watch
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
for event in watch(sys.argv[1], load_rules(), stop=stop, act=frozenset({"scale_lr"})):
    print(event, flush=True)
"""


def start(run: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", RUNNER, str(run)], stdout=subprocess.DEVNULL)
    until(lambda: process.poll() is None and signed(run, process.pid))
    return process


def signed(run: Path, pid: int) -> bool:
    try:
        return bool(json.loads((run / "watcher.json").read_text())["pid"] == pid)
    except (FileNotFoundError, ValueError):
        return False


def until(holds: Callable[[], bool], limit_s: float = 30.0) -> None:
    end = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def asked(run: Path) -> int:
    return sum(isinstance(m, Request) for m in ControlLog(run).poll())


def test_a_second_process_alerts_asks_is_killed_and_goes_on(tmp_path: Path) -> None:
    training = Training(tmp_path, grad_norm=QUIET)
    first = start(tmp_path)
    training.rows(11, grad_norm=LOUD)
    until(lambda: len(read_alerts(tmp_path)) == 1 and asked(tmp_path) == 1)
    first.kill()
    first.wait()
    assert (tmp_path / "watcher.json").exists()

    second = start(tmp_path)
    training.rows(16, grad_norm=[1.0] * 12)
    until(lambda: len(read_alerts(tmp_path)) == 2)
    second.send_signal(signal.SIGTERM)
    assert second.wait(timeout=20) == 0
    assert not (tmp_path / "watcher.json").exists()
    assert [event.state for event in read_alerts(tmp_path)] == ["firing", "resolved"]
    assert asked(tmp_path) == 1
    for text in (tmp_path / "alerts.jsonl").read_bytes().splitlines():
        json.loads(text)
    training.writer.close()


@pytest.mark.slow
def test_killed_at_any_moment_it_says_everything_exactly_once(tmp_path: Path) -> None:
    training = Training(tmp_path, grad_norm=QUIET)
    for round_number in range(12):
        process = start(tmp_path)
        begin = 11 + 100 * round_number
        training.rows(begin, grad_norm=[80.0] * 5 + [1.0] * 95)
        time.sleep(0.01 * (round_number % 5))
        process.kill()
        process.wait()
    once(tmp_path)
    said = [(event.id, event.state) for event in read_alerts(tmp_path)]
    assert len(said) == len(set(said))
    assert sum(name.startswith("gradient-explosion") for name, _ in said) == 24
    training.writer.close()
