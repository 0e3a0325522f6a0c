"""Trainings that are killed: they record, and say step by step up to where all is written."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np

from mindpulse.recorder import Recorder
from mindpulse.series import Rows
from mindpulse.store.folder_run import open_folder
from processes import forking
from series_samples import FOCUS, assert_same

TAGS = ("train_loss", "learning_rate", FOCUS.tag)
FLUSH_EVERY = 7


def record(run_dir: str, said: Connection) -> None:
    """Records for ever; `said` gets each step for which `flush` answered True."""
    recorder = Recorder(run_dir, flush_interval=0.02)
    for step in range(1, 10_000_000):
        recorder.add_scalars(step, {"train_loss": float(step), "learning_rate": step / 2})
        recorder.write(FOCUS, focus_rows([step]))
        recorder.note("at", step=step)
        if step % FLUSH_EVERY == 0 and recorder.flush():
            said.send(step)


def focus_rows(steps: list[int]) -> Rows:
    """Rows that tell their step."""
    at = np.array(steps, np.int64)
    values = at[:, None] + np.arange(FOCUS.width) / 8
    return Rows(at, at.astype(np.float64), values.astype(FOCUS.dtype))


def start_rank(run: str, mark: int, together: Barrier) -> None:
    """One of two processes that begin the same rank at the same moment."""
    together.wait()
    recorder = Recorder(run, rank=3)
    for step in range(5):
        recorder.add_scalars(step, {"train_loss": float(mark)})
    assert recorder.flush()
    together.wait()
    recorder.close()


@dataclass(frozen=True)
class Kill:
    """What became of one kill.

    Attributes:
        acknowledged: the last step for which the recorder had vouched.
        read: the last step that is there, of the series that has the fewest.
    """

    acknowledged: int
    read: int


class Nursery:
    """Starts trainings quickly: they are forked from a process that has imported everything."""

    def __init__(self) -> None:
        self._context = forking()

    def kill_one(self, run_dir: Path, chance: random.Random, longest_s: float = 0.1) -> Kill:
        """Starts a training, kills it at a random moment (-9), and reads what it left.

        Raises:
            AssertionError: a step that was acknowledged is not read, or a value is wrong.
        """
        hears, said = self._context.Pipe(duplex=False)
        process = self._context.Process(target=record, args=(str(run_dir), said), daemon=True)
        process.start()
        said.close()
        acknowledged = hears.recv()  # it is at work
        time.sleep(chance.uniform(0.0, longest_s))
        assert process.pid
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        while True:
            try:
                acknowledged = hears.recv()
            except (EOFError, OSError):
                break
        return Kill(acknowledged, last_read(run_dir, acknowledged))


def last_read(run_dir: Path, acknowledged: int) -> int:
    """The last step of the newest attempt; all acknowledged steps are there, all values right."""
    run = open_folder(run_dir)
    attempt = run.attempts[-1]
    lasts = []
    for tag in TAGS:
        found = run.series(tag, attempt=attempt)
        count = len(found)
        assert found.steps.tolist() == list(range(1, count + 1)), tag
        assert count >= acknowledged, (tag, count, acknowledged)
        if tag == FOCUS.tag:
            assert_same(found.rows, focus_rows(list(range(1, count + 1))))
        else:
            assert np.array_equal(found.values * (2 if tag == "learning_rate" else 1), found.steps)
        lasts.append(count)
    told = [note.step for note in run.notes(attempt) if note.kind == "at"]
    assert told == list(range(1, len(told) + 1))
    assert len(told) >= acknowledged
    return min(lasts)
