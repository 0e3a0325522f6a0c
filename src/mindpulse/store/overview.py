"""A series in few buckets: what a picture of any length needs, with every spike and every NaN.

A bucket is some consecutive rows. Buckets of buckets are made without the rows (`merged`), which
is what the index beside a file is for.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from mindpulse.errors import UsageError
from mindpulse.series import Rows, Series, SeriesSpec
from mindpulse.store.blocks import Blocks, blocks_of, joined, merged

MIN_POINTS = 3
_BLOCKS_A_BUCKET = 8
_ROWS_AT_ONCE = 16_384


@dataclass(frozen=True, slots=True, eq=False)
class Overview(Blocks):
    """N buckets of consecutive rows.

    Attributes:
        spec: the series.
        points: the most rows that `curve` gives.
        first_steps, last_steps: (N,) int64, of the first and last row.
        low_steps, high_steps: (N,) int64, the least and largest step: the same, unless steps
            are out of order.
        first_times, last_times: (N,) wall time of the first and last row.
        counts: (N,) rows.
        minimum, maximum, mean: (N, W) of the finite values, NaN where there is none.
        min_steps, max_steps: (N, W) int64, where the extremes first stand.
        nonfinite: (N, W) number of values that are NaN or infinite.
        nonfinite_steps, nonfinite_values: (N, W) the first of them, its step and which it is.

    Example:
        >>> rows = Rows(np.arange(6), np.arange(6.0), np.array([[1, 9, 2, 3, np.nan, 4.0]]).T)
        >>> seen = overview_of(Series(SeriesSpec("train_loss"), rows), points=4)
        >>> seen.maximum[:, 0].tolist(), seen.max_steps[:, 0].tolist()
        ([9.0, 4.0], [1, 5])
    """

    spec: SeriesSpec
    points: int

    def curve(self, column: int = 0) -> Series:
        """Rows of one column: each bucket's minimum and maximum, and its first non-finite row.

        At most `points` rows in all: where many buckets hold non-finite values, neighbours are
        merged until it is so; then fewer extremes of single buckets stand there, but the least
        and largest value of all do. Steps and values are those of rows of the series. Wall times
        are interpolated between the ends of the bucket.

        Raises:
            UsageError: there is no such column.
        """
        spec = self.spec.pick([column])
        blocks = self.columns([column])
        rows = int(_present(blocks).sum())
        while rows > self.points and len(blocks) > 1:
            fewer = min(len(blocks) - 1, len(blocks) * self.points // rows)
            blocks = merged(blocks, np.unique(-(-np.arange(fewer) * len(blocks) // fewer)))
            rows = int(_present(blocks).sum())
        return Series(spec, _drawn(blocks, spec.dtype))


def overview_of(series: Series, points: int = 2000) -> Overview:
    """The overview of rows in memory.

    `points` // 2 buckets of about the same number of rows, or one for each row where there are
    no more than `points`.

    Raises:
        UsageError: fewer than 3 points.
    """
    count = len(series)
    buckets = bucket_count(count, points)
    each = blocks_of(series.rows, 1) if count <= points else _grouped(series.rows, buckets)
    return overview_from(each, series.spec, points)


def bucket_count(rows: int, points: int) -> int:
    """Buckets for a curve of at most `points` rows: one a row, or two rows a bucket.

    Raises:
        UsageError: fewer than 3 points.
    """
    if points < MIN_POINTS:
        raise UsageError(f"{points} points: a curve needs at least {MIN_POINTS}")
    return rows if rows <= points else points // 2


def overview_from(blocks: Blocks, spec: SeriesSpec, points: int) -> Overview:
    """An overview out of smaller blocks, one after the other."""
    rows = int(blocks.counts.sum())
    buckets = bucket_count(rows, points)
    if rows:
        begun = np.cumsum(blocks.counts) - blocks.counts
        bucket = (begun.astype(object) * buckets // rows).astype(np.int64)
        starts = np.flatnonzero(np.r_[True, bucket[1:] != bucket[:-1]])
        blocks = blocks if len(starts) == len(blocks) else merged(blocks, starts)
    parts = {each.name: getattr(blocks, each.name) for each in fields(Blocks)}
    return Overview(**parts, spec=spec, points=points)


def _grouped(rows: Rows, buckets: int) -> Blocks:
    """Blocks so small that buckets made of them have almost the same number of rows."""
    size = max(1, len(rows) // (_BLOCKS_A_BUCKET * buckets))
    step = size * max(1, _ROWS_AT_ONCE // size)
    pieces = [blocks_of(rows[at : at + step], size) for at in range(0, len(rows), step)]
    return joined(pieces)


def _present(blocks: Blocks) -> NDArray[np.bool_]:
    """(N, 3) whether a block has a minimum, another row as maximum, a non-finite row."""
    low, high = blocks.minimum[:, 0], blocks.maximum[:, 0]
    same = (low == high) & (blocks.min_steps[:, 0] == blocks.max_steps[:, 0])
    finite = ~np.isnan(low)
    return np.stack([finite, finite & ~same, blocks.nonfinite[:, 0] > 0], axis=1)


def _drawn(blocks: Blocks, dtype: str) -> Rows:
    """The rows of a curve out of blocks of one column, in order of steps within a block."""
    steps = np.hstack([blocks.min_steps, blocks.max_steps, blocks.nonfinite_steps])
    values = np.hstack([blocks.minimum, blocks.maximum, blocks.nonfinite_values])
    order = np.argsort(steps, axis=1, kind="stable")
    kept = np.take_along_axis(_present(blocks), order, axis=1)
    steps = np.take_along_axis(steps, order, axis=1)
    values = np.take_along_axis(values, order, axis=1)
    return Rows(steps[kept], _times(blocks, steps)[kept], values[kept][:, None].astype(dtype))


def _times(blocks: Blocks, steps: NDArray[np.int64]) -> NDArray[np.float64]:
    """(N, 3) wall times of steps, interpolated between the ends of their blocks."""
    low = blocks.low_steps.astype(np.float64)[:, None]
    span = np.maximum(1.0, blocks.high_steps.astype(np.float64)[:, None] - low)
    first = blocks.first_times[:, None]
    share: NDArray[np.float64] = (steps - low) / span
    return first + share * (blocks.last_times[:, None] - first)
