"""Seconds, bytes and peak memory of `mindpulse export` for 20 M points, format by format."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import common
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.folder_run import create_attempt
from mindpulse.store.writer import RankWriter

FORMATS = ("csv", "json", "parquet", "tensorboard", "mindspore")
LONG_FORMATS = ("csv", "parquet")
TARGET_MB = 300.0
BLOCK_ROWS = 50_000


def make_scalars(folder: Path, steps: int) -> int:
    """Ten scalar series of float64; returns the number of points."""
    specs = [SeriesSpec(f"scalar_{index}") for index in range(10)]
    _write(folder, specs, steps)
    return steps * len(specs)


def make_wide(folder: Path, steps: int) -> int:
    """One series of 200 columns of float32; returns the number of points."""
    columns = tuple((str(index // 20), str(index % 20)) for index in range(200))
    spec = SeriesSpec("attn", "vector", axes=("layer", "head"), columns=columns, dtype="float32")
    _write(folder, [spec], steps)
    return steps * spec.width


def _write(folder: Path, specs: list[SeriesSpec], steps: int) -> None:
    random = np.random.default_rng(0)
    writer = RankWriter(create_attempt(folder), 0, 1)
    for start in range(0, steps, BLOCK_ROWS):
        numbers = np.arange(start, min(start + BLOCK_ROWS, steps))
        for spec in specs:
            values = np.exp(-numbers[:, None] / steps) + random.normal(
                0, 0.1, (len(numbers), spec.width)
            )
            writer.append(spec, Rows(numbers, 1.79e9 + 0.42 * numbers, values))
        writer.flush()
    writer.close()


def work(words: list[str]) -> None:
    """In a process of its own: one export; prints what it took."""
    from mindpulse.cli import main

    before = memory_mb("VmRSS")
    start, cpu = time.perf_counter(), time.process_time()
    main(["export", *words, "--json"], standalone_mode=False)
    figures = {
        "wall_s": time.perf_counter() - start,
        "cpu_s": time.process_time() - cpu,
        "peak_mb": memory_mb("VmHWM") - before,
    }
    print(json.dumps(figures), file=sys.stderr)


def memory_mb(field: str) -> float:
    """VmRSS, or VmHWM for the peak; ru_maxrss would begin with that of the parent process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (found,) = [line.split()[1] for line in lines if line.startswith(f"{field}:")]
    return int(found) * 1024 / 1e6


def measure(run: Path, out: Path, format_: str, layout: str) -> dict[str, Any]:
    """One export into an empty folder."""
    words = [str(run), "--format", format_, "--layout", layout, "--output-dir", str(out)]
    command = [sys.executable, __file__, "--worker", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["failed"])[-1]}
    figures: dict[str, Any] = json.loads(done.stderr.strip().splitlines()[-1])
    figures["bytes"] = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    shutil.rmtree(out)
    return figures


def show(entries: list[dict[str, Any]]) -> None:
    """Prints the table and the verdict."""
    head = ("run, format", "wall s", "CPU s", "us/point", "bytes/point", "peak MB above start")
    rows = []
    for entry in entries:
        name = f"{entry['run']}, {entry['format']}"
        if "error" in entry:
            rows.append((name, *["failed"] * 5))
            print(f"{name} failed: {entry['error']}")
            continue
        points = entry["points"]
        rows.append(
            (
                name,
                f"{entry['wall_s']:.1f}",
                f"{entry['cpu_s']:.1f}",
                f"{entry['wall_s'] / points * 1e6:.2f}",
                f"{entry['bytes'] / points:.1f}",
                f"{entry['peak_mb']:.0f}",
            )
        )
    print(common.table(head, rows))
    worst = max((entry["peak_mb"] for entry in entries if "peak_mb" in entry), default=0.0)
    print(f"worst peak {worst:.0f} MB above start (target: below {TARGET_MB:.0f})")


def main() -> None:
    """Measures, prints, writes."""
    options = common.parser(__doc__.splitlines()[0])
    options.add_argument("--formats", default=",".join(FORMATS), help="which of them")
    arguments = options.parse_args()
    share = 20 if arguments.quick else 1
    makers = {"10 scalars": (make_scalars, 1_000_000), "200 columns": (make_wide, 100_000)}
    entries = []
    with tempfile.TemporaryDirectory(prefix="mindpulse-bench-") as place:
        for name, (make, steps) in makers.items():
            run = Path(place) / name.replace(" ", "-")
            points = make(run, steps // share)
            for format_ in arguments.formats.split(","):
                for layout in ("series", "long") if format_ in LONG_FORMATS else ("series",):
                    print(f"{name}: {format_} {layout}", file=sys.stderr)
                    label = format_ if layout == "series" else f"{format_} long"
                    found = measure(run, Path(place) / "out", format_, layout)
                    entries.append({"run": name, "format": label, "points": points, **found})
            shutil.rmtree(run)
    show(entries)
    figures = {"target": {"peak_mb": TARGET_MB}, "results": entries}
    common.finish("export", figures, arguments.json)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(sys.argv[2:])
    else:
        main()
