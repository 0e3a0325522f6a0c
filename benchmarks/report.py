"""Seconds and peak memory of `mindpulse analyze` and `mindpulse report` on long runs."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import common
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.folder_run import create_attempt
from mindpulse.store.writer import RankWriter

TARGETS = {"analyze --quick": 0.3, "report, not judged": 2.0}
TARGET_MB = 300.0
TASKS = ("analyze --quick", "analyze", "report, not judged", "report")
BLOCK_ROWS = 50_000
SCALARS = (
    SeriesSpec("train_loss", unit="nats"),
    SeriesSpec("grad_norm"),
    SeriesSpec("learning_rate"),
    SeriesSpec("step_time_s", unit="s"),
    *(SeriesSpec(f"metric/{index}") for index in range(6)),
)
PARAMETERS = tuple((f"layers.{index // 8}.{'qkvofudn'[index % 8]}",) for index in range(200))
WIDE = SeriesSpec("grad_norm_param", "vector", "", ("param",), PARAMETERS, "float32")


def make_run(folder: Path, specs: tuple[SeriesSpec, ...], steps: int) -> int:
    """Writes a healthy run with a spike and a NaN; returns the number of points."""
    random = np.random.default_rng(0)
    writer = RankWriter(create_attempt(folder), 0, 1)
    for start in range(0, steps, BLOCK_ROWS):
        numbers = np.arange(start, min(start + BLOCK_ROWS, steps))
        falling = 1 + 4 * np.exp(-5 * numbers / steps)[:, None]
        for spec in specs:
            values = falling * random.normal(1, 0.02, (len(numbers), spec.width))
            values[numbers == steps // 3] = 40.0
            values[numbers == steps // 2] = np.nan
            writer.append(spec, Rows(numbers, 1.79e9 + 0.42 * numbers, values))
        writer.flush()
    writer.close()
    return steps * sum(spec.width for spec in specs)


def work(task: str, run: str) -> None:
    """In a process of its own: one task, without the start of Python and the imports."""
    todo = prepared(task, run)
    before = memory_mb("VmRSS")
    start, cpu = time.perf_counter(), time.process_time()
    with redirect_stdout(StringIO()):
        todo()
    figures = {
        "wall_s": time.perf_counter() - start,
        "cpu_s": time.process_time() - cpu,
        "peak_mb": memory_mb("VmHWM"),
        "start_mb": before,
    }
    print(json.dumps(figures))


def prepared(task: str, run: str) -> Callable[[], object]:
    """The task with its imports done."""
    from mindpulse.cli import main
    from mindpulse.cli.analyze import command as _analyze  # noqa: F401
    from mindpulse.cli.report import render
    from mindpulse.interop import open_run
    from mindpulse.report.collect import collect
    from mindpulse.report.words import Words

    if task == "report, not judged":
        return lambda: render(collect(open_run(Path(run)), ()), Words("en"), "html")
    name, *options = task.split()
    if name == "report":
        options += ["--output", f"{run}.html"]
    return lambda: main([name, run, *options], standalone_mode=False)


def memory_mb(field: str) -> float:
    """VmRSS, or VmHWM for the peak; ru_maxrss would begin with that of the parent process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (found,) = [line.split()[1] for line in lines if line.startswith(f"{field}:")]
    return int(found) * 1024 / 1e6


def measure(task: str, run: Path, repeats: int) -> dict[str, float]:
    """Medians over some processes; the peak is the highest."""
    command = [sys.executable, __file__, "--worker", task, str(run)]
    found: list[dict[str, float]] = []
    for _ in range(repeats):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{task} failed:\n{done.stderr}")
        found.append(json.loads(done.stdout.strip().splitlines()[-1]))
    figures = {name: median(one[name] for one in found) for name in found[0]}
    return {**figures, "peak_mb": max(one["peak_mb"] for one in found)}


def measured(options: argparse.Namespace, place: Path) -> Iterator[dict[str, Any]]:
    """Each run is made, measured and removed."""
    share = 20 if options.quick else 1
    runs = {
        "1 M steps x 10 scalars": (SCALARS, 1_000_000),
        "100 k steps x 200 columns": ((WIDE,), 100_000),
        "10 M steps, one scalar": (SCALARS[:1], 10_000_000),
    }
    for name, (specs, steps) in runs.items():
        folder = place / name.replace(" ", "-").replace(",", "")
        points = make_run(folder, specs, steps // share)
        size = sum(path.stat().st_size for path in folder.rglob("*.ms"))
        for task in options.tasks.split(";"):
            print(f"{name}: {task}", file=sys.stderr)
            found = measure(task, folder, 1 if options.quick else 3)
            yield {"run": name, "task": task, "points": points, "bytes": size, **found}


def show(entries: list[dict[str, Any]]) -> None:
    """Prints the table, and what missed its target."""
    head = ("run, task", "wall s", "CPU s", "peak MB", "of which the start")
    rows = [
        (
            f"{entry['run']}: {entry['task']}",
            f"{entry['wall_s']:.2f}",
            f"{entry['cpu_s']:.2f}",
            f"{entry['peak_mb']:.0f}",
            f"{entry['start_mb']:.0f}",
        )
        for entry in entries
    ]
    print(common.table(head, rows))
    for entry in entries:
        limit = TARGETS.get(entry["task"], float("inf"))
        if entry["wall_s"] > limit or (entry["peak_mb"] > TARGET_MB and limit < float("inf")):
            print(f"missed: {entry['run']}, {entry['task']} ({limit} s, {TARGET_MB:.0f} MB)")


def main() -> None:
    """Measures, prints, writes."""
    options = common.parser(__doc__.splitlines()[0])
    options.add_argument("--tasks", default=";".join(TASKS), help="which, separated by ';'")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="mindpulse-bench-") as place:
        entries = list(measured(arguments, Path(place)))
    show(entries)
    figures = {"target": {"wall_s": TARGETS, "peak_mb": TARGET_MB}, "results": entries}
    common.finish("report", figures, arguments.json)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(*sys.argv[2:])
    else:
        main()
