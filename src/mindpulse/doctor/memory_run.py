"""What the series of a run say about the device's memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindpulse.doctor.memory_settings import cure_of
from mindpulse.doctor.result import Result
from mindpulse.doctor.rows import shown
from mindpulse.doctor.sizes import human, share
from mindpulse.errors import MindPulseError, UsageError
from mindpulse.interop import OURS, identify
from mindpulse.store.run import Run

TOO_MUCH = 0.7  # fragmentation from which on it is a finding, as in the health report
WORTH = 0.1  # of the pool that has to be free for it to matter, as in the rule memory-fragmented
FULL = 0.95  # of the device, as in the rule memory-nearly-full


def is_run(path: Path) -> bool:
    """Whether a folder is a run of ours."""
    try:
        return identify(path).kind == OURS
    except MindPulseError:
        return False


def check_run(path: Path) -> list[Result]:
    """Findings of the memory series, rank by rank; one ok where all is well.

    Raises:
        StoreError: the run cannot be read.
    """
    run = identify(path).read()
    known = [tag for tag in run.specs() if tag.startswith("memory_")]
    full = list(_full_precision(run, path))
    if not known:
        return [*full, Result("memory.run", "unknown", "memory_run_none", {"path": path})]
    found = full + [result for rank in run.ranks for result in _rank(run, rank, path)]
    if found:
        return found
    top = max((_highest(run, "memory_allocated", rank)[1] for rank in run.ranks), default=0.0)
    values = {"path": path, "allocated": human(top), "known": ", ".join(sorted(known))}
    return [Result("memory.run", "ok", "memory_run_fine", values)]


def _full_precision(run: Run, path: Path) -> Iterator[Result]:
    """Scores in float32 while the rest of the model computes in half precision.

    They are the largest intermediates of a model: batch x heads x queries x keys in each layer.
    """
    told = [note.data for note in run.notes() if note.kind == "precision" and note.rank == 0]
    if not told:
        return
    scores = {str(k): v for k, v in _table(told[-1], "attention").items() if isinstance(v, dict)}
    full = {layer: each for layer, each in scores.items() if each.get("bits") == 32}
    others = [*_table(told[-1], "norm").values(), *_table(told[-1], "ffn").values()]
    half = others.count(16)
    if not full or not half:
        return
    sizes = [4.0 * _product(each.get("shape")) for each in full.values()]
    values: dict[str, object] = {"path": path, "layers": shown(list(full)), "count": len(full)}
    values |= {"all": len(scores), "half": half, "others": len(others)}
    values |= {"size": human(max(sizes)), "saved": human(sum(sizes) / 2)}
    yield Result("memory.precision", "problem", "memory_scores_full", values, weight=0.3)


def _table(data: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = data.get(name)
    return found if isinstance(found, dict) else {}


def _product(shape: object) -> float:
    known = isinstance(shape, list) and all(isinstance(size, int) for size in shape)
    return float(np.prod(shape, dtype=np.float64)) if known and isinstance(shape, list) else 0.0


def _rank(run: Run, rank: int, path: Path) -> Iterator[Result]:
    pieces = _worst(run, rank)
    if pieces is not None and pieces[1] > TOO_MUCH:
        values: dict[str, object] = {"path": path, "rank": rank, "step": pieces[0]}
        values |= {"share": share(pieces[1]), "setting": cure_of("mindspore-2", {})}
        name = "memory_run_fragmented"
        yield Result("memory.run", "problem", name, values, f"mindpulse report {path}", 0.8)
    step, allocated = _highest(run, "memory_allocated", rank)
    _, total = _highest(run, "memory_total", rank)
    if total > 0 and allocated / total > FULL:
        values = {"path": path, "rank": rank, "step": step, "share": share(allocated / total)}
        values |= {"allocated": human(allocated), "total": human(total)}
        yield Result("memory.run", "problem", "memory_run_full", values, weight=0.7)


def _worst(run: Run, rank: int) -> tuple[int, float] | None:
    """Step and value of the highest fragmentation among rows with something worth having free."""
    known = [_rows(run, f"memory_{name}", rank) for name in ("fragmentation", "free", "reserved")]
    pieces, free, reserved = known
    if pieces is None:
        return None
    steps, values = pieces
    if free is not None and reserved is not None:
        common = reduce(np.intersect1d, [rows[0] for rows in (pieces, free, reserved)])
        at = [rows[1][np.searchsorted(rows[0], common)] for rows in (pieces, free, reserved)]
        worth = at[1] > WORTH * at[2]
        steps, values = common[worth], at[0][worth]
    finite = np.isfinite(values)
    if not finite.any():
        return None
    row = int(np.where(finite, values, -np.inf).argmax())
    return int(steps[row]), float(values[row])


def _rows(run: Run, tag: str, rank: int) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
    """Steps and values of a series; None where this rank has none."""
    try:
        series = run.series(tag, rank)
    except UsageError:
        return None
    return np.asarray(series.steps, np.int64), np.asarray(series.values, np.float64)


def _highest(run: Run, tag: str, rank: int) -> tuple[int, float]:
    """The step and value of the highest finite row; 0 where there is none."""
    rows = _rows(run, tag, rank)
    if rows is None or not np.isfinite(rows[1]).any():
        return 0, 0.0
    row = int(np.where(np.isfinite(rows[1]), rows[1], -np.inf).argmax())
    return int(rows[0][row]), float(rows[1][row])
