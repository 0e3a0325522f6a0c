"""Comparing two long curves: time of the warping, and what the reduction to 1,000 points costs.

    python benchmarks/compare.py [--quick] [--json FILE]

The exact warping of 100,000 x 100,000 points, with bands of 1 % and 10 %, beside dtaidistance with
the same bands; then what `mindpulse compare` does, on curves and on run folders of a
million steps. See docs/compare.md.
"""

from __future__ import annotations

import importlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

import common
from mindpulse.compare import Settings, Side, compare, curve_of, warped_cost
from mindpulse.recorder import Recorder
from mindpulse.series import Rows, SeriesSpec

TARGET_S = 2.0
HALF_LIVES = (1 / 12.5, 1 / 5)  # of A and of B, as a share of the run
Floats = NDArray[np.float64]


def curves(points: int, sigma: float) -> tuple[Floats, Floats]:
    """Two losses that fall from 10 to 2, B more slowly, with noise of `sigma` on each row."""
    rng = np.random.default_rng(0)
    where = (np.arange(points) + 0.5) / points
    clean = [2 + 8 * 0.5 ** (where / half_life) for half_life in HALF_LIVES]
    a, b = (curve + rng.normal(0, sigma, points) for curve in clean)
    return a, b


def timed(call: Callable[[], float], repeat: int) -> dict[str, float]:
    """The result with wall and CPU seconds, medians over the repetitions."""
    walls, cpus, value = [], [], float("nan")
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        value = call()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return {"value": value, "wall_s": median(walls), "cpu_s": median(cpus)}


def oracle() -> Any:
    """dtaidistance, or None where it does not install."""
    try:
        return importlib.import_module("dtaidistance.dtw")
    except ImportError:
        return None


def exact(points: int, band: float, repeat: int) -> list[dict[str, Any]]:
    """Ours and dtaidistance's, turn about, on random walks: nothing about them is easy."""
    rng = np.random.default_rng(1)
    a, b = np.cumsum(rng.normal(size=(2, points)), axis=1)
    radius, other = round(band * points), oracle()
    calls: dict[str, Callable[[], float]] = {"mindpulse": lambda: warped_cost(a, b, radius)}
    if other is not None:
        window = {"window": radius + 1, "inner_dist": "euclidean", "use_pruning": False}
        calls["dtaidistance (C)"] = lambda: float(other.distance_fast(a, b, **window))
    rows = [{"by": name, "points": points, "radius": radius} for name in calls]
    for row, call in zip(rows, calls.values(), strict=True):
        row.update(timed(call, repeat))
    for row in rows:
        wanted = rows[-1]["value"] if len(rows) > 1 else float("nan")
        row["relative_error"] = abs(row["value"] / wanted - 1)
    return rows


def reduced(points: int, sigma: float, repeat: int) -> dict[str, Any]:
    """`compare` on 1,000 points beside the exact warping of all rows, in the same unit and band."""
    a, b = curves(points, sigma)
    steps = np.arange(points)
    sides = [Side(curve_of(name, steps, steps * 1.0, v)) for name, v in (("a", a), ("b", b))]

    def distance() -> float:
        found = compare(sides[0], sides[1], Settings())
        assert found.courses is not None
        return found.courses.distance

    found = compare(sides[0], sides[1], Settings()).courses
    assert found is not None
    radius, unit = round(Settings().band * points), found.scale.unit
    wanted = timed(lambda: warped_cost(a, b, radius) / points / unit, 1)
    return {
        "points": points,
        "sigma": sigma,
        **timed(distance, repeat),
        "exact": wanted["value"],
        "exact_wall_s": wanted["wall_s"],
    }


def write_run(folder: Path, steps: int, seed: int) -> None:
    """A run of `steps` steps with one scalar."""
    rng = np.random.default_rng(seed)
    recorder = Recorder(folder)
    for start in range(1, steps + 1, 50_000):
        number = np.arange(start, min(start + 50_000, steps + 1))
        loss = 2 + 8 * 0.5 ** (number / (steps / 12)) + rng.normal(0, 0.2, len(number))
        recorder.write(SeriesSpec("train_loss"), Rows(number, 1.7e9 + number, loss[:, None]))
        recorder.flush()
    recorder.close()


def command(steps: int, repeat: int) -> dict[str, Any]:
    """`mindpulse compare` as a process, on two run folders, start of Python included."""
    with tempfile.TemporaryDirectory() as place:
        for seed, name in enumerate("ab"):
            write_run(Path(place) / name, steps, seed)
        words = [sys.executable, "-m", "mindpulse.cli", "compare", f"{place}/a", f"{place}/b"]
        walls = []
        for _ in range(repeat):
            begin = time.perf_counter()
            subprocess.run([*words, "--json"], stdout=subprocess.DEVNULL, check=True)
            walls.append(time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"steps": steps, "wall_s": median(walls), "peak_mb": peak}


def print_exact(rows: list[dict[str, Any]]) -> None:
    head = ("exact warping", "points", "radius", "wall s", "cpu s", "relative error")
    print(common.table(head, [_exact_cells(row) for row in rows]))


def _exact_cells(row: dict[str, Any]) -> tuple[object, ...]:
    times = f"{row['wall_s']:.3f}", f"{row['cpu_s']:.3f}"
    return row["by"], row["points"], row["radius"], *times, f"{row['relative_error']:.1e}"


def print_reduced(rows: list[dict[str, Any]]) -> None:
    head = ("rows", "noise", "on 1,000 points", "wall s", "exact, all rows", "exact wall s")
    cells = [
        (
            row["points"],
            row["sigma"],
            f"{row['value']:.4f}",
            f"{row['wall_s']:.3f}",
            f"{row['exact']:.4f}",
            f"{row['exact_wall_s']:.2f}",
        )
        for row in rows
    ]
    print("\n" + common.table(head, cells))


def main() -> None:
    """Measures, prints, writes."""
    arguments = common.parser(__doc__.splitlines()[0]).parse_args()
    repeat = 2 if arguments.quick else 5
    straight = exact(100_000, 0.01, repeat)
    if not arguments.quick:
        straight += exact(100_000, 0.1, 1)
    print_exact(straight)
    points = 10_000 if arguments.quick else 100_000
    sizes = [(points, sigma) for sigma in (0.0, 0.2, 0.6)]
    fewer = [reduced(size, sigma, repeat) for size, sigma in sizes]
    print_reduced(fewer)
    whole = command(100_000 if arguments.quick else 1_000_000, repeat)
    print(
        f"\nmindpulse compare, 2 x {whole['steps']:,} steps: {whole['wall_s']:.2f} s wall, ", end=""
    )
    print(f"peak {whole['peak_mb']:.0f} MB")
    worst = straight[0]["wall_s"]
    print(f"target: 100,000 x 100,000 within {TARGET_S} s: {worst:.2f} s")
    figures = {"exact": straight, "reduced": fewer, "command": whole}
    common.finish("compare", figures, arguments.json)


if __name__ == "__main__":
    main()
