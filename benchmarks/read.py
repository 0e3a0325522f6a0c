"""Reading runs, beside TensorBoard, Parquet, SQLite and a plain loop.

    python benchmarks/read.py [--quick] [--json FILE] [--rounds N] [--steps N] [--only WORD]

The same 10 M points (1 M steps x 10 tags) and 20 M points (100 k steps x 200 columns) lie in each
format. A reader does one task in a process of its own, its imports not counted; readers take turns;
medians. Each answer is compared with that of the others. See docs/benchmarks.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import common
import read_data

WORKER = Path(__file__).with_name("read_worker.py")
CURVE_BYTES = 24
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)


@dataclass(frozen=True)
class Case:
    """A reader that does a task.

    Attributes:
        task, reader: a function of read_worker.py.
        data: the folder below the data.
        cold: the files are thrown out of the page cache first.
        slow: takes minutes at full size, so it runs once.
        note: what to know about the figure.
    """

    task: str
    reader: str
    data: str
    cold: bool = False
    slow: bool = False
    note: str = ""


CASES = {
    "list tags, 20 M points, cold": [
        Case("tags", "ours", "wide-one", cold=True, note="one series of 200 columns"),
        Case("tags", "ours", "wide-files", cold=True, note="200 series"),
        Case("tags", "duckdb", "wide-parquet", cold=True),
        Case("tags", "sqlite", "wide-sqlite", cold=True),
    ],
    "list tags, 20 M points, warm": [
        Case("tags", "ours", "wide-one", note="one series of 200 columns"),
        Case("tags", "ours", "wide-files", note="200 series"),
        Case("tags", "duckdb", "wide-parquet"),
        Case("tags", "sqlite", "wide-sqlite"),
        Case("tags", "server", "wide-events", note="first tags seen while it loads"),
    ],
    "first full curve, 1 of 10 tags": [
        Case("curve", "ours", "narrow"),
        Case("curve", "cat", "narrow-loss", note="the bytes of the same file"),
        Case("curve", "duckdb", "narrow-parquet"),
        Case("curve", "sqlite", "narrow-sqlite"),
        Case("curve", "loop", "narrow"),
        Case("curve", "server", "narrow-events"),
        Case("curve", "accumulator", "small-events", slow=True, note="a tenth of the steps"),
    ],
    "first full curve, 1 of 200 columns": [
        Case("column", "ours", "wide-one"),
        Case("curve", "cat", "wide-one", note="the bytes of the same file"),
    ],
    "curve brought to 2,000 points": [
        Case("drawn", "ours", "narrow"),
        Case("drawn", "duckdb", "narrow-parquet"),
        Case("drawn", "sqlite", "narrow-sqlite"),
        Case("drawn", "loop", "narrow"),
        Case("drawn", "server", "narrow-events", note="loses extremes and NaN"),
    ],
    "last value of 200 tags": [
        Case("last", "ours", "wide-files"),
        Case("last_wide", "ours", "wide-one", note="one series of 200 columns"),
        Case("last", "duckdb", "wide-parquet"),
        Case("last", "sqlite", "wide-sqlite"),
        Case("last", "server", "wide-events", slow=True),
    ],
    "heat map of 200 columns x 200 buckets": [
        Case("heat", "ours", "wide-one"),
        Case("heat", "duckdb", "wide-parquet"),
        Case("heat", "sqlite", "wide-sqlite"),
        Case("heat", "server", "wide-events", slow=True),
    ],
}


def writers(steps: int) -> dict[str, Callable[[Path], None]]:
    """How the data of each folder are made."""
    narrow, wide = read_data.narrow(steps), read_data.wide(steps // 10)
    small = read_data.narrow(steps // 10)
    loss = read_data.Table("narrow", steps, ("loss",))
    return {
        "narrow": lambda folder: read_data.write_store(folder, narrow, as_one=False),
        "narrow-loss": lambda folder: read_data.write_store(folder, loss, as_one=False),
        "narrow-events": lambda folder: read_data.write_events(folder, narrow),
        "small-events": lambda folder: read_data.write_events(folder, small),
        "narrow-parquet": lambda folder: read_data.write_parquet(folder / "p.parquet", narrow),
        "narrow-sqlite": lambda folder: read_data.write_sqlite(folder / "s.sqlite", narrow),
        "wide-one": lambda folder: read_data.write_store(folder, wide, as_one=True),
        "wide-files": lambda folder: read_data.write_store(folder, wide, as_one=False),
        "wide-events": lambda folder: read_data.write_events(folder, wide),
        "wide-parquet": lambda folder: read_data.write_parquet(folder / "p.parquet", wide),
        "wide-sqlite": lambda folder: read_data.write_sqlite(folder / "s.sqlite", wide),
    }


def make(place: Path, steps: int, wanted: set[str]) -> None:
    """Writes the data that the cases need."""
    for name, write in writers(steps).items():
        folder = place / name
        if name not in wanted or folder.exists():
            continue
        print(f"writing {name}", file=sys.stderr)
        if not name.endswith("-events"):
            folder.mkdir(parents=True)
        write(folder)


def steps_of(data: str, steps: int) -> int:
    """Steps in a folder of data."""
    return steps if data.startswith("narrow") else steps // 10


def measure(place: Path, case: Case, steps: int) -> dict[str, Any]:
    """One run of the worker.

    Raises:
        SystemExit: it failed; its last words are the message.
    """
    folder = place / case.data
    given = [case.task, case.reader, str(folder), str(steps), str(int(case.cold))]
    command = [sys.executable, str(WORKER), *given]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        words = done.stderr.strip().splitlines() or ["no message"]
        raise SystemExit(f"read_worker.py {' '.join(given)}: {words[-1]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def task(
    place: Path, name: str, cases: list[Case], steps: int, rounds: int
) -> list[dict[str, Any]]:
    """Medians of the readers of a task, which take turns.

    Raises:
        SystemExit: two of them gave different answers.
    """
    runs: dict[Case, list[dict[str, Any]]] = {case: [] for case in cases}
    for number in range(rounds):
        for case in cases:
            if number == 0 or not case.slow:
                print(f"{name}: {case.reader}, round {number + 1}", file=sys.stderr)
                runs[case].append(measure(place, case, steps_of(case.data, steps)))
    agree(name, runs)
    return [
        {
            "task": name,
            "reader": case.reader,
            "data": case.data,
            "ms": 1000 * median(run["seconds"] for run in found),
            "peak_mb": median(run["peak_mb"] for run in found),
            "runs": len(found),
            "note": case.note,
        }
        for case, found in runs.items()
    ]


def agree(name: str, runs: dict[Case, list[dict[str, Any]]]) -> None:
    """Compares the answers of all readers of the same data.

    Raises:
        SystemExit: they differ.
    """
    answers: dict[str, str] = {}
    for case, found in runs.items():
        for run in found:
            if run["answer"] is not None and "tags" not in case.task and "small" not in case.data:
                answers[case.reader + case.data] = json.dumps(run["answer"])
    if len(set(answers.values())) > 1:
        raise SystemExit(f"{name}: the readers differ: {answers}")


def growth(place: Path, largest: int, rounds: int) -> list[dict[str, Any]]:
    """What it takes to see the end, and the whole at a glance, of longer and longer runs."""
    found = []
    for size in (size for size in SIZES if size <= largest):
        folder = place / f"long-{size}"
        table = read_data.Table("long", size, ("loss",))
        if not folder.exists():
            read_data.write_store(folder, table, as_one=False)
        line: dict[str, Any] = {"rows": size}
        for name, case in {
            "last_ms": Case("tail", "ours", folder.name),
            "overview_ms": Case("drawn", "ours", folder.name),
            "curve_ms": Case("curve", "ours", folder.name),
        }.items():
            runs = [measure(place, case, size)["seconds"] for _ in range(rounds)]
            line[name] = 1000 * median(runs)
        found.append(line)
    return found


def verdicts(lines: list[dict[str, Any]], steps: int) -> list[dict[str, Any]]:
    """The targets of the project and what was measured."""
    at = {(line["task"], line["reader"], line["data"]): line for line in lines}
    curve, column = "first full curve, 1 of 10 tags", "first full curve, 1 of 200 columns"
    tags = "list tags, 20 M points, cold"
    needed = [
        (curve, "server", "narrow-events"),
        (column, "cat", "wide-one"),
        (tags, "ours", "wide-one"),
    ]
    if not all(key in at for key in needed):
        return []
    ours, one = at[curve, "ours", "narrow"], at[column, "ours", "wide-one"]

    def ms(*key: str) -> float:
        return float(at[key]["ms"])  # type: ignore[index]

    mb, small = steps * CURVE_BYTES / 1e6, steps / 10 * (CURVE_BYTES - 4) / 1e6
    return [
        target("curve: times faster than the data server", ms(*needed[0]) / ours["ms"], 100, True),
        target("curve: times the time of cat", ours["ms"] / ms(curve, "cat", "narrow-loss"), 2),
        target("column: times the time of cat", one["ms"] / ms(*needed[1]), 2),
        target("curve: times its own size in memory", ours["peak_mb"] / mb, 3),
        target("column: times its own size in memory", one["peak_mb"] / small, 3),
        target("cold list of one wide series, ms", ms(*needed[2]), 20),
        target("cold list of 200 series, ms", ms(tags, "ours", "wide-files"), 20),
    ]


def target(name: str, value: float, limit: float, at_least: bool = False) -> dict[str, Any]:
    """One figure beside what was asked for."""
    met = value >= limit if at_least else value <= limit
    return {"name": name, "value": value, "limit": limit, "at_least": at_least, "met": met}


def show(
    lines: list[dict[str, Any]], grown: list[dict[str, Any]], told: list[dict[str, Any]]
) -> None:
    """Prints the tables."""
    head = ("task", "reader", "ms", "peak MB", "runs", "note")
    rows = [
        (r["task"], r["reader"], f"{r['ms']:.1f}", f"{r['peak_mb']:.1f}", r["runs"], r["note"])
        for r in lines
    ]
    print(common.table(head, rows))
    head = ("rows", "last 100 rows, ms", "2,000 points, ms", "full curve, ms")
    print()
    print(
        common.table(
            head,
            [
                (
                    r["rows"],
                    f"{r['last_ms']:.1f}",
                    f"{r['overview_ms']:.1f}",
                    f"{r['curve_ms']:.1f}",
                )
                for r in grown
            ],
        )
    )
    print()
    for one in told:
        sign = ">=" if one["at_least"] else "<="
        verdict = "met" if one["met"] else "MISSED"
        print(f"{one['name']}: {one['value']:.1f} (target {sign} {one['limit']:g}) {verdict}")


def main() -> None:
    """Measures, prints, writes."""
    options = common.parser(__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, help="runs of each reader; default 5")
    options.add_argument("--steps", type=int, help="steps of the narrow run; default 1,000,000")
    options.add_argument("--only", default="", help="only tasks whose name holds this")
    options.add_argument("--keep", type=Path, metavar="DIR", help="use and leave the data there")
    arguments = options.parse_args()
    rounds = arguments.rounds or (1 if arguments.quick else 5)
    steps = arguments.steps or (100_000 if arguments.quick else 1_000_000)
    cases = {name: found for name, found in CASES.items() if arguments.only in name}
    with tempfile.TemporaryDirectory(prefix="mindpulse-read-") as scratch:
        place = arguments.keep or Path(scratch)
        make(place, steps, {case.data for found in cases.values() for case in found})
        lines = [
            line
            for name, found in cases.items()
            for line in task(place, name, found, steps, rounds)
        ]
        grown = growth(place, 10 * steps, rounds)
    told = verdicts(lines, steps)
    show(lines, grown, told)
    figures = {"steps": steps, "results": lines, "growth": grown, "targets": told}
    common.finish("read", figures, arguments.json)


if __name__ == "__main__":
    main()
