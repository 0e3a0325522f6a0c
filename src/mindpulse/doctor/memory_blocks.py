"""What the replay of a `memory_block.csv` shows: who held the most, and where the gaps were."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mindpulse.ascend.memory_replay import PoolReplay, replay_file
from mindpulse.doctor.memory_settings import cure_of
from mindpulse.doctor.result import Result
from mindpulse.doctor.sizes import human, share

TOO_MUCH = 0.7  # fragmentation from which on it is a finding,
WORTH = 0.05  # if that much of the pool lay in the smaller pieces
LEFT = 0.1  # of the peak that never came back


def check_blocks(path: Path) -> list[Result]:
    """Findings of each pool of the file.

    Raises:
        FormatError, StoreError: it cannot be read.
    """
    replayed = replay_file(path)
    found: list[Result] = []
    if replayed.problems.rows:
        values = {"path": path, "rows": replayed.problems.rows, "first": replayed.problems.first}
        found.append(Result("memory.blocks", "unknown", "memory_blocks_rows", values, weight=0.1))
    if not replayed.pools:
        return [*found, Result("memory.blocks", "unknown", "memory_blocks_empty", {"path": path})]
    for pool in replayed.pools:
        found += _pool(path, pool)
    return found


def _pool(path: Path, pool: PoolReplay) -> list[Result]:
    worst, peak = pool.worst, pool.peak
    values = {
        "path": path,
        "pool": pool.pool,
        "blocks": pool.blocks,
        "peak": human(peak.used),
        "time": worst.time,
        "free": human(worst.free),
        "largest": human(worst.largest_free),
        "pieces": worst.pieces,
        "share": share(worst.fragmentation),
        "at_peak": share(peak.fragmentation),
        "holders": _listed(pool.holders),
        "left": pool.left,
        "left_bytes": human(pool.left_bytes),
        "left_holders": _listed(pool.left_holders),
        "setting": cure_of("mindspore-2", os.environ),
    }
    found = []
    if worst.fragmentation > TOO_MUCH and worst.stranded > WORTH * worst.known:
        name = "memory_blocks_fragmented"
        found.append(Result("memory.blocks", "problem", name, values, weight=0.8))
    if pool.left_bytes > LEFT * peak.used:
        name = "memory_blocks_left"
        found.append(Result("memory.blocks", "problem", name, values, weight=0.4))
    return [*found, Result("memory.blocks", "ok", "memory_blocks_peak", values)]


def _listed(holders: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {human(size)}" for name, size in holders)
