"""Turns what a drain brought from the device into rows of series."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.catalogue.layers import first_to_last, numbered_layers
from mindpulse.mindspore.planting import Planted, known_measures
from mindpulse.mindspore.planting_clipping import UNCLIPPED
from mindpulse.mindspore.ring import Reading, Table
from mindpulse.mindspore.sites import Columns, Piece, Site
from mindpulse.series import Rows, SeriesSpec

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
        unasked: whether a probe ran on a step whose variant does not have it.
    """

    def __init__(self, planted: Planted, first_step: int) -> None:
        self.planted = planted
        self.next_step = first_step
        self.lost = 0
        self.last_sampled = 0
        self.unasked = False
        self._trains_in_training_mode = False
        self._measures = known_measures()
        self._left: set[str] = set()

    def leave(self, tags: Iterable[str]) -> None:
        """The user writes these: a norm before clipping that one has anyway is not doubled."""
        self._left |= {UNCLIPPED} & set(tags)

    def take(self, reading: Reading, wall_times: WallTimes) -> Harvested:
        """Rows of all steps that were finished since the last call."""
        first, last = self.next_step, reading.counter - 1
        if last < first:
            return []
        oldest = max(first, reading.counter - self.planted.ring.capacity)
        self.lost += oldest - first
        self.next_step = last + 1
        tables = {
            site.slot.name: reading.rows_of(site.slot, first, last) for site in self.planted.sites
        }
        tables = self._only_training(tables)
        found: dict[str, list[tuple[NDArray[np.int64], Piece]]] = {}
        for site in self.planted.sites:
            table = tables[site.slot.name]
            if len(table.steps):
                self._saw(site, table)
            for piece in site.decode(table):
                found.setdefault(piece.tag, []).append((table.steps, piece))
        self._derive(found)
        self.planted.density.forget(self.next_step)
        return [
            (spec, rows)
            for tag in self.planted.intervals
            if tag in found and tag not in self._left
            for spec, rows in self._rows(tag, found[tag], wall_times)
        ]

    def _only_training(self, tables: dict[str, Table]) -> dict[str, Table]:
        """Leaves out what was measured outside training mode, in a training that uses the mode.

        The optimizer's rows do not tell: they are always of training.
        """
        forward = [s.slot.name for s in self.planted.sites if s.place.kind in _FORWARD]
        if any(tables[name].training.any() for name in forward):
            self._trains_in_training_mode = True
        if self._trains_in_training_mode:
            for name in forward:
                tables[name] = tables[name][tables[name].training]
        return tables

    def _saw(self, site: Site, table: Table) -> None:
        if not site.ran and site.place.kind == "attention":
            # Layers are numbered as they run: a twin that never does must not leave a gap.
            ran = (other.ran and other.place.kind == "attention" for other in self.planted.sites)
            site.label = str(sum(ran))
        site.ran = True
        variants = self.planted.variants
        chosen = [variants.chosen(int(step)) for step in table.steps]
        if any(tier is not None and tier < site.tier for tier in chosen):
            self.unasked = True
        if site.place.kind == "attention":
            self.last_sampled = max(self.last_sampled, int(table.steps[-1]))

    def _derive(self, found: dict[str, list[tuple[NDArray[np.int64], Piece]]]) -> None:
        """Global norms and ratio of layers, from the norms of all parameters."""
        parts = found.get("grad_norm_param")
        if not parts:
            found.pop(UNCLIPPED, None)
            return
        steps, values, columns = _side_by_side(parts)
        total = np.sqrt(np.square(values).sum(axis=1, keepdims=True))
        found["grad_norm"] = [(steps, Piece("grad_norm", (), total))]
        if UNCLIPPED in found:
            found[UNCLIPPED] = [_together(found[UNCLIPPED], set(steps.tolist()))]
        names = [name for (name,) in columns]
        if len(numbered_layers(names)) > 1:
            ratios = first_to_last(names, values)[:, None]
            found["grad_norm_ratio"] = [(steps, Piece("grad_norm_ratio", (), ratios))]

    def _rows(
        self, tag: str, parts: list[tuple[NDArray[np.int64], Piece]], wall_times: WallTimes
    ) -> Harvested:
        steps, values, columns = _side_by_side(parts)
        due = self.planted.density.due_rows(tag, steps)
        if not due.any():
            return []
        steps, values = steps[due], values[due]
        spec = self._spec(tag, columns)
        return [(spec, Rows(steps, wall_times(steps), np.array(values, spec.dtype)))]

    def _spec(self, tag: str, columns: Columns) -> SeriesSpec:
        measure = self._measures[tag]
        if columns and not measure.axes:  # learning rates of several groups
            spec = measure.spec()
            return replace(spec, plugin="vector", axes=("group",), columns=columns)
        return measure.spec(columns)


_FORWARD = ("attention", "norm", "ffn", "logits", "router", "loss")


def _side_by_side(
    parts: list[tuple[NDArray[np.int64], Piece]],
) -> tuple[NDArray[np.int64], NDArray[Any], Columns]:
    """Steps (T,), values (T, W) and columns of all sites; NaN where a site sat a step out."""
    if len(parts) == 1:
        steps, piece = parts[0]
        return steps, piece.values, piece.columns
    steps = np.unique(np.concatenate([steps for steps, _ in parts]))
    columns = tuple(column for _, piece in parts for column in piece.columns)
    values = []
    for own, piece in parts:
        part = np.full((len(steps), piece.values.shape[1]), np.nan, piece.values.dtype)
        part[np.isin(steps, own)] = piece.values
        values.append(part)
    return steps, np.concatenate(values, axis=1), columns


def _together(
    parts: list[tuple[NDArray[np.int64], Piece]], ended: set[int]
) -> tuple[NDArray[np.int64], Piece]:
    """Norm of the gradients that were clipped: for each optimizer, else for all together.

    Steps that no optimizer ended are left out, as they are for the norm behind the clipping.
    """
    each, whole = (parts, []) if len(parts) == 1 else (parts[:-1], parts[-1:])
    norms: dict[int, list[float]] = {}
    for steps, piece in each:
        for step, norm in zip(steps.tolist(), piece.values[:, 0].tolist(), strict=True):
            norms.setdefault(step, []).append(norm)
    for steps, piece in whole:
        for step, norm in zip(steps.tolist(), piece.values[:, 0].tolist(), strict=True):
            norms.setdefault(step, [norm])
    rows = {step: float(np.hypot.reduce(norms[step])) for step in sorted(norms) if step in ended}
    values = np.array(list(rows.values()), np.float64)[:, None]
    return np.array(list(rows), np.int64), Piece(UNCLIPPED, (), values)
