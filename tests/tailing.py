"""Readers in processes of their own that follow a run while it is written."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.folder import create_attempt
from mindpulse.store.reader import Chunk, RunTail
from mindpulse.store.writer import RankWriter
from mindpulse.watcher.waiting import waiter_for
from processes import forking

LOSS = SeriesSpec("train_loss")
FOCUS = SeriesSpec("attn_focus", "vector", "", ("h",), (("0",), ("1",)), "float32")
BATCH_ROWS = 1000
BATCH_EVERY_S = 0.01


@dataclass
class Followed:
    """What one reader saw.

    Attributes:
        rows: by tag.
        problems: gaps, duplicates and wrong values, as text.
        delays_ms: from the flush of a block to its arrival, one for each block that was seen.
    """

    rows: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    delays_ms: list[float] = field(default_factory=list)

    def take(self, chunk: Chunk, now: float) -> None:
        """Checks that the rows go on exactly where the last ones ended."""
        tag, rows = chunk.spec.tag, chunk.rows
        first = self.rows.get(tag, 0)
        wanted = np.arange(first, first + len(rows))
        if not np.array_equal(rows.steps, wanted):
            self.problems.append(f"{tag}: {rows.steps[0]}..{rows.steps[-1]} after {first - 1}")
        if not np.array_equal(rows.values[:, 0], rows.steps.astype(rows.values.dtype)):
            self.problems.append(f"{tag}: wrong values from {first} on")
        self.rows[tag] = first + len(rows)
        self.delays_ms += (1e3 * (now - np.unique(rows.wall_times))).tolist()


def follow(run_dir: str, count: int, said: Connection) -> None:
    """Reads until `count` rows of each series have come, then says what it saw."""
    stop = threading.Event()
    tail, seen = RunTail(run_dir), Followed()
    end = time.monotonic() + 300
    said.send("ready")
    with closing(waiter_for([Path(run_dir)], stop)) as waiter:
        while min(seen.rows.get(spec.tag, 0) for spec in (LOSS, FOCUS)) < count:
            if time.monotonic() > end or seen.problems:
                break
            for chunk in tail.poll():
                if isinstance(chunk, Chunk):
                    seen.take(chunk, time.time())
            waiter.wait(0.05)
    said.send(seen)


def write_and_follow(
    run_dir: Path, count: int, readers: int = 3, max_file_bytes: int = 2 << 20
) -> list[Followed]:
    """Writes `count` rows of two series, with new parts on the way, while others read."""
    folder = create_attempt(run_dir)
    context = forking()
    pipes = [context.Pipe(duplex=False) for _ in range(readers)]
    jobs = [
        context.Process(target=follow, args=(str(run_dir), count, said), daemon=True)
        for _, said in pipes
    ]
    for job in jobs:
        job.start()
    for hears, _ in pipes:
        hears.recv()
    write(folder, count, max_file_bytes)
    found: list[Followed] = [hears.recv() for hears, _ in pipes]
    for job in jobs:
        job.join()
    return found


def write(folder: Path, count: int, max_file_bytes: int) -> None:
    """Blocks of rows, one flush each; the values of a row are its step."""
    writer = RankWriter(folder, 0, 1, max_file_bytes=max_file_bytes)
    for first in range(0, count, BATCH_ROWS):
        steps = np.arange(first, min(first + BATCH_ROWS, count))
        now = np.full(len(steps), time.time())
        for spec in (LOSS, FOCUS):
            values = np.repeat(steps[:, None], spec.width, axis=1).astype(spec.dtype)
            writer.append(spec, Rows(steps, now, values))
        writer.flush()
        time.sleep(BATCH_EVERY_S)
    writer.close()
