"""One process of overhead.py; prints what it found as JSON.

python overhead_worker.py turns SIZE MODE STEPS WARM_UP SETTING...   copies that take turns
python overhead_worker.py alone SIZE MODE SETTING                    one copy ("plain": unwatched)
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mindpulse.demo.loop import set_mode
from overhead_cells import Setting
from overhead_models import batches, build, device_bytes, file_bytes, task
from overhead_turns import AGAIN, PLAIN, take_turns

STEPS_ALONE = 12
FIRST_STEPS = 2  # a step with the dear measures, and one without: each compiles a graph


def turns(
    size: str, mode: str, steps: int, warm_up: int, settings: list[Setting]
) -> dict[str, Any]:
    """Seconds of each step by copy, and bytes that a step adds to the files of each setting."""
    with tempfile.TemporaryDirectory(prefix="mindpulse-bench-") as folder:
        folders = {str(setting): Path(folder) / str(setting) for setting in settings}
        copies = {name: build(task(size), mode, None, Path(folder)) for name in (PLAIN, AGAIN)}
        for name, own in folders.items():
            copies[name] = build(task(size), mode, Setting.parse(name), own)
        run = {name: copy.step for name, copy in copies.items()}
        for copy in copies.values():
            if copy.monitor is not None:  # a graph's first steps are slow, the dear one's too
                copy.monitor.burst(warm_up // 2)
        take_turns(run, batches(size), warm_up)
        for copy in copies.values():
            if copy.monitor is not None:
                copy.monitor.flush()
        before = {name: file_bytes(own) for name, own in folders.items()}
        seconds = take_turns(run, batches(size), steps)
        for name in folders:
            copies[name].close(Setting.parse(name))
        grown = {name: file_bytes(own) - before[name] for name, own in folders.items()}
    return {"seconds": seconds, "bytes_per_step": {n: b / steps for n, b in grown.items()}}


def alone(size: str, mode: str, setting: Setting | None) -> dict[str, Any]:
    """Memory, and seconds until the first steps are done, planting included."""
    batch_of, made = batches(size), task(size)
    with tempfile.TemporaryDirectory(prefix="mindpulse-bench-") as folder:
        began = time.perf_counter()
        copy = build(made, mode, setting, Path(folder))
        for index in range(FIRST_STEPS):
            copy.step(batch_of(index))
        first_s = time.perf_counter() - began
        for index in range(FIRST_STEPS, STEPS_ALONE):
            copy.step(batch_of(index))
        held = device_bytes()
        copy.close()
    return {"first_s": first_s, "device_bytes": held, "peak_rss_bytes": peak_rss_bytes()}


def peak_rss_bytes() -> int:
    """The highest resident size of this process so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    """Sets the mode, measures, prints."""
    what, size, mode, *more = sys.argv[1:]
    set_mode(mode)
    if what == "turns":
        steps, warm_up, *texts = more
        found = turns(size, mode, int(steps), int(warm_up), [Setting.parse(t) for t in texts])
    else:
        found = alone(size, mode, None if more[0] == PLAIN else Setting.parse(more[0]))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
