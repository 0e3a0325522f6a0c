"""A long history in portions of few steps, so that a watcher that catches up stays awake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mindpulse.store.reader import Chunk

PORTION_STEPS = 1000


def portions(chunks: Sequence[Chunk]) -> Iterator[list[Chunk]]:
    """The same rows in the same order of attempts, a limited number of steps at a time."""
    for attempt in dict.fromkeys(chunk.attempt for chunk in chunks):
        mine = [chunk for chunk in chunks if chunk.attempt == attempt]
        steps = np.unique(np.concatenate([chunk.rows.steps for chunk in mine]))
        for parts in zip(*(_parts(chunk, steps) for chunk in mine), strict=True):
            yield [part for part in parts if len(part.rows)]


def _parts(chunk: Chunk, steps: NDArray[np.int64]) -> Iterator[Chunk]:
    """The rows of a chunk for each thousand of the steps, in their order."""
    rows, number = chunk.rows, steps.searchsorted(chunk.rows.steps) // PORTION_STEPS
    if np.any(number[1:] < number[:-1]):
        order = np.argsort(number, kind="stable")
        rows, number = rows[order], number[order]
    count = -(-len(steps) // PORTION_STEPS)
    ends = number.searchsorted(np.arange(count), "right")
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        yield replace(chunk, rows=rows[begin:end])
