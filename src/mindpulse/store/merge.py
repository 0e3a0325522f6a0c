"""Several files of one tag become one series: parts, changed columns, attempts. All pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mindpulse.series import Rows, Series, SeriesSpec


def align(series: Series, spec: SeriesSpec) -> Rows:
    """The rows with the columns of `spec`: matched by label, NaN where a column is missing."""
    own = series.spec
    if own.columns == spec.columns:
        values = series.rows.values
    else:
        values = np.full((len(series), spec.width), np.nan)
        place = {labels: index for index, labels in enumerate(own.columns or ((),))}
        for column, labels in enumerate(spec.columns or ((),)):
            if labels in place:
                values[:, column] = series.rows.values[:, place[labels]]
    return Rows(series.steps, series.wall_times, values.astype(spec.dtype, copy=False))


def join(pieces: Sequence[Series]) -> Series:
    """The pieces one after the other, with the columns of the last; at least one piece."""
    spec = pieces[-1].spec
    return Series(spec, Rows.concat([align(piece, spec) for piece in pieces]))


def supersede(attempts: Mapping[int, Series], starts: Mapping[int, int]) -> Series:
    """For each step the row of the latest attempt that reached it.

    An attempt that starts at step s hides the rows of earlier attempts at and after s.

    Args:
        attempts: the series by attempt; at least one.
        starts: first step of an attempt, where it is known otherwise than from its rows.
    """
    kept: list[Series] = []
    limit: int | None = None
    for attempt in sorted({*attempts, *starts}, reverse=True):
        series = attempts.get(attempt)
        if series is not None:
            kept.append(series if limit is None else _before(series, limit))
        lowest = int(series.steps.min()) if series is not None and len(series) else None
        limit = lower(limit, starts.get(attempt), lowest)
    return join(kept[::-1])


def _before(series: Series, step: int) -> Series:
    return Series(series.spec, series.rows[series.steps < step])


def lower(*steps: int | None) -> int | None:
    """The lowest of the steps that are known, None if none is.

    Example:
        >>> lower(None, 7, 5)
        5
    """
    return min((step for step in steps if step is not None), default=None)
