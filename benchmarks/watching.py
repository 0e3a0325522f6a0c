"""How many ranks one watcher bears, and how soon it tells: 64 ranks of 200 series at 10 steps/s.

    python benchmarks/watching.py [--quick] [--json FILE]

One process feeds the files of 8 runs of 8 ranks, another watches them. Latency is counted from the
moment at which the row that is wrong (and the rest of its flush) was with the system to that at
which the alert came out of the watcher. Then the same folder is judged from its first row, as a
watcher does that is started again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import common

RUNS, RANKS, SERIES = 8, 8, 200
SECONDS, QUICK_SECONDS = 60, 20
WORKER = Path(__file__).with_name("watching_worker.py")
TARGET_S = 0.1


def main() -> None:
    asked = common.parser(__doc__ or "").parse_args()
    seconds = QUICK_SECONDS if asked.quick else SECONDS
    with tempfile.TemporaryDirectory(prefix="watching-") as folder:
        figures = live(Path(folder), seconds)
        figures["restart"] = restart(Path(folder))
    print(common.table(("live", "value"), [(k, v) for k, v in shown(figures)]))
    common.finish("watching", figures, asked.json)
    if figures["missed"]:
        sys.exit(f"{figures['missed']} spikes were not told")


def live(root: Path, seconds: int) -> dict[str, Any]:
    """Feeder and watcher side by side."""
    feeder = start("feed", str(root), str(RUNS), str(RANKS), str(SERIES), str(seconds))
    assert feeder.stdout
    assert feeder.stdin
    assert json.loads(feeder.stdout.readline())["ready"] == RUNS * RANKS
    watcher = start("watch", str(root))
    wait_for(root, RUNS)
    time.sleep(2.0)
    begin = time.time()
    feeder.stdin.write("go\n")
    feeder.stdin.flush()
    told, _ = feeder.communicate()
    wall = time.time() - begin
    time.sleep(1.0)
    watcher.terminate()
    heard, _ = watcher.communicate()
    *spikes, written = map(json.loads, told.splitlines())
    *alerts, spent = map(json.loads, heard.splitlines())
    at = {(a["run"], a["rank"], a["step"]): a["at"] for a in alerts
          if a["rule"] == "gradient-explosion"}  # fmt: skip
    keys = [(s["run"], s["rank"], s["step"]) for s in spikes]
    waits = [at[key] - s["at"] for key, s in zip(keys, spikes, strict=True) if key in at]
    resident = spent["rss"] or [0]
    return {
        "ranks": RUNS * RANKS,
        "series": SERIES,
        "series_read": written["read"],
        "rows_per_s": written["rows"] / wall,
        "feeder_late_s": written["late_s"],
        "watcher_cpu_share": spent["cpu_s"] / wall,
        "spikes": len(spikes),
        "missed": len(spikes) - len(waits),
        "latency_s": {f"p{q}": float(np.percentile(waits, q)) for q in (50, 90, 99, 100)}
        if waits
        else {},
        "rss_mb": max(resident) / 1e6,
        "rss_growth_mb": (resident[-1] - resident[len(resident) // 2]) / 1e6,
    }


def restart(root: Path) -> dict[str, float]:
    """What it costs to judge all of it again."""
    code = (
        "import sys, time; from mindpulse.rules.load import load_rules;"
        "from mindpulse.watcher import watch_runs; rules = load_rules();"
        "begin = time.process_time();"
        "told = sum(1 for _, e in watch_runs([sys.argv[1]], rules, once=True)"
        " if hasattr(e, 'severity'));"
        "print(time.process_time() - begin, told)"
    )
    out = subprocess.run([sys.executable, "-c", code, str(root)], check=True, capture_output=True,
                         text=True).stdout.split()  # fmt: skip
    return {"cpu_s": float(out[0]), "told_again": int(out[1])}


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(WORKER), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def wait_for(root: Path, runs: int) -> None:
    """Until the watcher has put its sign into each run."""
    end = time.monotonic() + 60
    while len(list(root.glob("*/watcher.json"))) < runs:
        assert time.monotonic() < end, "the watcher did not come up"
        time.sleep(0.05)


def shown(figures: dict[str, Any]) -> list[tuple[str, str]]:
    waits = figures["latency_s"]
    return [
        ("ranks x series, read by rules", f"{figures['ranks']} x {figures['series']}, "
         f"{figures['series_read']}"),
        ("rows written a second", f"{figures['rows_per_s']:,.0f}"),
        ("feeder at most late, s", f"{figures['feeder_late_s']:.2f}"),
        ("watcher, share of one core", f"{figures['watcher_cpu_share']:.1%}"),
        ("spikes, not told", f"{figures['spikes']}, {figures['missed']}"),
        *((f"write to alert, {name}, ms", f"{1000 * value:.0f}") for name, value in waits.items()),
        (f"target p99, ms: {1000 * TARGET_S:.0f}",
         "met" if waits and waits["p99"] <= TARGET_S else "missed"),
        ("resident, MB; grown in the second half", f"{figures['rss_mb']:.0f}; "
         f"{figures['rss_growth_mb']:.1f}"),
        ("judged again from the first row, s", f"{figures['restart']['cpu_s']:.1f}"),
        ("alerts told again", str(figures["restart"]["told_again"])),
    ]  # fmt: skip


if __name__ == "__main__":
    main()
