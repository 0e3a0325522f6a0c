"""Histograms that were read as several series, put together again for a writer of event files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mindpulse.interop.events.histogram import Histogram
from mindpulse.interop.events.parts import is_histogram
from mindpulse.series import Rows, SeriesSpec

_RIGHT, _WIDTH = "/right", "/width"


@dataclass(frozen=True, slots=True)
class Bars:
    """The series that one histogram is.

    Attributes:
        counts, left, right: their tags.
        widths: `right` holds what is to be added to `left`.
        statistics: the tag of what is said of the values, "" where nothing is.
        names: what is said.
    """

    counts: str
    left: str
    right: str
    widths: bool
    statistics: str = ""
    names: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """The tags that the histogram makes needless."""
        return (self.left, self.right, *((self.statistics,) if self.statistics else ()))

    def histograms(
        self, read: Callable[[str], Iterator[Rows]]
    ) -> Iterator[tuple[Rows, list[Histogram]]]:
        """Blocks of counts, each with its histograms.

        Args:
            read: gives the rows of a tag, in blocks of any size.
        """
        tags = (self.counts, *self.parts)
        for blocks in _together([read(tag) for tag in tags]):
            counts, left, right = (block.values.astype(np.float64) for block in blocks[:3])
            said = blocks[3].values.tolist() if self.statistics else [()] * len(counts)
            found = []
            for index, row in enumerate(counts):
                there = ~np.isnan(row)
                told = dict(zip(self.names, said[index], strict=True))
                edges = left[index][there], right[index][there]
                found.append(Histogram(*edges, row[there], told, self.widths))
            yield blocks[0], found


def bars_in(specs: Mapping[str, SeriesSpec]) -> dict[str, Bars]:
    """The histograms of a run whose edges are known, by the tag of their counts."""
    found = {}
    for tag, spec in specs.items():
        left = specs.get(f"{tag}/left")
        right = specs.get(tag + _RIGHT) or specs.get(tag + _WIDTH)
        if not is_histogram(spec) or left is None or right is None:
            continue
        if left.columns == right.columns == spec.columns:
            said = specs.get(f"{tag}/statistics")
            more = (said.tag, tuple(labels[0] for labels in said.columns)) if said else ()
            found[tag] = Bars(tag, left.tag, right.tag, right.tag.endswith(_WIDTH), *more)
    return found


def _together(streams: list[Iterator[Rows]]) -> Iterator[list[Rows]]:
    """Blocks of the same rows of all streams, as long as all have some."""
    held: list[Rows | None] = [None] * len(streams)
    while True:
        for index, stream in enumerate(streams):
            if held[index] is None:
                held[index] = next(stream, None)
        blocks = [rows for rows in held if rows is not None]
        if len(blocks) < len(streams):
            return
        size = min(len(rows) for rows in blocks)
        yield [rows[:size] for rows in blocks]
        held = [rows[size:] if len(rows) > size else None for rows in blocks]
