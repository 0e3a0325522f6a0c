"""Two processes in data parallel: all ranks act before the same step, or none does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mindpulse.control import Answer, ControlLog, Decision
from mindpulse.store.folder import attempts_of, ranks_of
from mindpulse.watcher.by_hand import Now, args_of, ask, follow, look
from mindpulse.watcher.policy import Limits
from test_ways_distributed import TESTS, free_port

LIMITS = Limits(ahead_s=1.0)


@pytest.mark.parametrize("mode", ["graph"])
def test_all_ranks_act_at_the_same_step_or_none(mode: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with training(mode, tmp_path) as process:
        now = when_both_train(run, process)
        assert now.ranks == 2
        assert now.alive is True
        skipped = by_hand(run, now, "skip_step")
        refused = by_hand(run, now, "set_clip", "0.5")
        for _ in range(5):  # withdrawn where one rank has kept a newer state than the other by then
            rolled = by_hand(run, now, "rollback")
            if decided(rolled)[0].go:
                break
            assert "the ranks would do different things" in decided(rolled)[0].reason
        by_hand(run, now, "stop")
        assert process.wait(120) == 0, told(tmp_path)

    decision, *answers = decided(skipped)
    assert decision.go
    assert {(a.rank, a.status, a.step) for a in answers} == {
        (0, "done", decision.step), (1, "done", decision.step),
    }  # fmt: skip
    decision, *answers = decided(refused)
    assert not decision.go
    assert decision.reason.startswith("rank 0: no clipping threshold can be reached")
    assert answers == []
    decision, *answers = decided(rolled)
    assert decision.go
    assert {answer.step for answer in answers} == {decision.step}
    assert len({answer.data["state_step"] for answer in answers}) == 1

    ranks = [dict(np.load(tmp_path / f"rank{rank}.npz")) for rank in range(2)]
    assert ranks[0]["steps"] == ranks[1]["steps"]
    names = [name for name in ranks[0] if name.startswith("watched/")]
    assert len(names) > 10
    for name in names:
        own, other = ranks[0][name], ranks[1][name]
        assert own.tobytes() == other.tobytes(), name
        twin = ranks[0][name.replace("watched/", "plain/")]
        assert own.tobytes() == twin.tobytes(), name


def by_hand(run: Path, now: Now, verb: str, *words: str) -> list[Answer | Decision]:
    """Asks as `mindpulse act` does; what was said until all ranks were done."""
    control = ControlLog(run)
    control.poll()
    request = ask(control, now, verb, args_of(verb, words), None, LIMITS)
    list(follow(control, request, now, LIMITS, 60))
    return [
        m for m in ControlLog(run).poll()
        if isinstance(m, Answer | Decision) and m.seq == request.seq
    ]  # fmt: skip


def decided(messages: list[Any]) -> list[Any]:
    """The decision, then the answers after it."""
    (decision,) = [m for m in messages if isinstance(m, Decision)]
    final = [m for m in messages if isinstance(m, Answer) and m.status not in ("ready", "refused")]
    return [decision, *final]


@contextmanager
def training(mode: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    paths = [str(TESTS), str(TESTS.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    scripts = os.path.dirname(sys.executable)  # not resolved: a virtual environment's own
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        "PATH": os.pathsep.join([scripts, os.environ["PATH"]]),
    }
    command = [
        os.path.join(scripts, "msrun"), "--worker_num=2", "--local_worker_num=2",
        f"--master_port={free_port()}", f"--log_dir={folder / 'logs'}", "--join=True",
        str(TESTS / "act_worker.py"), str(folder), mode,
    ]  # fmt: skip
    with (folder / "msrun.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=environment,
                                   text=True)  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def when_both_train(run: Path, process: subprocess.Popen[str]) -> Now:
    """Once both ranks have begun, and told how long a step takes."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, told(run.parent)
        attempts = attempts_of(run)
        if attempts and len(ranks_of(attempts[1])) == 2:
            now = look(run, 30)
            if now.step_time_s:
                return now
        time.sleep(0.2)
    raise AssertionError(told(run.parent))


def told(folder: Path) -> str:
    logs = [folder / "msrun.log", *folder.glob("logs/worker_*.log")]
    return "\n".join(log.read_text()[-2000:] for log in logs if log.exists())
