"""The processes of `watching.py`: one that feeds the files of many ranks, one that watches them.

The feeder writes as the recorder does while somebody watches: each rank hands over about once a
second what its steps gave, a file for each series, rows first and then the length in the header.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from mindpulse.rules.load import load_rules
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.codec import RowCodec
from mindpulse.store.folder import create_attempt
from mindpulse.store.format import LENGTH_OFFSET
from mindpulse.store.writer import RankWriter
from mindpulse.watcher import watch_runs

RATE = 10  # steps a second
SPIKE = 80.0
WIDE = {
    "attn_focus": (("layer", "head"), 16, 10),
    "attn_entropy": (("layer", "head"), 16, 10),
    "grad_norm_param": (("param",), 64, 1),
}
LEVELS = {"train_loss": 3.0, "grad_norm": 1.0, "learning_rate": 1e-3, "step_time_s": 0.1}


class Series:
    """One series of one rank, appended to without a writer's bookkeeping."""

    def __init__(self, folder: Path, tag: str, seed: int) -> None:
        axes, width, self.every = WIDE.get(tag, ((), 1, 1))
        columns = tuple((str(i),) * len(axes) for i in range(width)) if axes else ()
        dtype = "float32" if axes else "float64"
        self.spec = SeriesSpec(tag, "vector" if axes else "scalar", axes=axes, columns=columns,
                               dtype=dtype)  # fmt: skip
        self.codec = RowCodec(self.spec)
        self.level = LEVELS.get(tag, 0.5)
        self.random = np.random.default_rng(seed)
        writer = RankWriter(folder, 0, 1)
        writer.append(self.spec, self.rows(np.arange(1, 2), time.time()))
        writer.close()
        self.path = str(next(folder.glob(f"{tag}.ms")))
        self.size = os.stat(self.path).st_size

    def rows(self, steps: np.ndarray, now: float, spike: bool = False) -> Rows:
        values = self.level * self.random.normal(1, 0.02, (len(steps), self.spec.width))
        if spike:
            values[-1] = SPIKE
        times = now - (steps[-1] - steps) / RATE
        return Rows(steps, times, values.astype(self.spec.dtype))

    def append(self, data: bytes) -> None:
        fd = os.open(self.path, os.O_WRONLY)
        os.pwrite(fd, data, self.size)
        self.size += len(data)
        os.pwrite(fd, (self.size & 0xFFFFFFFF).to_bytes(4, "little"), LENGTH_OFFSET)
        os.close(fd)


class Rank:
    """All series of a rank; those that no rule reads hold the same numbers."""

    def __init__(self, run: Path, rank: int, read: list[str], others: list[str]) -> None:
        folder = create_attempt(run, rank)
        self.run, self.rank, self.step = run, rank, 1
        self.read = [Series(folder, tag, 1000 * rank + i) for i, tag in enumerate(read)]
        self.others = [Series(folder, tag, rank) for tag in others]

    def flush(self, now: float, spike: bool) -> int:
        """Writes the steps of a second; how many rows."""
        steps = np.arange(self.step + 1, self.step + 1 + RATE)
        self.step += RATE
        same = self.others[0].codec.encode(self.others[0].rows(steps, now)) if self.others else b""
        count = RATE * len(self.others)
        for series in self.read:
            mine = steps[steps % series.every == 0]
            loud = spike and series.spec.tag == "grad_norm"
            series.append(series.codec.encode(series.rows(mine, now, loud)))
            count += len(mine)
        for series in self.others:
            series.append(same)
        return count


def feed(root: Path, runs: int, ranks: int, series: int, seconds: float) -> None:
    """Feeds for so long; prints when each spike was with the system, and what was written."""
    read = sorted({tag for rule in load_rules() for tag in rule.needs} | {"step_time_s"})
    others = [f"other_{number}" for number in range(max(0, series - len(read)))]
    all_ranks = [
        Rank(root / f"run-{run}", rank, read, others)
        for run in range(runs)
        for rank in range(ranks)
    ]
    # Neighbours in time belong to different runs.
    all_ranks.sort(key=lambda each: (each.rank, str(each.run)))
    print(json.dumps({"ready": len(all_ranks)}), flush=True)
    sys.stdin.readline()
    begin, rows, late, spikes = time.time(), 0, 0.0, int(3 * seconds)
    spike_due = {str(root / f"run-{run}"): 5.0 + 3.0 * run / runs for run in range(runs)}
    for second in range(int(seconds)):
        for place, rank in enumerate(all_ranks):
            due = begin + second + place / len(all_ranks)
            now = time.time()
            if now < due:
                time.sleep(due - now)
            late = max(late, now - due)
            spike = spikes > 0 and due - begin >= spike_due[str(rank.run)]
            rows += rank.flush(time.time(), spike)
            if spike:
                spike_due[str(rank.run)] = due - begin + 3.1
                print(json.dumps({"run": str(rank.run), "rank": rank.rank, "step": rank.step,
                                  "at": time.time()}), flush=True)  # fmt: skip
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"rows": rows, "late_s": late, "cpu_s": usage.ru_utime + usage.ru_stime,
                      "read": len(read)}), flush=True)  # fmt: skip


def watching(root: Path) -> None:
    """Watches; prints when each alert was told, then the time and memory that it took."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    usage = resource.getrusage(resource.RUSAGE_SELF)
    begin = usage.ru_utime + usage.ru_stime
    memory = threading.Thread(target=_note_memory, args=(stop, sizes := []), daemon=True)
    memory.start()
    for run, event in watch_runs([root], load_rules(), stop=stop):
        if getattr(event, "state", "") == "firing":
            told = {"run": str(run), "rank": event.rank, "step": event.step, "at": time.time()}
            print(json.dumps({**told, "rule": event.rule}), flush=True)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    spent: Mapping[str, object] = {"cpu_s": usage.ru_utime + usage.ru_stime - begin, "rss": sizes}
    print(json.dumps(spent), flush=True)


def _note_memory(stop: threading.Event, sizes: list[int]) -> None:
    while not stop.wait(1.0):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        sizes.append(pages * resource.getpagesize())


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("what", choices=["feed", "watch"])
    options.add_argument("root", type=Path)
    options.add_argument("numbers", nargs="*", type=float)
    asked = options.parse_args()
    if asked.what == "watch":
        watching(asked.root)
    else:
        runs, ranks, series, seconds = asked.numbers
        feed(asked.root, int(runs), int(ranks), int(series), seconds)


if __name__ == "__main__":
    main()
