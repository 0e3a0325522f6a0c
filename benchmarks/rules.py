"""Judging a finished run: every step alone, beside many steps at once; and the report of it.

    python benchmarks/rules.py [--quick] [--json FILE] [--steps N] [--rounds N]

A run of a million steps with four scalars, and 16 heads of attention every ten steps, is judged by
the shipped rules: healthy, and with faults. Every step alone takes minutes, so that way sees a part
of the run. The two take turns; medians. See docs/benchmarks.md.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

import common
from mindpulse.alerts import AlertEvent
from mindpulse.alerts.judge import Judge
from mindpulse.rules.load import load_rules
from mindpulse.rules.rule import Rule
from mindpulse.store.folder import create_attempt
from mindpulse.store.reader import Chunk
from mindpulse.store.writer import RankWriter
from mindpulse.testing import chunk, spec

TARGET_TIMES = 30
HEADS, EVERY = 16, 10
# The peak that the system tells of a child would begin with that of this process.
CALL = """
import re, sys
from pathlib import Path
from mindpulse.cli import main
try:
    main()
finally:
    peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
    print(peak[1], file=sys.stderr)
"""
Series = dict[str, NDArray[np.float64]]


def healthy(steps: int) -> Series:
    """A loss that falls, norms about 1.3, a schedule, heads that move."""
    random, at = np.random.default_rng(0), np.arange(steps)
    shape = steps // EVERY, HEADS
    return {
        "train_loss": 3 + 5 * np.exp(-at / (steps / 5)) + random.normal(0, 0.05, steps),
        "grad_norm": np.exp(random.normal(0.25, 0.25, steps)),
        "learning_rate": 1e-3 * np.minimum(1, (at + 1) / 1000) * (1 - 0.9 * at / steps),
        "step_time_s": np.abs(random.normal(0.4, 0.03, steps)),
        "attn_focus": 0.3 + random.normal(0, 0.05, shape),
        "attn_entropy": 0.8 + random.normal(0, 0.02, shape),
    }


def faulty(steps: int) -> Series:
    """The same with a fault of each kind every few thousand steps, and heads that stand still."""
    run, random = healthy(steps), np.random.default_rng(1)
    for begin in random.integers(0, steps, steps // 5000):
        run["train_loss"][begin : begin + 30] += 9.0
        run["step_time_s"][begin] = 9.0
        run["grad_norm"][begin : begin + 20] *= 80
        run["learning_rate"][begin : begin + 5] *= 50
    run["train_loss"][steps // 2 : steps // 2 + steps // 50] = np.nan
    run["attn_focus"][steps // EVERY // 3 :] = 0.4 + random.normal(0, 0.004, HEADS)
    run["attn_entropy"][steps // EVERY // 2 :, ::3] = 0.01
    return run


def chunks_of(run: Series, steps: int) -> list[Chunk]:
    """The rows of the first `steps` steps."""
    every = {tag: EVERY if tag.startswith("attn") else 1 for tag in run}
    return [
        chunk(tag, values[: steps // every[tag]], every=every[tag]) for tag, values in run.items()
    ]


def judged(
    rules: Sequence[Rule], chunks: list[Chunk], every_step: bool
) -> tuple[float, list[AlertEvent]]:
    """CPU seconds of the one thread that judges, and what was said."""
    begin = time.process_time()
    judge = Judge(rules, every_step=every_step)
    events = judge.feed(chunks) + judge.finish()
    return time.process_time() - begin, events


def both_ways(
    name: str, rules: Sequence[Rule], run: Series, part: int, rounds: int
) -> dict[str, Any]:
    """Steps a second of either way, turn about.

    Raises:
        SystemExit: they said different things about the part that both saw.
    """
    steps = len(run["train_loss"])
    whole, some = chunks_of(run, steps), chunks_of(run, part)
    alone, together, events = [], [], 0
    for _ in range(rounds):
        seconds, said = judged(rules, some, every_step=True)
        alone.append(part / seconds)
        if repr(judged(rules, some, every_step=False)[1]) != repr(said):
            raise SystemExit(f"{name}: the two ways differ")
        seconds, found = judged(rules, whole, every_step=False)
        together.append(steps / seconds)
        events = len(found)
    return {
        "what": name,
        "events": events,
        "every_step": median(alone),
        "swept": median(together),
        "swept_s": steps / median(together),
        "times": median(b / a for a, b in zip(alone, together, strict=True)),
    }


def write_run(folder: Path, run: Series) -> None:
    """The run in a folder, with four more scalars: ten tags."""
    run = run | {f"more_{number}": run["train_loss"] for number in range(4)}
    rank = create_attempt(folder, 0)
    writer = RankWriter(rank, 0, 1)
    steps = len(run["train_loss"])
    for begin in range(0, steps, 50_000):
        for tag, values in run.items():
            every = EVERY if tag.startswith("attn") else 1
            part = values[begin // every : (begin + 50_000) // every]
            rows = chunk(tag, part, first_step=begin + 1, every=every).rows
            writer.append(spec(tag, rows.values.shape[1]), rows)
    writer.close()


def commands(run: Series, rounds: int) -> list[dict[str, Any]]:
    """`mindpulse report` and `mindpulse watch --once` as processes, start of Python included."""
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        write_run(folder, run)
        for words in (["report", "--output", f"{place}/r.html"], ["watch", "--once"]):
            walls, peaks = zip(*(command(words, folder) for _ in range(rounds)), strict=True)
            rows.append({"what": words[0], "wall_s": median(walls), "peak_mb": median(peaks)})
    return rows


def command(words: list[str], folder: Path) -> tuple[float, float]:
    """Wall seconds and peak memory in MB of one call.

    Raises:
        SystemExit: it failed; its last words are the message.
    """
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", CALL, words[0], str(folder), *words[1:]],
        capture_output=True,
        text=True,
    )
    wall_s, said = time.perf_counter() - begin, done.stderr.splitlines() or ["no message"]
    if done.returncode not in (0, 1):  # 1: the watcher raised an alert
        raise SystemExit(f"mindpulse {words[0]}: {said[-1]}")
    return wall_s, int(said[-1]) / 1024


def print_ways(rows: list[dict[str, Any]]) -> None:
    speeds = "every step alone, steps/s", "many at once, steps/s"
    head = ("judged", "events", *speeds, "cpu s", "times")
    cells = [
        (
            row["what"],
            row["events"],
            f"{row['every_step']:,.0f}",
            f"{row['swept']:,.0f}",
            f"{row['swept_s']:.2f}",
            f"{row['times']:.0f}",
        )
        for row in rows
    ]
    print(common.table(head, cells))


def main() -> None:
    """Measures, prints, writes."""
    options = common.parser(__doc__.splitlines()[0])
    options.add_argument("--steps", type=int, help="steps of the run (a million, quick: 100,000)")
    options.add_argument("--rounds", type=int, help="how often (5, quick: once)")
    arguments = options.parse_args()
    quick = arguments.quick
    steps = arguments.steps or (100_000 if quick else 1_000_000)
    rounds, part = arguments.rounds or (1 if quick else 5), 4_000 if quick else 20_000
    rules, runs = load_rules(), {"healthy": healthy(steps), "faulty": faulty(steps)}
    ways = [both_ways(name, rules, run, part, rounds) for name, run in runs.items()]
    written = [rule for rule in rules if set(rule.expression.series) <= set(runs["healthy"])]
    ways += [both_ways(rule.name, [rule], runs["healthy"], part, rounds) for rule in written]
    print_ways(ways)
    print(f"target, a healthy run: {TARGET_TIMES} times; {ways[0]['times']:.0f}\n")
    called = commands(runs["healthy"], rounds)
    cells = [(row["what"], f"{row['wall_s']:.2f}", f"{row['peak_mb']:.0f}") for row in called]
    print(common.table((f"{steps:,} steps, 10 tags: mindpulse", "wall s", "peak MB"), cells))
    common.finish("rules", {"ways": ways, "commands": called}, arguments.json)


if __name__ == "__main__":
    main()
