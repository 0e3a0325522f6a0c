"""How the loss went over a whole run, which no rule with its short windows tells."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from mindpulse.errors import UsageError
from mindpulse.health.values import Reason
from mindpulse.series import Rows, Series
from mindpulse.store.run import Run

LOSS = "train_loss"
LOST_GROUND = 0.25  # share of what the loss had fallen that it may rise again
TREND_ROWS = 200_000  # as many rows of the loss tell its trend


def concern_about(run: Run) -> Reason | None:
    """Why the loss of the whole run is a concern; None where it is none, or cannot be told."""
    losses = _loss(run)
    return _trend(losses) if losses is not None and _tell_a_trend(losses) else None


def _loss(run: Run) -> Rows | None:
    """The finite rows of the loss, of the first rank that has one: a pipeline's is not rank 0."""
    if LOSS not in run.specs():
        return None
    for rank in run.ranks:
        with suppress(UsageError):
            return thinned(run.blocks(LOSS, rank))
    return None


def thinned(pieces: Iterable[Series], most: int = TREND_ROWS) -> Rows:
    """The finite rows of a scalar series; every second, fourth, ... where there are too many.

    The medians of so many rows are those of all of them, and memory does not grow with the run.
    """
    kept = [Rows.empty(1)]
    seen, stride = 0, 1
    for piece in pieces:
        rows = Rows(piece.steps, piece.wall_times, piece.rows.values[:, :1])
        rows = rows[np.isfinite(rows.values[:, 0])]
        kept.append(rows[np.arange(-seen % stride, len(rows), stride)])
        seen += len(rows)
        while seen // stride > most:
            kept = [Rows.concat(kept)]
            kept = [kept[0][np.arange(0, len(kept[0]), 2)]]
            stride *= 2
    return Rows.concat(kept)


def _tell_a_trend(losses: Rows) -> bool:
    """Enough rows; fewer do where each stands for many steps, as other tools log means of them."""
    if len(losses) < 10:
        return False
    return len(losses) >= 50 or int(losses.steps[-1] - losses.steps[0]) >= 1000


def _trend(losses: Rows) -> Reason | None:
    """What is wrong with the whole curve: medians of its tenths against that of the last fifth."""
    tenth = len(losses) // 10
    values = losses.values[:, 0]
    levels = np.median(values[: 10 * tenth].reshape(10, tenth), axis=1)
    last = values[-2 * tenth :]
    begin, end, best = float(levels[0]), float(np.median(last)), float(levels.min())
    if end >= begin - 0.01 * abs(begin):
        return Reason("loss_not_fallen", {"begin": f"{begin:.4g}", "end": f"{end:.4g}"})
    noise = float(np.median(np.abs(last - end)))
    if end - best > max(LOST_GROUND * (begin - best), 3 * noise):
        middle = int(losses.steps[int(levels.argmin()) * tenth + tenth // 2])
        values_told: dict[str, str | int] = {"best": f"{best:.4g}", "step": middle}
        return Reason("loss_lost_ground", {**values_told, "end": f"{end:.4g}"})
    return None
