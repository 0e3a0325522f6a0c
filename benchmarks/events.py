"""Reading one loss curve out of an event file, every checksum verified, beside other readers.

    python benchmarks/events.py [--quick] [--json FILE] [--steps N] [--rounds N] [--keep DIR]

The same N steps x 10 tags are written three times: as MindSpore writes them and as TensorBoard
may (one event a step), and as TensorBoard's `add_scalar` does (one event for each tag and step).
Each reader gets the whole curve of one tag, each time in a process of its own, in turn. CPU time
is that of the process and its children, the start of Python and the imports left out; the data
server is a process of its own, all of whose time counts. "checksum only" reads the bytes and
computes one CRC-32C over them: no reader that verifies them can cost less. See
docs/event-files.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import common
from events_worker import READERS
from mindpulse.interop.events.encode import numeric_events, scalar_part
from mindpulse.interop.events.messages import version_event
from mindpulse.series import Rows

TAGS = [f"loss{index}" if index else "loss" for index in range(10)]
FILES = {
    "mindspore": ("mindspore", False),
    "tensorboard, an event a step": ("tensorboard", False),
    "tensorboard, an event a tag": ("tensorboard", True),
}
WORKER = Path(__file__).with_name("events_worker.py")
BLOCK = 20_000
TARGETS = {False: 15.0, True: 3.0}


def make(path: Path, dialect: str, steps: int, *, per_tag: bool) -> None:
    """Writes the file, block by block: falling curves with noise, in single precision."""
    rng = np.random.default_rng(0)
    parts = [scalar_part(dialect, tag) for tag in TAGS]
    with path.open("wb") as file:
        file.write(version_event(dialect, 1.7e9))
        for start in range(0, steps, BLOCK):
            rows = block(rng, start, min(BLOCK, steps - start))
            if not per_tag:
                file.writelines(numeric_events(parts, rows))
                continue
            for first, last in same_length(rows.steps):
                run = rows[first:last]
                columns = [
                    b"".join(numeric_events([part], Rows(run.steps, run.wall_times, column)))
                    for part, column in zip(parts, np.split(run.values, len(TAGS), 1), strict=True)
                ]
                frames = [np.frombuffer(c, "u1").reshape(last - first, -1) for c in columns]
                file.write(np.concatenate(frames, axis=1).tobytes())


def block(rng: np.random.Generator, start: int, count: int) -> Rows:
    """Rows of all tags."""
    steps = np.arange(start, start + count, dtype=np.int64)
    falling = 8 * np.exp(-steps / 2e5)[:, None] + rng.normal(0, 0.05, (count, len(TAGS)))
    walls = 1.7e9 + steps * 0.25 + rng.uniform(0, 0.01, count)
    return Rows(steps, walls, falling.astype(np.float32))


def same_length(steps: np.ndarray) -> list[tuple[int, int]]:
    """Runs of steps that take the same number of bytes."""
    lengths = np.searchsorted(2 ** (7 * np.arange(1, 9)), steps, side="right")
    cuts = [0, *(np.flatnonzero(np.diff(lengths)) + 1).tolist(), len(steps)]
    return list(pairwise(cuts))


def measure(reader: str, path: Path, steps: int) -> dict[str, Any]:
    """One run of the worker: CPU and wall seconds, peak memory, points; or an error."""
    command = [sys.executable, str(WORKER), reader, str(path), TAGS[0]]
    environment = {**os.environ, "EXPECTED_POINTS": str(steps), "GLOG_v": "3"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, env=environment)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def rounds(paths: dict[str, Path], count: int, steps: int) -> list[dict[str, Any]]:
    """Medians of each reader and file."""
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for number in range(count):
        for kind, path in paths.items():
            for reader, (dialects, _) in READERS.items():
                if FILES[kind][0] in dialects:
                    print(f"round {number + 1}/{count}: {reader}, {kind}", file=sys.stderr)
                    runs.setdefault((kind, reader), []).append(measure(reader, path, steps))
    return [summary(kind, reader, found, steps) for (kind, reader), found in runs.items()]


def summary(kind: str, reader: str, found: list[dict[str, Any]], steps: int) -> dict[str, Any]:
    """One line of the table."""
    line: dict[str, Any] = {"file": kind, "reader": reader, "steps": steps, "runs": len(found)}
    wrong = [run["error"] for run in found if "error" in run]
    if wrong:
        return {**line, "error": wrong[0]}
    for key in ("cpu_s", "wall_s", "peak_mib"):
        line[key] = median(run[key] for run in found)
    line["points"] = found[0]["points"]
    return line


def verdicts(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many times less CPU than the data server our reader takes."""
    found = []
    for kind, (_, per_tag) in FILES.items():
        costs = {line["reader"]: line.get("cpu_s") for line in lines if line["file"] == kind}
        ours, server = costs.get("mindpulse"), costs.get("data server, all points")
        if ours and server:
            times = server / ours
            found.append({"file": kind, "times_less": times, "target": TARGETS[per_tag]})
    return found


