"""What is known of blocks of consecutive rows without the rows: extremes, means, NaNs. All pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.series import Rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """N blocks of W columns; see `Overview` for the attributes."""

    counts: Ints
    first_steps: Ints
    last_steps: Ints
    low_steps: Ints
    high_steps: Ints
    first_times: Floats
    last_times: Floats
    minimum: Floats
    maximum: Floats
    mean: Floats
    min_steps: Ints
    max_steps: Ints
    nonfinite: Ints
    nonfinite_steps: Ints
    nonfinite_values: Floats

    def __len__(self) -> int:
        return len(self.counts)

    def columns(self, wanted: Sequence[int] | NDArray[np.intp]) -> Blocks:
        """The same blocks with some of the columns."""
        return self._map(lambda array: array if array.ndim == 1 else array[:, wanted])

    def __getitem__(self, index: slice | NDArray[Any]) -> Blocks:
        """Some of the blocks."""
        return self._map(lambda array: array[index])

    def _map(self, change: Any) -> Blocks:
        return Blocks(*(change(getattr(self, name)) for name in NAMES))


# Columns are taken a few at a time: less memory, and it stays in the cache.
_STRIPE_VALUES = 1 << 16
NAMES = tuple(field.name for field in fields(Blocks))


def joined(pieces: Sequence[Blocks]) -> Blocks:
    """Blocks one after the other; at least one piece, all of the same width."""
    if len(pieces) == 1:
        return pieces[0]
    return Blocks(*(np.concatenate([getattr(p, name) for p in pieces]) for name in NAMES))


def no_blocks(width: int) -> Blocks:
    """Nothing, of `width` columns."""
    return blocks_of(Rows.empty(width), 1)


def blocks_of(rows: Rows, size: int) -> Blocks:
    """Blocks of `size` rows each; the last one may be smaller.

    Args:
        rows: (T, W).
        size: at least 1.
    """
    full = len(rows) // size
    pieces = [_equal_blocks(rows[: full * size], size)]
    if len(rows) % size:
        pieces.append(_equal_blocks(rows[full * size :], len(rows) % size))
    return joined(pieces if full else pieces[-1:])


def _equal_blocks(rows: Rows, size: int) -> Blocks:
    shape = (len(rows) // size, size)
    steps, times = rows.steps.reshape(shape), rows.wall_times.reshape(shape)
    width = rows.values.shape[1]
    stripe = max(1, _STRIPE_VALUES // max(1, len(rows)))
    values = rows.values.reshape(*shape, width)
    stripes = [_seen(steps, values[:, :, at : at + stripe]) for at in range(0, width, stripe)]
    seen = stripes[0] if len(stripes) == 1 else map(np.hstack, zip(*stripes, strict=True))
    return Blocks(
        np.full(shape[0], size, np.int64),
        steps[:, 0],
        steps[:, -1],
        steps.min(axis=1),
        steps.max(axis=1),
        times[:, 0],
        times[:, -1],
        *seen,
    )


def _seen(steps: Ints, values: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """What is known of each column: (N, W) each, out of (N, B) steps and (N, B, W) values."""
    # (N, W, B), so that each reduction runs over neighbouring numbers.
    turned = np.ascontiguousarray(values.transpose(0, 2, 1), np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        sums = turned.sum(axis=2)
    return _finite(steps, turned, sums) if np.isfinite(sums).all() else _mixed(steps, turned)


def _finite(steps: Ints, values: Floats, sums: Floats) -> tuple[NDArray[Any], ...]:
    """Minimum, maximum, mean and so on where no value is NaN or infinite."""
    least, most = values.argmin(axis=2), values.argmax(axis=2)
    none = np.zeros(sums.shape, np.int64)
    return (
        _at(values, least),
        _at(values, most),
        sums / values.shape[2],
        _steps_at(steps, least),
        _steps_at(steps, most),
        none,
        np.broadcast_to(steps[:, :1], sums.shape),
        np.full(sums.shape, np.nan),
    )


def _mixed(steps: Ints, values: Floats) -> tuple[NDArray[Any], ...]:
    finite = np.isfinite(values)
    counts = finite.sum(axis=2)
    least = np.where(finite, values, np.inf).argmin(axis=2)
    most = np.where(finite, values, -np.inf).argmax(axis=2)
    none = counts == 0
    bad = (~finite).argmax(axis=2)
    share = np.where(finite, values, 0.0) / np.maximum(counts, 1)[..., None]
    return (
        np.where(none, np.nan, _at(values, least)),
        np.where(none, np.nan, _at(values, most)),
        np.where(none, np.nan, share.sum(axis=2)),
        _steps_at(steps, least),
        _steps_at(steps, most),
        values.shape[2] - counts,
        _steps_at(steps, bad),
        np.where(counts < values.shape[2], _at(values, bad), np.nan),
    )


def _at(values: Floats, position: NDArray[np.intp]) -> Floats:
    found: Floats = np.take_along_axis(values, position[..., None], axis=2)[..., 0]
    return found


def _steps_at(steps: Ints, position: NDArray[np.intp]) -> Ints:
    found: Ints = np.take_along_axis(steps, position, axis=1)
    return found


def merged(blocks: Blocks, starts: NDArray[np.intp]) -> Blocks:
    """Larger blocks out of neighbours; group g begins at block `starts[g]`, the first at 0."""
    ends = np.r_[starts[1:], len(blocks)] - 1
    group = np.repeat(np.arange(len(starts)), ends - starts + 1)
    minimum = np.fmin.reduceat(blocks.minimum, starts, axis=0)
    maximum = np.fmax.reduceat(blocks.maximum, starts, axis=0)
    least = _first(blocks.minimum == minimum[group], starts)
    most = _first(blocks.maximum == maximum[group], starts)
    bad = _first(blocks.nonfinite > 0, starts)
    return Blocks(
        np.add.reduceat(blocks.counts, starts),
        blocks.first_steps[starts],
        blocks.last_steps[ends],
        np.minimum.reduceat(blocks.low_steps, starts),
        np.maximum.reduceat(blocks.high_steps, starts),
        blocks.first_times[starts],
        blocks.last_times[ends],
        np.take_along_axis(blocks.minimum, least, axis=0),
        np.take_along_axis(blocks.maximum, most, axis=0),
        _mean(blocks, starts, group),
        np.take_along_axis(blocks.min_steps, least, axis=0),
        np.take_along_axis(blocks.max_steps, most, axis=0),
        np.add.reduceat(blocks.nonfinite, starts, axis=0),
        np.take_along_axis(blocks.nonfinite_steps, bad, axis=0),
        np.take_along_axis(blocks.nonfinite_values, bad, axis=0),
    )


def _first(hits: NDArray[np.bool_], starts: NDArray[np.intp]) -> NDArray[np.intp]:
    """(groups, W) position of the first hit in each group, the group's first if there is none."""
    count = len(hits)
    places = np.where(hits, np.arange(count)[:, None], count)
    first: NDArray[np.intp] = np.minimum.reduceat(places, starts, axis=0)
    return np.where(first == count, starts[:, None], first)


def _mean(blocks: Blocks, starts: NDArray[np.intp], group: NDArray[np.intp]) -> Floats:
    finite = (blocks.counts[:, None] - blocks.nonfinite).astype(np.float64)
    total = np.add.reduceat(finite, starts, axis=0)
    share = finite / np.maximum(total, 1)[group]
    parts = np.where(finite > 0, blocks.mean, 0.0) * share
    return np.where(total > 0, np.add.reduceat(parts, starts, axis=0), np.nan)
