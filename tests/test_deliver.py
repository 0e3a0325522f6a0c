"""Receivers: a dead one costs nothing but its delivery."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mindpulse.alerts import AlertEvent
from mindpulse.control import Answer
from mindpulse.deliver import File, Many, Terminal
from mindpulse.deliver.words import line
from mindpulse.watcher import ActionEvent


def test_a_dead_receiver_costs_only_its_delivery(tmp_path: Path) -> None:
    many = Many([File(tmp_path / "no" / "such" / "folder"), File(tmp_path / "events.jsonl")])
    event = AlertEvent("x", "big", "firing", "error", "loss", 9, 9, 0.0, 0, 1, evidence={"a": 1.0})
    many.deliver(event)
    many.deliver(ActionEvent("rejected", detail="bad"))
    assert many.failures == [2, 0]
    assert "File" in many.last_error
    alert, rejected = [json.loads(t) for t in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert (alert["kind"], alert["rule"]) == ("alert", "big")
    assert rejected["message"]["en"].endswith("bad")


def test_the_terminal_gets_a_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    event = AlertEvent("x", "gradient-explosion", "firing", "error", "gradient", 9, 7, 0.0, 2, 1)
    Terminal(sys.stdout, "zh").deliver(event)
    Terminal(sys.stdout).deliver(event)
    assert capsys.readouterr().out.splitlines() == [
        "[错误] gradient-explosion：梯度范数超过 50；自第 7 步起；rank 2",
        "[error] gradient-explosion: the gradient norm is above 50; since step 7; rank 2",
    ]


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", "answer to request 3 by rank 1: done at step 90 (halved)"),
        ("zh", "rank 1 对请求 3 的答复：已执行，第 90 步 (halved)"),
    ],
)
def test_an_answer_in_words(lang: str, words: str) -> None:
    answer = Answer(3, 0.0, 1, 1, 90, "done", "halved")
    event = ActionEvent("answer", seq=3, step=90, answer=answer, detail="halved")
    assert line(event, lang) == words
