"""Records the fault benchmark: every recipe, severity and seed into a folder of runs.

    python -m benchmarks.faults.record build/faults --jobs 2

The folder holds `index.jsonl` (one line for each run), `runs/ID` (run folders) and
`results/ID.json`. A run whose result is there is not repeated. One process trains many runs of one
variant, because compiling takes longer than a run.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.faults.label import summary, write_index

if TYPE_CHECKING:
    from benchmarks.faults.train import Training

SEEDS = 2  # of each fault, severity and variant
MOST_IN_PROCESS = 120  # runs; what is left goes to the next process, so that two cores end together
INDEX_EVERY = 10  # runs between two rewrites of the index
QUICK_STEPS = 40
QUICK = ("decoder-plain-s0", "decoder-plain-s1", "decoder-lr-jump-*-s0", "decoder-nan-batch-*-s0")
# Small operators: without threads a step takes half the time, and two processes two cores.
ONE_CORE = {"GLOG_v": "3", "OMP_NUM_THREADS": "1", "MS_DEV_RUNTIME_CONF": "inline:true"}
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Job:
    """One run to be recorded."""

    variant: str
    recipe: str
    severity: str
    seed: int

    @property
    def id(self) -> str:
        """As in the index."""
        words = [self.variant, self.recipe, self.severity, f"s{self.seed}"]
        return "-".join(word for word in words if word)


def all_jobs(seeds: int = SEEDS) -> list[Job]:
    """Every run, seed after seed, so that a part of them is spread over all recipes.

    Args:
        seeds: of each fault; healthy recipes have numbers of their own, in proportion.
    """
    from benchmarks.faults.recipes import RECIPES

    found = []
    for recipe in RECIPES.values():
        count = seeds if recipe.kind == "fault" else math.ceil(recipe.seeds * seeds / SEEDS)
        found += [
            Job(variant, recipe.name, severity, seed)
            for variant in recipe.variants
            for severity in recipe.levels
            for seed in range(count)
        ]
    return sorted(found, key=_turn)


def _turn(job: Job) -> float:
    """Plain runs early: without them no fault can be judged."""
    return job.seed / 8 - 1 if job.recipe == "plain" else job.seed


def wanted(jobs: Sequence[Job], root: Path, only: Sequence[str]) -> list[Job]:
    """The jobs that a glob of `only` matches and whose results are not there."""
    return [
        job
        for job in jobs
        if any(fnmatchcase(job.id, glob) for glob in only) and not result_path(root, job).exists()
    ]


def result_path(root: Path, job: Job) -> Path:
    """Where the result of a run stands."""
    return root / "results" / f"{job.id}.json"


def units(jobs: Sequence[Job]) -> list[list[Job]]:
    """Jobs of one variant each, for one process each; the large ones first."""
    by_variant: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        by_variant[job.variant].append(job)
    found = [
        own[start : start + MOST_IN_PROCESS]
        for own in by_variant.values()
        for start in range(0, len(own), MOST_IN_PROCESS)
    ]
    return sorted(found, key=len, reverse=True)


def record(training: Training, job: Job, root: Path, steps: int | None) -> dict[str, Any]:
    """Trains one run and writes its result; returns it."""
    from benchmarks.faults.recipes import RECIPES
    from benchmarks.faults.settings import VARIANTS

    recipe = RECIPES[job.recipe]
    script = recipe.script(job.variant, job.severity, job.seed, steps)
    outcome = training.run(script, root / "runs" / job.id)
    result = {
        "id": job.id,
        "run": f"runs/{job.id}",
        "model": VARIANTS[job.variant].kind,
        "variant": job.variant,
        "recipe": job.recipe,
        "severity": job.severity,
        "seed": job.seed,
        "steps": outcome.steps,
        "kind": recipe.kind,
        "label_step": script.label if recipe.kind == "fault" else None,
        "category": recipe.category,
        "layer": recipe.layers.get(job.severity),
        "judged_by": recipe.judged_by,
        "final_loss": outcome.final_loss if math.isfinite(outcome.final_loss) else None,
        "step_time_s": outcome.step_time_s,
        "rss_growth_bytes": outcome.rss_growth_bytes,
        "seconds": outcome.seconds,
    }
    path = result_path(root, job)
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}")
    hidden.write_text(json.dumps(result), "utf-8")
    hidden.replace(path)
    return result


def work(jobs: Sequence[Job], root: Path, steps: int | None) -> None:
    """Trains jobs of one variant in this process."""
    from benchmarks.faults.settings import VARIANTS
    from benchmarks.faults.train import Training

    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        training = Training(VARIANTS[jobs[0].variant], Path(folder))
        print(f"{jobs[0].variant}: compiled in {time.monotonic() - began:.0f} s", flush=True)
        for number, job in enumerate(jobs, 1):
            result = record(training, job, root, steps)
            print(
                f"{job.id}: final loss {result['final_loss']}, {result['seconds']:.1f} s "
                f"({number} of {len(jobs)})",
                flush=True,
            )
            if number % INDEX_EVERY == 0:
                write_index(root)
        training.close()
    write_index(root)


def run_units(todo: list[list[Job]], root: Path, jobs: int, steps: int | None) -> Iterator[int]:
    """Runs units in processes of their own, `jobs` at a time; yields their exit codes.

    Each has a core to itself: the runtime's threads wait by spinning, so that two processes which
    share two cores take twice as long.
    """
    cores = sorted(os.sched_getaffinity(0))
    running: dict[subprocess.Popen[bytes], int] = {}
    with tempfile.TemporaryDirectory() as folder:
        while todo or running:
            while todo and len(running) < jobs:
                unit = todo.pop(0)
                path = Path(folder) / f"{len(todo)}.json"
                path.write_text(json.dumps([list(vars(job).values()) for job in unit]))
                command = [sys.executable, "-m", "benchmarks.faults.record", str(root)]
                command += ["--unit", str(path), *(["--steps", str(steps)] if steps else [])]
                environment = {**ONE_CORE, **os.environ}
                place = next(n for n in range(jobs) if n not in running.values())
                process = subprocess.Popen(command, cwd=ROOT, env=environment)
                os.sched_setaffinity(process.pid, {cores[place % len(cores)]})
                running[process] = place
            done = next((process for process in running if process.poll() is not None), None)
            if done is None:
                time.sleep(0.2)
                continue
            del running[done]
            yield done.returncode


def options() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(description="records the runs of the fault benchmark")
    found.add_argument("folder", type=Path, help="takes index.jsonl, runs/ and results/")
    found.add_argument("--jobs", type=int, default=1, help="processes at a time")
    found.add_argument("--only", action="append", metavar="GLOB", help="ids of runs; repeatable")
    found.add_argument("--variant", help="runs of this one only")
    found.add_argument("--seeds", type=int, default=SEEDS, help="runs of each fault and severity")
    found.add_argument("--steps", type=int, help="of every run: for a trial")
    found.add_argument("--quick", action="store_true", help="a few short runs, in about a minute")
    found.add_argument("--list", action="store_true", help="names what is to be done")
    found.add_argument("--unit", type=Path, help=argparse.SUPPRESS)
    return found


def main() -> int:
    """Command line."""
    given = options().parse_args()
    root = given.folder.resolve()
    steps = QUICK_STEPS if given.quick and not given.steps else given.steps
    if given.unit:
        work([Job(*fields) for fields in json.loads(given.unit.read_text())], root, steps)
        return 0
    only = given.only or (QUICK if given.quick else ["*"])
    jobs = [j for j in all_jobs(given.seeds) if given.variant in (None, j.variant)]
    todo = wanted(jobs, root, only)
    if given.list:
        print("\n".join(job.id for job in todo))
        return 0
    root.mkdir(parents=True, exist_ok=True)
    failed = [code for code in run_units(units(todo), root, given.jobs, steps) if code]
    print(summary(write_index(root)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
