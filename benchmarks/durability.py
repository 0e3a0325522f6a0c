"""Kills, power losses and readers beside a writer: what was promised, and what was read.

    python benchmarks/durability.py [--quick] [--json FILE]

The trainings that are killed, the file layer that loses unsynced pages and the readers are those
of the tests. Any row that was acknowledged and is not read, or is read wrong, ends the benchmark
with an error. See docs/durability.md.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import common

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import power_training
import tailing
from killed_writer import Nursery

KILLS, QUICK_KILLS = 500, 50
SEEDS, QUICK_SEEDS = 400, 60
ROWS, QUICK_ROWS = 1_000_000, 100_000
READERS = 3


def kills(folder: Path, count: int) -> dict[str, Any]:
    """`kill -9` at random moments; 50 attempts to a run."""
    nursery, chance = Nursery(), random.Random(0)
    found = [nursery.kill_one(folder / str(n // 50), chance) for n in range(count)]
    return {
        "kills": count,
        "steps_acknowledged": sum(kill.acknowledged for kill in found),
        "acknowledged_and_not_read": sum(max(0, k.acknowledged - k.read) for k in found),
        "steps_read_beyond": sum(kill.read - kill.acknowledged for kill in found),
    }


def power_losses(folder: Path, count: int) -> dict[str, Any]:
    """The power goes at a random call of a training of three series."""
    calls = power_training.calls_of_a_training(folder)
    oldest = []
    for seed in range(count):
        place = folder / f"seed{seed}"
        place.mkdir()
        training, run_dir = power_training.lost_run(place, seed, calls)
        power_training.check(run_dir, training.safe(), seed)
        oldest.append(power_training.oldest_loss_s(training, run_dir))
    return {
        "power_losses": count,
        "safe_and_not_read": 0,
        "age_of_oldest_lost_row_s_p50": float(np.percentile(oldest, 50)),
        "age_of_oldest_lost_row_s_max": max(oldest),
        "allowed_s": power_training.LONGEST_LOSS_S,
    }


def readers(folder: Path, rows: int) -> dict[str, Any]:
    """Two series are written in blocks of 1,000 rows while three processes follow them."""
    seen = tailing.write_and_follow(folder / "run", rows, READERS, max_file_bytes=8 << 20)
    delays = np.concatenate([each.delays_ms for each in seen])
    problems = [text for each in seen for text in each.problems]
    if problems or any(set(each.rows.values()) != {rows} for each in seen):
        raise SystemExit(f"gaps or duplicates: {problems[:5]}, {[each.rows for each in seen]}")
    return {
        "readers": READERS,
        "rows_of_each_series": rows,
        "gaps": 0,
        "duplicates": 0,
        "delay_ms_p50": float(np.percentile(delays, 50)),
        "delay_ms_p99": float(np.percentile(delays, 99)),
        "delay_ms_max": float(delays.max()),
    }


def timed(name: str, act: Callable[[Path, int], dict[str, Any]], count: int) -> dict[str, Any]:
    """What `act` measured, and how long it took."""
    print(f"{name}: {count:,}", file=sys.stderr)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mindpulse-durability-") as folder:
        found = act(Path(folder), count)
    return {**found, "seconds": round(time.monotonic() - begin, 1)}


def main() -> None:
    """Measures, prints, writes."""
    arguments = common.parser(__doc__.splitlines()[0]).parse_args()
    quick = arguments.quick
    killed = timed("kills", kills, QUICK_KILLS if quick else KILLS)
    lost = timed("power losses", power_losses, QUICK_SEEDS if quick else SEEDS)
    followed = timed("rows beside readers", readers, QUICK_ROWS if quick else ROWS)
    rows = [
        ("kill -9", f"{killed['kills']:,}", f"{killed['acknowledged_and_not_read']} rows"),
        ("power loss", f"{lost['power_losses']:,}", f"{lost['safe_and_not_read']} rows"),
        (f"{READERS} readers", f"{followed['rows_of_each_series']:,} rows", "0 gaps, 0 twice"),
    ]
    print(common.table(("what", "how often", "acknowledged and not read"), rows))
    print(
        f"power loss took rows up to {lost['age_of_oldest_lost_row_s_max']:.2f} s old, "
        f"of {lost['allowed_s']:.0f} s that are allowed"
    )
    p50, p99, most = (followed[f"delay_ms_{name}"] for name in ("p50", "p99", "max"))
    print(f"a block is seen {p50:.1f} ms after its flush, p99 {p99:.1f} ms, at most {most:.1f} ms")
    figures = {"kill": killed, "power_loss": lost, "readers": followed}
    common.finish("durability", figures, arguments.json)


if __name__ == "__main__":
    main()
