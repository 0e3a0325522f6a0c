"""What watching costs a training: time, memory, bytes, compilation; and what other tools cost.

    python benchmarks/overhead.py [--quick | --matrix] [--json FILE] [--parts turns,alone,others]

Copies of one model, plain and watched with different settings, take turns within one process. See
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import common
import overhead_others
from overhead_cells import QUICK, SIZES, TARGETS, USUAL, USUAL_CELLS, Cell, matrix
from overhead_processes import told_by
from overhead_turns import AGAIN, PLAIN, ratios

PARTS = ("turns", "alone", "others")


def run_cell(cell: Cell) -> list[dict[str, Any]]:
    """One line for each setting of the cell.

    Raises:
        SystemExit: the worker failed.
    """
    steps = cell.groups * cell.group
    numbers = (str(steps), str(cell.warm_up))
    settings = [str(setting) for setting in cell.settings]
    told = told_by("overhead_worker.py", "turns", cell.size, cell.mode, *numbers, *settings)
    if isinstance(told, str):
        raise SystemExit(f"{cell.size} in mode {cell.mode} failed: {told}")
    seconds = told["seconds"]
    plain = seconds[PLAIN]
    again = ratios(seconds[AGAIN], plain, cell.group)
    lines = []
    for setting in settings:
        found = ratios(seconds[setting], plain, cell.group)
        lines.append(
            {
                "size": cell.size,
                "mode": cell.mode,
                "setting": setting,
                "plain_ms": 1000 * median(plain),
                "ratio": median(found),
                "ratio_lowest": found[0],
                "ratio_highest": found[-1],
                "ratio_of_two_plain": median(again),
                "groups": len(found),
                "steps_in_a_group": cell.group,
                "bytes_per_step": told["bytes_per_step"][setting],
                "target": TARGETS.get(setting) if cell.size == "large" else None,
            }
        )
    return lines


def run_alone(size: str, mode: str, settings: Sequence[str], rounds: int) -> list[dict[str, Any]]:
    """Memory and compilation: a process for each setting, in turn; medians over the rounds."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in (PLAIN, *settings)}
    for _ in range(rounds):
        for name in runs:
            told = told_by("overhead_worker.py", "alone", size, mode, name)
            if isinstance(told, str):
                raise SystemExit(f"{size}, {mode}, {name} alone failed: {told}")
            runs[name].append(told)

    def of(name: str, key: str) -> float:
        return median(run[key] for run in runs[name])

    return [
        {
            "size": size,
            "mode": mode,
            "setting": name,
            "first_steps_s": of(name, "first_s"),
            "first_steps_ratio": of(name, "first_s") / of(PLAIN, "first_s"),
            "device_bytes": of(name, "device_bytes"),
            "peak_rss_bytes": of(name, "peak_rss_bytes"),
            "extra_rss_bytes": of(name, "peak_rss_bytes") - of(PLAIN, "peak_rss_bytes"),
        }
        for name in runs
    ]


def show_turns(lines: list[dict[str, Any]]) -> None:
    """Prints the step times."""
    head = (
        "model", "mode", "measured", "plain ms", "ratio", "lowest to highest", "two plain",
        "target", "bytes/step",
    )  # fmt: skip
    rows = [
        (
            *(line[key] for key in ("size", "mode", "setting")),
            f"{line['plain_ms']:.0f}",
            f"{line['ratio']:.3f}",
            f"{line['ratio_lowest']:.3f} to {line['ratio_highest']:.3f}",
            f"{line['ratio_of_two_plain']:.3f}",
            line["target"] or "",
            f"{line['bytes_per_step']:.0f}",
        )
        for line in lines
    ]
    print(common.table(head, rows))


def show_alone(lines: list[dict[str, Any]]) -> None:
    """Prints memory and compilation."""
    head = (
        "model",
        "mode",
        "measured",
        "first two steps s",
        "ratio",
        "device KB",
        "peak RSS MB",
        "more",
    )
    rows = [
        (
            *(line[key] for key in ("size", "mode", "setting")),
            f"{line['first_steps_s']:.1f}",
            f"{line['first_steps_ratio']:.2f}",
            f"{line['device_bytes'] / 1e3:.0f}",
            f"{line['peak_rss_bytes'] / 1e6:.0f}",
            f"{line['extra_rss_bytes'] / 1e6:+.0f}",
        )
        for line in lines
    ]
    print(common.table(head, rows))


def chosen(arguments: argparse.Namespace) -> list[Cell]:
    """The cells that the options ask for."""
    cells = QUICK if arguments.quick else matrix() if arguments.matrix else USUAL_CELLS
    if arguments.groups:
        cells = tuple(replace(cell, groups=arguments.groups) for cell in cells)
    sizes, modes = arguments.sizes.split(","), arguments.modes.split(",")
    return [cell for cell in cells if cell.size in sizes and cell.mode in modes]


def options() -> argparse.ArgumentParser:
    """The command line."""
    made = common.parser(__doc__.splitlines()[0])
    made.add_argument("--matrix", action="store_true", help="every cell: takes hours")
    made.add_argument("--parts", default=",".join(PARTS), help="default: turns,alone,others")
    made.add_argument("--sizes", default=",".join(SIZES), help="default: tiny,demo,large")
    made.add_argument("--modes", default="graph,jit,pynative", help="default: all three")
    made.add_argument("--groups", type=int, default=0, help="groups of steps in each cell")
    made.add_argument("--steps", type=int, default=30, help="beside other tools; default 30")
    made.add_argument("--rounds", type=int, default=2, help="runs of each process; default 2")
    return made


def main() -> None:
    """Measures, prints, writes."""
    arguments = options().parse_args()
    parts = ("turns",) if arguments.quick else arguments.parts.split(",")
    results: dict[str, Any] = {"sizes": {name: str(size) for name, size in SIZES.items()}}
    if "turns" in parts:
        results["turns"] = []
        for cell in chosen(arguments):
            print(
                f"{cell.size}, {cell.mode}: {', '.join(map(str, cell.settings))}", file=sys.stderr
            )
            results["turns"] += run_cell(cell)
        show_turns(results["turns"])
        common.finish("overhead", results, arguments.json)
    if "alone" in parts:
        print("memory and compilation", file=sys.stderr)
        size = "large" if "large" in arguments.sizes else arguments.sizes.split(",")[0]
        settings = [str(setting) for setting in USUAL]
        results["alone"] = run_alone(size, "graph", settings, arguments.rounds)
        show_alone(results["alone"])
        common.finish("overhead", results, arguments.json)
    if "others" in parts:
        results["others"] = overhead_others.run_all(arguments.rounds, arguments.steps)
        overhead_others.show(results["others"])
        common.finish("overhead", results, arguments.json)


if __name__ == "__main__":
    main()
