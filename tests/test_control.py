"""The control log: nothing but what the schema allows is ever obeyed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindpulse.control import (
    Agenda,
    Answer,
    ControlLog,
    Decision,
    Judgement,
    Rejected,
    Request,
    parse_line,
)
from mindpulse.control.schema import VERBS
from mindpulse.errors import StoreError, UsageError
from mindpulse.jsonlines import LineTail, append, encode_line, locked


def good(**changes: object) -> bytes:
    fields: dict[str, object] = {
        "kind": "request", "seq": 1, "wall_time": 1.0, "verb": "scale_lr",
        "args": {"factor": 0.5}, "rule": "r", "reason": "why", "evidence": {"last(g)": "inf"},
        "step": 10, "expires_step": 20, "attempt": 1, "alert": "",
    }  # fmt: skip
    fields.update(changes)
    return json.dumps({k: v for k, v in fields.items() if v is not ...}).encode()


def test_both_sides_see_both_kinds_in_order(tmp_path: Path) -> None:
    watcher, training = ControlLog(tmp_path, clock=lambda: 5.0), ControlLog(tmp_path)
    asked = watcher.request(
        "scale_lr", {"factor": 0.5}, step=10, expires_step=60, rule="big", reason="too big",
        evidence={"last(g)": float("inf")}, alert="big/a1/r0/s9",
    )  # fmt: skip
    assert training.poll() == [asked]
    answer = Answer(asked.seq, 6.0, 0, 1, 10, "done", "halved", {"lr_before": 1e-3})
    training.answer(answer)
    assert watcher.poll() == [asked, answer]
    assert watcher.poll() == []
    assert (tmp_path / "control.jsonl").stat().st_mode & 0o777 == 0o600


def test_numbers_grow_over_all_writers(tmp_path: Path) -> None:
    logs = [ControlLog(tmp_path) for _ in range(4)]
    threads = [
        threading.Thread(target=lambda log=log: [ask(log) for _ in range(25)]) for log in logs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = ControlLog(tmp_path).poll()
    assert [m.seq for m in seen if isinstance(m, Request)] == list(range(1, 101))


def ask(log: ControlLog) -> Request:
    return log.request("stop", {}, step=1, expires_step=2)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"verb": "rm -rf"}, "verb 'rm -rf'"),
        ({"verb": 3}, "verb"),
        ({"args": {}}, "give exactly these: factor"),
        ({"args": {"factor": 0.5, "more": 1}}, "give exactly these"),
        ({"args": {"factor": 0}}, "between 0 and 1000"),
        ({"args": {"factor": 1000}}, "between"),
        ({"args": {"factor": "nan"}}, "between"),
        ({"args": {"factor": True}}, "args"),
        ({"args": {"factor": "0.5"}}, "args"),
        ({"verb": "stop", "args": {"factor": 0.5}}, "give exactly these: none"),
        ({"verb": "snapshot", "args": {"steps": 1}}, "give exactly these: none"),
        ({"verb": "burst", "args": {}}, "give exactly these: steps"),
        ({"verb": "burst", "args": {"steps": 0}}, "want a whole number from 1 to 1000"),
        ({"verb": "burst", "args": {"steps": 1001}}, "want a whole number from 1 to 1000"),
        ({"verb": "burst", "args": {"steps": 1.5}}, "want a whole number from 1 to 1000"),
        ({"verb": "burst", "args": {"steps": "inf"}}, "want a whole number from 1 to 1000"),
        ({"verb": "burst", "args": {"steps": "nan"}}, "want a whole number from 1 to 1000"),
        ({"verb": "burst", "args": {"steps": True}}, "args"),
        ({"verb": "skip_step", "args": {"steps": 101}}, "want a whole number from 1 to 100"),
        ({"verb": "skip_step", "args": {"step": 1}}, "may be left out: steps"),
        ({"verb": "rollback", "args": {"factor": 10}}, "between 0 and 10"),
        ({"verb": "rollback", "args": {"before": -1}}, "want a whole number from 0"),
        ({"verb": "keep", "args": {}}, "give exactly these: every"),
        ({"verb": "set_clip", "args": {"limit": "inf"}}, "between 0 and 1e+06"),
        ({"verb": "undo", "args": {"seq": 0}}, "want a whole number from 1"),
        ({"ranks": 0}, "ranks"),
        ({"seq": 0}, "seq"),
        ({"seq": 1.0}, "seq"),
        ({"seq": True}, "seq"),
        ({"step": -1}, "step"),
        ({"step": 2**63}, "step"),
        ({"expires_step": 9}, "expires_step is before step"),
        ({"attempt": 0}, "attempt"),
        ({"evidence": {"a": "b"}}, "evidence"),
        ({"evidence": []}, "evidence"),
        ({"reason": "x" * 5000}, "reason"),
        ({"reason": None}, "reason"),
        ({"wall_time": "nan"}, "wall_time"),
        ({"extra": 1}, "unknown: ['extra']"),
        ({"alert": ...}, "missing: ['alert']"),
        ({"kind": "order"}, "kind is 'order'"),
        ({"kind": ...}, "kind is None"),
    ],
)
def test_a_request_off_the_schema_is_rejected(changes: dict[str, object], why: str) -> None:
    read = parse_line(good(**changes))
    assert isinstance(read, Rejected)
    assert why in read.why


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[]", b"null", b"3", b"\xff\xfe", b'{"kind": "request"}', b"[" * 100_000,
     b'{"a": 1' + b" " * 70_000 + b"}", b'{"kind": {"a": 1}}', b"NaN", b'{"kind": "answer"}'],
)  # fmt: skip
def test_garbage_is_rejected(line: bytes) -> None:
    assert isinstance(parse_line(line), Rejected)


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_bytes_raise(line: bytes) -> None:
    assert isinstance(parse_line(line), Rejected)


def test_a_good_line_is_read_whole() -> None:
    read = parse_line(good())
    assert isinstance(read, Request)
    assert read.evidence == {"last(g)": float("inf")}


@pytest.mark.parametrize(
    ("verb", "args"),
    [
        ("burst", {"steps": 1}),
        ("burst", {"steps": 1000.0}),
        ("snapshot", {}),
        ("stop", {}),
        ("set_clip", {"limit": 0.5}),
        ("keep", {"every": 0}),
        ("undo", {"seq": 3}),
        ("rollback", {"factor": 0.5, "before": 120}),
    ],
)
def test_what_the_bounds_allow_reaches_the_other_side(
    tmp_path: Path, verb: str, args: dict[str, float]
) -> None:
    asked = ControlLog(tmp_path).request(verb, args, step=1, expires_step=9)
    assert ControlLog(tmp_path).poll() == [asked]
    assert (asked.verb, asked.args) == (verb, args)


def test_what_is_left_out_has_its_default_and_old_lines_are_for_one_rank(tmp_path: Path) -> None:
    asked = ControlLog(tmp_path).request("rollback", {"factor": 0.5}, step=1, expires_step=9)
    assert asked.args == {"factor": 0.5, "before": 0.0}
    old = parse_line(good())
    assert isinstance(old, Request)
    assert old.ranks == 1


@pytest.mark.parametrize(
    ("message", "wrong", "why"),
    [
        (Decision(1, 0.0, True, 5, 9), {"go": 1}, "want true or false"),
        (Decision(1, 0.0, False, 5, 9, "no"), {"expires_step": 4}, "expires_step is before step"),
        (Judgement(1, 0.0, 5, "none", {"a": float("inf")}, {"a": 1.0}), {"effect": "good"},
         "want one of helped, better, none, unknown"),
    ],
)  # fmt: skip
def test_decisions_and_judgements_come_through_and_are_checked(
    tmp_path: Path, message: Decision | Judgement, wrong: dict[str, object], why: str
) -> None:
    ControlLog(tmp_path).answer(message)
    assert ControlLog(tmp_path).poll() == [message]
    fields = json.loads((tmp_path / "control.jsonl").read_text()) | wrong
    read = parse_line(json.dumps(fields).encode())
    assert isinstance(read, Rejected)
    assert why in read.why


def test_the_page_names_every_verb_and_its_bounds() -> None:
    page = (Path(__file__).parent.parent / "docs" / "control.md").read_text()
    for verb, arguments in VERBS.items():
        (row,) = re.findall(rf"^\| `{verb}` \|(.*)$", page, re.MULTILINE)
        for name, bounds in arguments.items():
            assert f"`{name}`" in row
            assert f"{bounds.high:g}" in row


def test_the_writer_refuses_what_the_reader_would_reject(tmp_path: Path) -> None:
    log = ControlLog(tmp_path)
    with pytest.raises(UsageError, match="between 0 and 1000"):
        log.request("scale_lr", {"factor": 0.0}, step=1, expires_step=2)
    with pytest.raises(UsageError, match="before step"):
        log.request("stop", {}, step=3, expires_step=2)
    with pytest.raises(UsageError, match="status"):
        log.answer(Answer(1, 0.0, 0, 1, 1, "maybe"))
    assert log.poll() == []


def test_a_missing_folder_is_a_clear_error(tmp_path: Path) -> None:
    log = ControlLog(tmp_path / "nowhere")
    assert log.poll() == []
    with pytest.raises(StoreError, match=r"nowhere/control\.jsonl: No such file"):
        ask(log)


def test_a_copied_request_does_not_act_twice(tmp_path: Path) -> None:
    (tmp_path / "control.jsonl").write_bytes(good() + b"\n" + good() + b"\n")
    (tmp_path / "control.jsonl").chmod(0o600)
    first, second = ControlLog(tmp_path).poll()
    assert isinstance(first, Request)
    assert isinstance(second, Rejected)


def test_a_file_that_others_may_write_is_not_obeyed(tmp_path: Path) -> None:
    path = tmp_path / "control.jsonl"
    path.write_bytes(good() + b"\n")
    path.chmod(0o666)
    log = ControlLog(tmp_path)
    (told,) = log.poll()
    assert isinstance(told, Rejected)
    assert "chmod 600" in told.why
    assert log.poll() == []


def test_a_link_is_not_obeyed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(good() + b"\n")
    (tmp_path / "control.jsonl").symlink_to(tmp_path / "elsewhere")
    (told,) = ControlLog(tmp_path).poll()
    assert isinstance(told, Rejected)


def test_an_unfinished_line_waits_and_a_torn_one_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "control.jsonl"
    path.write_bytes(good()[:40])
    path.chmod(0o600)
    log = ControlLog(tmp_path)
    assert log.poll() == []
    asked = ControlLog(tmp_path).request("stop", {}, step=1, expires_step=2)
    torn, read = log.poll()
    assert isinstance(torn, Rejected)
    assert read == asked


def test_a_replaced_file_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\n")
    tail = LineTail(path)
    assert tail.poll() == [b"one"]
    (tmp_path / "new").write_bytes(b"a\nb\n")
    (tmp_path / "new").replace(path)
    assert tail.poll() == [b"a", b"b"]
    path.write_bytes(b"c\n")
    assert tail.poll() == [b"c"]


def test_an_endless_line_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"x" * (9 << 20) + b"\nlast\n")
    assert LineTail(path).poll()[-1] == b"last"


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\n")
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:3]))
    with locked(path) as descriptor, pytest.raises(OSError, match="only 3 of"):
        append(descriptor, encode_line({"a": 1}))
    assert path.read_bytes() == b"one\n"


# What one rank has to do.


def request(seq: int = 1, step: int = 10, expires: int = 20, attempt: int = 1) -> Request:
    return Request(seq, 0.0, "stop", {}, "", "", {}, step, expires, attempt)


def test_a_request_is_due_once_at_its_step() -> None:
    agenda = Agenda(rank=0, attempt=1)
    agenda.add([request()])
    assert agenda
    assert agenda.due(9) == ([], [])
    assert agenda.due(10) == ([request()], [])
    assert agenda.due(11) == ([], [])
    agenda.add([request()])
    assert not agenda


def test_a_request_that_comes_too_late_is_expired() -> None:
    agenda = Agenda(rank=0, attempt=1)
    agenda.add([request()])
    assert agenda.due(21) == ([], [request()])


@pytest.mark.parametrize(
    "before",
    [
        [request(attempt=2)],
        [request(), Answer(1, 0.0, 0, 1, 10, "done")],
        [Answer(1, 0.0, 0, 1, 10, "done"), request()],
    ],
)
def test_what_is_not_for_this_rank_or_done_is_left(before: list[Request | Answer]) -> None:
    agenda = Agenda(rank=0, attempt=1)
    agenda.add(before)
    assert agenda.due(10) == ([], [])


def test_the_answer_of_another_rank_does_not_count() -> None:
    agenda = Agenda(rank=1, attempt=1)
    agenda.add([request(), Answer(1, 0.0, 0, 1, 10, "done")])
    assert len(agenda.due(10)[0]) == 1


def test_the_training_process_imports_nothing_for_it() -> None:
    code = "import sys, mindpulse.control; print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "False"
