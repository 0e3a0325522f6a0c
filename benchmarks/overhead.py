"""Step time of the demo BERT with all probes, over the step time without.

    python benchmarks/overhead.py [--quick] [--json FILE] [--modes graph,jit,pynative] [--groups N]

Three copies of the model take turns within one process: plain, plain once more (what the machine
alone does to the ratio), and watched at the default density. See docs/benchmarks.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import common

WORKER = Path(__file__).with_name("overhead_worker.py")
TARGET_GRAPH = 1.03


def measure(mode: str, batch: int, groups: int) -> dict[str, list[float]]:
    """Seconds of each group of ten steps, by copy.

    Raises:
        SystemExit: the worker failed; its last words are the message.
    """
    command = [sys.executable, str(WORKER), mode, str(batch), str(groups)]
    environment = {**os.environ, "GLOG_v": "3"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"overhead_worker.py failed in mode {mode}: exit {done.returncode}")
    found: dict[str, list[float]] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def figures(mode: str, groups: dict[str, list[float]], steps: int) -> dict[str, Any]:
    """Medians over the groups; each ratio is taken within a group, then the median of them."""
    plain = groups["plain"]

    def ratios(copy: str) -> list[float]:
        return sorted(group / base for group, base in zip(groups[copy], plain, strict=True))

    return {
        "mode": mode,
        "plain_ms": 1000 * median(plain) / steps,
        "watched_ms": 1000 * median(groups["watched"]) / steps,
        "ratio": median(ratios("watched")),
        "ratio_lowest": ratios("watched")[0],
        "ratio_highest": ratios("watched")[-1],
        "ratio_of_two_plain": median(ratios("plain again")),
        "groups": len(plain),
    }


def main() -> None:
    """Measures, prints, writes."""
    options = common.parser(__doc__.splitlines()[0])
    options.add_argument("--modes", default="graph,pynative", help="default: graph,pynative")
    options.add_argument("--groups", type=int, default=12, help="groups of ten steps; default 12")
    options.add_argument("--batch", type=int, default=64, help="windows in a batch; default 64")
    arguments = options.parse_args()
    batch, groups = (8, 2) if arguments.quick else (arguments.batch, arguments.groups)
    results = []
    for mode in arguments.modes.split(","):
        print(f"measuring in mode {mode}", file=sys.stderr)
        results.append(figures(mode, measure(mode, batch, groups), steps=10))
    head = ("mode", "plain ms/step", "watched ms/step", "ratio", "lowest to highest", "two plain")
    rows = [
        (
            r["mode"],
            f"{r['plain_ms']:.1f}",
            f"{r['watched_ms']:.1f}",
            f"{r['ratio']:.3f}",
            f"{r['ratio_lowest']:.3f} to {r['ratio_highest']:.3f}",
            f"{r['ratio_of_two_plain']:.3f}",
        )
        for r in results
    ]
    print(common.table(head, rows))
    print(f"target in graph mode: {TARGET_GRAPH}")
    common.finish(
        "overhead",
        {"batch": batch, "target_ratio_graph": TARGET_GRAPH, "results": results},
        arguments.json,
    )


if __name__ == "__main__":
    main()
