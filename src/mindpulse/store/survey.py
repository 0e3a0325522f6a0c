"""The overview of a series that lies in files: out of the index where there is one, else the rows.

A stretch of rows is covered by the largest blocks that the index has and the picture can use; what
they leave at both ends, and what is damaged or hidden by a later attempt in part, is covered by
smaller blocks, and in the end by the rows themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mindpulse.store.blocks import Blocks, blocks_of, joined, no_blocks
from mindpulse.store.gather import MISSING, Gathered, Source, copied, visible
from mindpulse.store.index import Level, levels_of
from mindpulse.store.merge import lower
from mindpulse.store.overview import Overview, bucket_count, overview_from

# Blocks are smaller than buckets, so that buckets made of them have almost the same size.
_BLOCKS_A_BUCKET = 4


def survey(gathered: Gathered, points: int) -> Overview:
    """The overview of a series.

    Raises:
        UsageError: fewer than 3 points.
        StoreError: a file cannot be read.
    """
    counts = [source.part.count for parts in gathered.attempts.values() for source in parts]
    found = _blocks(gathered, _most(sum(counts), points))
    shown = int(found.counts.sum())
    if 2 * shown < sum(counts):  # the rest is hidden: the buckets would be too few
        found = _blocks(gathered, _most(shown, points))
    return overview_from(found, gathered.spec, points)


def _most(rows: int, points: int) -> int:
    """Rows that a block may have at most: no more than a bucket."""
    return max(1, rows // max(1, bucket_count(rows, points)))


def _blocks(gathered: Gathered, most: int) -> Blocks:
    """Blocks of all rows that count, in order."""
    found: list[Blocks] = []
    limit: int | None = None
    for attempt in gathered.order:
        covers = [_Cover(source, most, limit) for source in gathered.attempts.get(attempt, ())]
        pieces = [cover.blocks() for cover in covers]
        found += reversed(pieces)
        limit = gathered.limit_after(limit, attempt, lower(*(cover.lowest for cover in covers)))
    full = [blocks for blocks in reversed(found) if len(blocks)]
    return joined(full) if full else no_blocks(gathered.spec.width)


class _Cover:
    """Covers the rows of one part by blocks.

    Attributes:
        lowest: the lowest step of the part, known once the blocks were made.
    """

    def __init__(self, source: Source, most: int, limit: int | None) -> None:
        self.lowest: int | None = None
        self._source, self._limit = source, limit
        self._size = max(1, most // _BLOCKS_A_BUCKET)
        self._levels: list[Level] = []
        if source.take is None or MISSING not in source.take:
            self._levels = [level for level in levels_of(source.part) if level.rows <= most]

    def blocks(self) -> Blocks:
        """All blocks of the part, in order."""
        count = self._source.part.count
        head = min(len(self._source.repeated), count)
        found = [
            *self._from_rows(0, head),
            *self._covered(head, count, len(self._levels) - 1),
        ]
        return joined(found) if found else no_blocks(self._source.spec.width)

    def _covered(self, first: int, stop: int, number: int) -> Iterator[Blocks]:
        if number < 0:
            yield from self._from_rows(first, stop)
            return
        level = self._levels[number]
        begin = -(-first // level.rows)
        end = min(stop // level.rows, level.count)
        if begin >= end:
            yield from self._covered(first, stop, number - 1)
            return
        yield from self._covered(first, begin * level.rows, number - 1)
        for places, entries in level.read(begin, end, self._source.take):
            yield from self._shown(begin, places, entries, number)
            begin = int(places[-1]) + 1 if len(places) else begin
        yield from self._covered(begin * level.rows, stop, number - 1)

    def _shown(
        self, begin: int, places: NDArray[np.int64], entries: Blocks, number: int
    ) -> Iterator[Blocks]:
        """Entries that no later attempt hides; what is hidden in part is looked at closer.

        So is what a damaged entry would tell, between `begin` and the last of the places.
        """
        if not len(places):
            return
        self.lowest = lower(self.lowest, int(entries.low_steps.min()))
        shown, split = self._seen(entries)
        rows = self._levels[number].rows
        gap = np.r_[begin, places[:-1] + 1] < places
        at = 0
        for index in np.flatnonzero(split | gap).tolist():
            yield entries[at:index][shown[at:index]]
            place = int(places[index])
            if gap[index]:
                before = int(places[index - 1]) + 1 if index else begin
                yield from self._covered(before * rows, place * rows, number - 1)
            if split[index]:
                yield from self._covered(place * rows, (place + 1) * rows, number - 1)
            at = index + int(split[index])
        yield entries[at:][shown[at:]]

    def _seen(self, entries: Blocks) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which entries are not hidden at all, and which in part."""
        if self._limit is None:
            return np.ones(len(entries), np.bool_), np.zeros(len(entries), np.bool_)
        shown = entries.high_steps < self._limit
        return shown, ~shown & (entries.low_steps < self._limit)

    def _from_rows(self, first: int, stop: int) -> Iterator[Blocks]:
        if first >= stop:
            return
        for piece in self._source.part.pieces(first, stop):
            rows, low = visible(self._source, piece, self._limit)
            self.lowest = lower(self.lowest, low)
            if len(rows):
                yield blocks_of(copied(self._source, rows), self._size)
