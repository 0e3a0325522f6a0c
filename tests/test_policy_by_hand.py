"""`mindpulse act`: what a person asks for, and what comes back."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mindpulse.control import Answer, ControlLog, Judgement, Request
from mindpulse.errors import UsageError
from mindpulse.store.holding import Hold
from mindpulse.testing import write_run
from mindpulse.watcher.by_hand import args_of, last_undoable, look, read_ledger
from test_cli_group import call


@contextmanager
def training(run: Path, *statuses: str, ranks: int = 1) -> Iterator[None]:
    """A run that is being written: each rank gives these answers, one after the other."""
    folders = [
        write_run(run, rank=rank, grad_norm=[1.0] * 20, step_time_s=[1.0] * 20)
        for rank in range(ranks)
    ]
    holds = [Hold(folder) for folder in folders]
    stop = threading.Event()
    thread = threading.Thread(target=answers, args=(run, statuses, ranks, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        for hold in holds:
            hold.release()


def answers(run: Path, statuses: tuple[str, ...], ranks: int, stop: threading.Event) -> None:
    log, left = ControlLog(run), list(statuses)
    while not stop.is_set():
        for message in log.poll():
            if isinstance(message, Answer | Judgement) or not left:
                continue
            status = left.pop(0)
            for rank in range(ranks):
                log.answer(Answer(message.seq, 0.0, rank, 1, message.step, status, f"word {rank}"))
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("verb", "words", "wanted"),
    [
        ("scale_lr", ("0.5",), {"factor": 0.5}),
        ("scale_lr", ("factor=0.5",), {"factor": 0.5}),
        ("skip_step", (), {"steps": 1.0}),
        ("rollback", ("before=9", "0.5"), {"before": 9.0, "factor": 0.5}),
        ("undo", ("3",), {"seq": 3.0}),
    ],
)
def test_words_become_arguments(verb: str, words: tuple[str, ...], wanted: object) -> None:
    assert args_of(verb, words) == wanted


@pytest.mark.parametrize(
    ("verb", "words", "why"),
    [
        ("rm", (), "'rm': no such action; there are scale_lr"),
        ("scale_lr", ("half",), "'half': want a number for factor"),
        ("scale_lr", ("0.5", "2"), "'2': scale_lr takes factor"),
        ("scale_lr", (), "give exactly these: factor"),
        ("stop", ("now",), "'now': stop takes no arguments"),
        ("set_clip", ("-1",), "limit is -1.0, want a number between"),
        ("skip_step", ("x=3",), "may be left out: steps"),
    ],
)
def test_a_wrong_word_is_quoted(verb: str, words: tuple[str, ...], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        args_of(verb, words)


def test_one_rank_does_it(tmp_path: Path) -> None:
    with training(tmp_path, "done"):
        result = call("act", tmp_path, "scale_lr", "0.5")
    assert result.exit_code == 0
    asked, answered = result.stdout.splitlines()
    assert asked.startswith("request 1: multiply the learning rate by 0.5, before step 23")
    assert answered == "answer to request 1 by rank 0: done at step 23 (word 0)"


@pytest.mark.parametrize("status", ["refused", "failed", "expired"])
def test_what_was_not_done_is_a_finding(status: str, tmp_path: Path) -> None:
    with training(tmp_path, status):
        result = call("act", tmp_path, "set_clip", "1", "--json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert (told["status"], told["detail"], told["rule"]) == (status, "word 0", "")


def test_two_ranks_are_asked_first_and_go_together(tmp_path: Path) -> None:
    with training(tmp_path, "ready", "done", ranks=2):
        result = call("act", tmp_path, "skip_step", "--step", 400, "--json")
    assert result.exit_code == 0, result.stdout
    told = json.loads(result.stdout)
    assert told["decision"]["go"] is True
    # The ranks said at step 400 that they are ready; three seconds are three steps.
    assert [(a["rank"], a["status"], a["step"]) for a in told["answers"]] == [
        (0, "done", 403), (1, "done", 403),
    ]  # fmt: skip


def test_no_answer_in_time_is_a_finding_and_the_request_stands(tmp_path: Path) -> None:
    with training(tmp_path):
        result = call("act", tmp_path, "stop", "--wait", 0.3)
    assert result.exit_code == 1
    assert "not all ranks have answered within 0.3 s; the request stands until" in result.stdout
    assert [m.verb for m in ControlLog(tmp_path).poll() if isinstance(m, Request)] == ["stop"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["scale_lr", "0.5"], "no training writes here now"),
        ([], "say what to do"),
        (["undo"], "nothing was carried out in this run"),
        (["stop", "--list"], "--list takes no action"),
    ],
)
def test_calls_that_cannot_be_used(words: list[str], why: str, tmp_path: Path) -> None:
    write_run(tmp_path, grad_norm=[1.0] * 3)
    result = call("act", tmp_path, *words)
    assert result.exit_code == 2
    assert why in result.stderr
    assert not (tmp_path / "control.jsonl").exists()


def test_a_folder_without_a_training(tmp_path: Path) -> None:
    result = call("act", tmp_path / "nowhere", "stop")
    assert result.exit_code == 2
    assert "no training has written here" in result.stderr


def test_undo_takes_the_last_one_that_can_be_taken_back(tmp_path: Path) -> None:
    with training(tmp_path, *["done"] * 5):
        for words in (["scale_lr", "0.5"], ["set_clip", "2"], ["snapshot"], ["undo"], ["undo"]):
            assert call("act", tmp_path, *words).exit_code == 0
        requests = [m for m in ControlLog(tmp_path).poll() if isinstance(m, Request)]
    assert [(r.verb, dict(r.args)) for r in requests[3:]] == [
        ("undo", {"seq": 2.0}), ("undo", {"seq": 1.0}),
    ]  # fmt: skip
    with pytest.raises(UsageError, match="nothing was carried out"):
        last_undoable(read_ledger(tmp_path))


def test_the_list_tells_effects_in_both_languages(tmp_path: Path) -> None:
    with training(tmp_path, "done", "done"):
        call("act", tmp_path, "scale_lr", "0.5")
        ControlLog(tmp_path).answer(
            Judgement(1, 0.0, 44, "none", {"last(a)": 9.0}, {"last(a)": 8.0})
        )
        call("act", tmp_path, "undo", "1")
    first, second = call("act", tmp_path, "--list").stdout.splitlines()
    assert " ".join(first.split()) == (
        "1 23 done: multiply the learning rate by 0.5 (by hand) - word 0 - it did not help; "
        "before: last(a) = 9; now: last(a) = 8 - taken back"
    )
    assert "take request 1 back" in second
    assert "没有效果" in call("act", tmp_path, "--list", "--lang", "zh").stdout
    entries = json.loads(call("act", tmp_path, "--list", "--json").stdout)
    assert [(e["seq"], e["undone"], e["asked_step"]) for e in entries] == [
        (1, True, 23), (2, False, 23),
    ]  # fmt: skip


def test_an_empty_list(tmp_path: Path) -> None:
    write_run(tmp_path, grad_norm=[1.0])
    assert call("act", tmp_path, "--list").stdout == "nothing was asked in this run\n"


def test_where_a_run_is(tmp_path: Path) -> None:
    write_run(tmp_path, grad_norm=[1.0] * 9)
    write_run(tmp_path, first_step=5, train_loss=[1.0] * 20, step_time_s=[0.25] * 20)
    now = look(tmp_path)
    assert (now.attempt, now.ranks, now.step, now.step_time_s, now.alive) == (2, 1, 24, 0.25, False)
