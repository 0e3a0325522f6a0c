"""Cost in the training thread of handing over one scalar, next to four other loggers.

    python benchmarks/training_thread.py [--quick] [--json FILE] [--rounds N] [--steps N]

Each logger runs in a process of its own, in turn (round-robin), with a pause of 10 ms between
steps, as a training would make. Wall and CPU time of the calling thread are taken around the call;
the figure is the median over steps, then over rounds. "nothing" is a call that does nothing: what
the clock and a cold cache cost. It is left in the table and taken off in the comparison. See
docs/benchmarks.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import common

SCALARS = (10, 100)
WORKER = Path(__file__).with_name("training_thread_worker.py")
OURS, NOTHING = "mindpulse", "nothing"
TARGET_RATIO, TARGET_CPU_US = 10.0, 0.5


@dataclass(frozen=True)
class Logger:
    """A logger and, unless it lives in this environment, what to install for it."""

    name: str
    requirement: str = ""


LOGGERS = (
    Logger(NOTHING),
    Logger(OURS),
    Logger("mindspore"),
    Logger("tensorboardX", "tensorboardX==2.6.5"),
    Logger("trackio", "trackio==0.43.0"),
    Logger("swanlab", "swanlab==0.10.3"),
)


def cache() -> Path:
    """Folder of the virtual environments, `$MINDPULSE_BENCH_CACHE` or below ~/.cache."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("MINDPULSE_BENCH_CACHE") or Path(home) / "mindpulse-benchmarks")


def interpreter(logger: Logger, *, create: bool) -> Path | None:
    """The Python that has `logger`; None if there is none and it is not to be made."""
    if not logger.requirement:
        needed = OURS if logger.name == NOTHING else logger.name
        return Path(sys.executable) if find_spec(needed) else None
    tag = f"py{sys.version_info.major}{sys.version_info.minor}"
    folder = cache() / f"{logger.requirement.replace('==', '-')}-{tag}"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        if not create:
            return None
        print(f"installing {logger.requirement} into {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "--quiet", logger.requirement]
        subprocess.run(command, check=True)
        ready.touch()
    return python


def measure(logger: Logger, python: Path, scalars: int, steps: int) -> dict[str, float] | str:
    """One run of the worker: figures in microseconds a call, or the last line of its error."""
    with tempfile.TemporaryDirectory(prefix="mindpulse-bench-") as folder:
        command = [str(python), str(WORKER), logger.name, str(scalars), str(steps), folder]
        environment = {**os.environ, "GLOG_v": "3", "TRACKIO_DIR": folder}
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=folder, env=environment, timeout=300
        )
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    figures: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def rounds(pythons: dict[Logger, Path], count: int, steps: int) -> dict[tuple[str, int], Any]:
    """All figures by logger and scalars a step: a list of runs, or the text of an error."""
    found: dict[tuple[str, int], Any] = {}
    for number in range(count):
        for scalars in SCALARS:
            for logger, python in pythons.items():
                key = (logger.name, scalars)
                if isinstance(found.get(key), str):
                    continue
                print(f"round {number + 1}/{count}: {logger.name} {scalars}", file=sys.stderr)
                figures = measure(logger, python, scalars, steps)
                if isinstance(figures, str):
                    found[key] = figures
                else:
                    found.setdefault(key, []).append(figures)
    return found


def summary(found: dict[tuple[str, int], Any]) -> list[dict[str, Any]]:
    """One entry for each logger and number of scalars, in microseconds a scalar."""
    entries = []
    for (name, scalars), runs in found.items():
        entry: dict[str, Any] = {"logger": name, "scalars_per_step": scalars}
        if isinstance(runs, str):
            entry["error"] = runs
        else:
            for key in ("wall_us", "cpu_us", "p95_wall_us"):
                entry[f"{key}_per_scalar"] = median(run[key] for run in runs) / scalars
            entry["runs"] = len(runs)
        entries.append(entry)
    return sorted(entries, key=lambda entry: entry["scalars_per_step"])


def verdict(entries: list[dict[str, Any]], scalars: int) -> dict[str, Any]:
    """How many times less than the best of the others the recorder costs, the clock taken off."""
    here = {e["logger"]: e for e in entries if e["scalars_per_step"] == scalars}
    result: dict[str, Any] = {"scalars_per_step": scalars}
    for key in ("wall_us_per_scalar", "cpu_us_per_scalar"):
        clock = here.get(NOTHING, {}).get(key, 0.0)
        costs = {
            name: float(e[key]) - clock for name, e in here.items() if key in e and name != NOTHING
        }
        ours = costs.pop(OURS, None)
        if ours and costs:
            best = min(costs, key=lambda name: costs[name])
            result[key] = {"best_other": best, "times_less": costs[best] / ours}
    return result


def show(entries: list[dict[str, Any]], verdicts: list[dict[str, Any]]) -> None:
    """Prints the table and, below it, the comparison with the best of the others."""
    head = ("logger", "scalars a step", "wall us/scalar", "thread CPU us/scalar", "p95 wall")
    rows = []
    for entry in entries:
        keys = ("wall_us_per_scalar", "cpu_us_per_scalar", "p95_wall_us_per_scalar")
        cells = [f"{entry[key]:.3f}" if key in entry else "failed" for key in keys]
        rows.append((entry["logger"], entry["scalars_per_step"], *cells))
    print(common.table(head, rows))
    for entry in entries:
        if "error" in entry:
            print(f"{entry['logger']} failed: {entry['error']}")
    for result in verdicts:
        for key, words in (("wall_us_per_scalar", "wall"), ("cpu_us_per_scalar", "thread CPU")):
            if key in result:
                best = result[key]
                print(
                    f"{result['scalars_per_step']} scalars a step, {words}: "
                    f"{best['times_less']:.0f} times less than {best['best_other']} "
                    f"(target {TARGET_RATIO:.0f})"
                )


def main() -> None:
    """Measures, prints, writes."""
    options = common.parser(__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--steps", type=int, default=300)
    arguments = options.parse_args()
    count, steps = (1, 100) if arguments.quick else (arguments.rounds, arguments.steps)
    found = {logger: interpreter(logger, create=not arguments.quick) for logger in LOGGERS}
    for logger, python in found.items():
        if python is None:
            print(f"left out: {logger.name} (run once without --quick to install it)")
    pythons = {logger: python for logger, python in found.items() if python}
    entries = summary(rounds(pythons, count, steps))
    verdicts = [verdict(entries, scalars) for scalars in SCALARS]
    show(entries, verdicts)
    figures = {
        "requirements": {logger.name: logger.requirement for logger in LOGGERS},
        "rounds": count,
        "steps": steps,
        "target": {"times_less": TARGET_RATIO, "cpu_us_per_scalar_at_100": TARGET_CPU_US},
        "results": entries,
        "verdicts": verdicts,
    }
    common.finish("training_thread", figures, arguments.json)


if __name__ == "__main__":
    main()
