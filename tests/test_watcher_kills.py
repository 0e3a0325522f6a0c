"""A watcher that is killed a hundred times says what one says that never was."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from killed_watcher import rules, watch_for_ever
from mindpulse.alerts.journal import read_alerts
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.folder import create_attempt
from mindpulse.store.writer import RankWriter
from mindpulse.watcher import watch
from processes import forking

KILLS, STEPS_A_KILL = 100, 24
TAGS = ("train_loss", "grad_norm", "step_time_s", "learning_rate")


def write(writer: RankWriter, first: int, numbers: np.random.Generator) -> None:
    """Some steps of a training in trouble, in flushes of a few."""
    for begin in range(first, first + STEPS_A_KILL, 6):
        steps = np.arange(begin, begin + 6)
        for tag in TAGS:
            values = np.abs(numbers.normal(1.0, 0.1, (6, 1)))
            values[numbers.random(6) < 0.02] = np.nan if tag in TAGS[:2] else 3.0
            if tag == "grad_norm" and numbers.random() < 0.08:
                values *= 100
            writer.append(SeriesSpec(tag), Rows(steps, steps / 10, values))
        writer.flush()
        time.sleep(0.003)


def wait_for_more(journal: Path) -> None:
    """Until something is said that was not said before, a few seconds at most."""
    before, until = size_of(journal), time.monotonic() + 5.0
    while size_of(journal) == before and time.monotonic() < until:
        time.sleep(0.005)


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def lines(run: Path) -> Iterator[dict[str, Any]]:
    for text in (run / "alerts.jsonl").read_text().splitlines():
        yield {key: value for key, value in json.loads(text).items() if key != "message"}


def test_a_hundred_kills_lose_nothing_and_say_nothing_twice(tmp_path: Path) -> None:
    run, chance, numbers = tmp_path / "run", random.Random(5), np.random.default_rng(5)
    writer, context = RankWriter(create_attempt(run), 0, 1), forking()
    for kill in range(KILLS):
        here, there = context.Pipe()
        process = context.Process(target=watch_for_ever, args=(str(run), there), daemon=True)
        process.start()
        assert here.poll(20)
        write(writer, 1 + kill * STEPS_A_KILL, numbers)
        if kill % 4 == 3:  # on a slow machine, too, some come as far as the newest steps
            wait_for_more(run / "alerts.jsonl")
        time.sleep(chance.uniform(0.02, 0.16))
        process.kill()
        process.join()
    said_while_killed = len(read_alerts(run))
    writer.close()
    untouched = tmp_path / "untouched"
    shutil.copytree(run, untouched, ignore=shutil.ignore_patterns("alerts.jsonl", "watcher.json"))
    list(watch(run, rules(), once=True))
    list(watch(untouched, rules(), once=True))

    found, wanted = list(lines(run)), list(lines(untouched))
    keys = [(line["id"], line["state"]) for line in found]
    assert len(keys) == len(set(keys))
    by_id = {(line["id"], line["state"]): line for line in wanted}
    assert {(line["id"], line["state"]): line for line in found} == by_id
    assert any(line["grouped_under"] for line in found)
    assert any(line["inhibited_by"] for line in found)
    # The watchers that were killed did the work, not the one at the end.
    assert said_while_killed > len(wanted) / 10
    assert len(wanted) > 100
