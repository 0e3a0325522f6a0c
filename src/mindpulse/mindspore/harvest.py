"""Turns what a drain brought from the device into rows of series."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.catalogue import MEASURES
from mindpulse.mindspore.planting import AttentionProbe, Planted
from mindpulse.mindspore.ring import Reading
from mindpulse.series import Rows, SeriesSpec

TRAIN_LOSS = MEASURES["train_loss"].spec()
STEP_TIME = MEASURES["step_time_s"].spec()
GRAD_NORM = MEASURES["grad_norm"].spec()

WallTimes = Callable[[NDArray[np.int64]], NDArray[np.float64]]
Harvested = list[tuple[SeriesSpec, Rows]]


class Harvest:
    """Reads each finished step once; remembers how far it came.

    Args:
        planted: the probes.
        first_step: the first step of this attempt.

    Attributes:
        next_step: the first step that was not read yet.
        lost: steps that the ring had overwritten before they were read.
        last_sampled: the last step that attention was measured on; 0 for none.
        unasked: whether attention was measured on a step on which it should not be.
        shapes: slot -> (heads, queries, keys) of each attention probe that ran.
    """

    def __init__(self, planted: Planted, first_step: int) -> None:
        self.planted = planted
        self.next_step = first_step
        self.lost = 0
        self.last_sampled = 0
        self.unasked = False
        self.shapes: dict[str, tuple[int, int, int]] = {}
        names = [(name,) for name in planted.parameters]
        self._gradient_spec = MEASURES["grad_norm_param"].spec(names)

    def take(self, reading: Reading, wall_times: WallTimes) -> Harvested:
        """Rows of all steps that were finished since the last call."""
        first, last = self.next_step, reading.counter - 1
        if last < first:
            return []
        oldest = max(first, reading.counter - self.planted.ring.capacity)
        self.lost += oldest - first
        self.next_step = last + 1
        found: Harvested = []
        found += self._loss(reading, first, last, wall_times)
        found += self._gradients(reading, first, last, wall_times)
        found += self._learning_rates(reading, first, last, wall_times)
        found += self._attention(reading, first, last, wall_times)
        return found

    def _loss(self, reading: Reading, first: int, last: int, wall_times: WallTimes) -> Harvested:
        if not self.planted.has_loss:
            return []
        steps, values = reading.rows_of("loss", first, last)
        return [_rows(TRAIN_LOSS, steps, values, wall_times)]

    def _gradients(
        self, reading: Reading, first: int, last: int, wall_times: WallTimes
    ) -> Harvested:
        steps, values = reading.rows_of("optimizer", first, last)
        squares = 2.0 * values[:, : len(self.planted.parameters)].astype(np.float64)
        total = np.sqrt(squares.sum(axis=1, keepdims=True))
        return [
            _rows(GRAD_NORM, steps, total, wall_times),
            _rows(self._gradient_spec, steps, np.sqrt(squares), wall_times),
        ]

    def _learning_rates(
        self, reading: Reading, first: int, last: int, wall_times: WallTimes
    ) -> Harvested:
        steps, values = reading.rows_of("optimizer", first, last)
        rates = values[:, len(self.planted.parameters) :]
        if not rates.shape[1]:
            return []
        return [_rows(_rate_spec(rates.shape[1]), steps, rates, wall_times)]

    def _attention(
        self, reading: Reading, first: int, last: int, wall_times: WallTimes
    ) -> Harvested:
        tables = [(p, *reading.rows_of(p.slot, first, last)) for p in self.planted.attention]
        for probe, steps, values in tables:
            if len(steps):
                heads, queries, keys = (int(size) for size in values[-1, :3])
                self.shapes[probe.slot] = (heads, queries, keys)
        tables = [table for table in tables if table[0].slot in self.shapes]
        sampled = np.unique(
            np.concatenate([steps for _, steps, _ in tables] or [np.empty(0, np.int64)])
        )
        if not len(sampled):
            return []
        self.last_sampled = int(sampled[-1])
        every = self.planted.thinning.every
        self.unasked = self.unasked or not all(every(int(step)) for step in sampled)
        probes = [probe for probe, _, _ in tables]
        found: Harvested = []
        for tag, half in (("attn_focus", 0), ("attn_entropy", 1)):
            parts = [self._heads_of(table, sampled, half) for table in tables]
            spec = self._attention_spec(tag, probes)
            found.append(_rows(spec, sampled, np.concatenate(parts, axis=1), wall_times))
        return found

    def _heads_of(
        self,
        table: tuple[AttentionProbe, NDArray[np.int64], NDArray[np.float32]],
        sampled: NDArray[np.int64],
        half: int,
    ) -> NDArray[np.float32]:
        """(sampled, heads) of one layer; NaN where the layer sat a step out."""
        probe, steps, values = table
        heads, start = self.shapes[probe.slot][0], 3 + half * probe.cap
        out = np.full((len(sampled), heads), np.nan, np.float32)
        out[np.isin(sampled, steps)] = values[:, start : start + heads]
        return out

    def _attention_spec(self, tag: str, probes: list[AttentionProbe]) -> SeriesSpec:
        columns = [(p.layer, str(h)) for p in probes for h in range(self.shapes[p.slot][0])]
        return MEASURES[tag].spec(columns)


def _rate_spec(groups: int) -> SeriesSpec:
    spec = MEASURES["learning_rate"].spec()
    if groups == 1:
        return spec
    columns = tuple((str(group),) for group in range(groups))
    return replace(spec, plugin="vector", axes=("group",), columns=columns)


def _rows(
    spec: SeriesSpec, steps: NDArray[np.int64], values: NDArray[Any], wall_times: WallTimes
) -> tuple[SeriesSpec, Rows]:
    return spec, Rows(steps, wall_times(steps), np.array(values, spec.dtype))