def growth(folder: Path, steps: int) -> list[dict[str, Any]]:
    """Peak memory of our reader at three sizes of file; the curve itself takes 20 B a step."""
    found = []
    for size in (steps // 16, steps // 4, steps):
        path = folder / f"events.out.tfevents.1700000001.host.1.{size}"
        make(path, "tensorboard", size, per_tag=False)
        curve, last = (
            measure("mindpulse", path, size),
            measure("mindpulse, checked only", path, size),
        )
        found.append(
            {
                "file_mib": path.stat().st_size / 2**20,
                "curve_mib": size * 20 / 2**20,
                "peak_mib": curve["peak_mib"],
                "peak_mib_without_curve": last["peak_mib"],
            }
        )
        path.unlink()
    return found


def show(
    lines: list[dict[str, Any]], found: list[dict[str, Any]], sizes: list[dict[str, Any]]
) -> None:
    """Prints the tables."""
    rows = []
    for line in lines:
        cells = [f"{line[k]:.3f}" if k in line else "-" for k in ("cpu_s", "wall_s")]
        peak = f"{line['peak_mib']:.0f}" if "peak_mib" in line else "-"
        rows.append((line["file"], line["reader"], *cells, peak, line.get("points", "-")))
    print(common.table(("file", "reader", "CPU s", "wall s", "peak MiB", "points"), rows))
    for line in lines:
        if "error" in line:
            print(f"{line['reader']} failed on {line['file']}: {line['error']}")
    for entry in found:
        print(
            f"{entry['file']}: {entry['times_less']:.1f} times less CPU than the data server "
            f"(target {entry['target']:.0f})"
        )
    head = ("file MiB", "curve MiB", "peak MiB", "peak MiB, only checked")
    print(common.table(head, [tuple(f"{v:.1f}" for v in entry.values()) for entry in sizes]))


def main() -> None:
    """Measures, prints, writes."""
    options = common.parser(__doc__.splitlines()[0])
    options.add_argument("--steps", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--keep", type=Path, metavar="DIR", help="leave the files here")
    arguments = options.parse_args()
    steps, count = (50_000, 1) if arguments.quick else (arguments.steps, arguments.rounds)
    with tempfile.TemporaryDirectory(prefix="mindpulse-bench-") as temporary:
        folder = arguments.keep or Path(temporary)
        paths = {}
        for index, (kind, (dialect, per_tag)) in enumerate(FILES.items()):
            name = "events.out.events.summary" if dialect == "mindspore" else "events.out.tfevents"
            paths[kind] = folder / str(index) / f"{name}.1700000000.0.host_MS"
            paths[kind].parent.mkdir(parents=True, exist_ok=True)
            make(paths[kind], dialect, steps, per_tag=per_tag)
        lines = rounds(paths, count, steps)
        sizes = growth(folder, steps)
    found = verdicts(lines)
    show(lines, found, sizes)
    figures = {"steps": steps, "tags": len(TAGS), "results": lines, "verdicts": found}
    common.finish("events", {**figures, "memory": sizes}, arguments.json)


if __name__ == "__main__":
    main()
