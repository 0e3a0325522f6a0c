"""An expression over many steps at once: what it says at each, without reasons and evidence.

The nodes are those of a single step, over arrays that have one axis more: (S steps, W columns). A
few steps a sweep leaves open: where a window that may be partial is not full yet, and where series
of different widths meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from mindpulse.rules.functions import Steps
from mindpulse.rules.lanes import Values
from mindpulse.rules.running import (
    UNKNOWN_VALUE,
    Read,
    ReadSpec,
    Reduction,
    WindowRef,
    layers_of,
    no_spec,
)
from mindpulse.series import Rows

if TYPE_CHECKING:
    from mindpulse.rules.expression import Expression

_PIECE_VALUES = 1 << 17


class Says(IntEnum):
    """The state of a verdict as a small number; `OPEN`: the step has to be judged alone."""

    QUIET = 0
    FIRED = 1
    UNKNOWN = 2
    OPEN = 3


def sweep(
    expression: Expression, read: Read, steps: Steps, spec: ReadSpec | None = None
) -> NDArray[np.int8]:
    """(S,) what the expression `Says` at each step.

    Args:
        read: the rows of a series by its tag, steps strictly increasing; None if it has none.
        steps: (S,) increasing.
        spec: what the columns of a series are; without it an expression that asks is left open.

    Example:
        >>> from mindpulse.rules.compiler import compile_expression
        >>> from mindpulse.testing import rows
        >>> norms = rows([1.0, 70.0, float("nan")])
        >>> expression = compile_expression("last(grad_norm) > 50")
        >>> [Says(one).name for one in sweep(expression, {"grad_norm": norms}.get, norms.steps)]
        ['QUIET', 'FIRED', 'UNKNOWN']
    """
    if not len(steps) or (expression.labelled and spec is None):
        return np.full(len(steps), Says.OPEN, np.int8)
    run = Sweep.begin(expression, read, spec or no_spec, steps)
    with np.errstate(all="ignore"):
        truth = expression.node(run)
    truth = np.broadcast_to(truth, (len(steps), truth.shape[-1]))
    said = np.full(len(steps), Says.QUIET, np.int8)
    said[np.isnan(truth).any(axis=-1)] = Says.UNKNOWN
    said[(truth == 1).any(axis=-1)] = Says.FIRED
    said[run.alone] = Says.OPEN
    return said


@dataclass(frozen=True, slots=True)
class _Source:
    """What all parts of a sweep read; derived series are computed once."""

    expression: Expression
    read: Read
    spec: ReadSpec
    first: int
    last: int
    derived: dict[str, Rows]

    def rows(self, window: WindowRef) -> Rows | None:
        if window.record is None:
            return self.read(window.tag)
        if window.tag not in self.derived:
            most = self.expression.most(window.tag)
            found = window.record.rows(self._near, self.spec, self.first, self.last, most)
            self.derived[window.tag] = found
        return self.derived[window.tag]

    def _near(self, tag: str) -> Rows | None:
        """The rows that the steps of this sweep can see."""
        rows = self.read(tag)
        if rows is None:
            return None
        begin = int(rows.steps.searchsorted(self.first, "right")) - self.expression.needs[tag]
        end = int(rows.steps.searchsorted(self.last, "right"))
        return rows[max(0, begin) : end] if end else None


class Sweep:
    """The evaluation of many steps under way.

    Args:
        source: what is read.
        steps: (S,) increasing.
        places: (S,) where these steps stand among all that are swept.
        alone: (all steps,) set where a step has to be judged alone.
    """

    __slots__ = ("_places", "_source", "_steps", "alone")

    def __init__(
        self, source: _Source, steps: Steps, places: NDArray[np.intp], alone: NDArray[np.bool_]
    ) -> None:
        self._source = source
        self._steps = steps
        self._places = places
        self.alone = alone

    @classmethod
    def begin(cls, expression: Expression, read: Read, spec: ReadSpec, steps: Steps) -> Sweep:
        """The evaluation of an expression at these steps, at least one."""
        source = _Source(expression, read, spec, int(steps[0]), int(steps[-1]), {})
        return cls(source, steps, np.arange(len(steps)), np.zeros(len(steps), np.bool_))

    def step(self) -> Values:
        return self._steps.astype(np.float64)[:, None]

    def age(self, tag: str, text: str) -> Values:
        rows = self._source.read(tag)
        if rows is None or not len(rows):
            return UNKNOWN_VALUE
        ends = rows.steps.searchsorted(self._steps, "right")
        ages = (self._steps - rows.steps[np.maximum(ends, 1) - 1]).astype(np.float64)
        return np.where(ends > 0, ages, np.nan)[:, None]

    def reduced(self, window: WindowRef, call: Reduction, text: str) -> Values:
        rows = self._source.rows(window)
        if rows is None or not len(rows) or window.too_large(rows.values.shape[1]):
            return UNKNOWN_VALUE
        result = np.full((len(self._steps), rows.values.shape[1]), np.nan)
        for count, places, ends in self._windows(window, rows.steps):
            # A series that has a row every ten steps shows the same window at ten of them.
            fresh = np.diff(ends, prepend=-1) > 0
            found = _each(rows, ends[fresh], count, call)
            result[places] = found[np.cumsum(fresh) - 1]
        return result

    def _windows(
        self, window: WindowRef, steps: Steps
    ) -> Iterator[tuple[int, NDArray[np.bool_], NDArray[np.intp]]]:
        """(rows, at which steps, behind which row they end) of the windows that can be reduced."""
        if window.in_steps:
            begins, ends = window.bounds(steps, self._steps)
            counts = ends - begins
            for count in np.unique(counts[counts >= window.fewest]).tolist():
                yield count, counts == count, ends[counts == count]
            return
        ends = steps.searchsorted(self._steps, "right") - window.skip
        full = ends >= window.length
        if window.partial:
            self.alone[self._places[(ends >= window.fewest) & ~full]] = True
        if full.any():
            yield window.length, full, ends[full]

    def layers(self, tags: tuple[str, ...], width: int) -> dict[int, list[int]]:
        return layers_of(self._source.spec, tags, width)

    def where(self, chosen: NDArray[np.bool_]) -> Sweep:
        return Sweep(self._source, self._steps[chosen], self._places[chosen], self.alone)

    def misfit(self, message: str) -> None:
        self.alone[self._places] = True

    def withheld(self, message: str) -> None:
        """Reasons are for the steps that are judged alone."""

    def tentatively(self) -> AbstractContextManager[None]:
        """Nor are reasons."""
        return nullcontext()

    def note(self, text: str, values: Values) -> None:
        """So is evidence."""

    def remember(self, inner: Values) -> None:
        """And the columns."""


def _each(rows: Rows, ends: NDArray[np.intp], length: int, call: Reduction) -> Values:
    """(S, W) the windows of `length` rows that end before rows `ends`, reduced."""
    windows = sliding_window_view(rows.values, length, axis=0).swapaxes(1, 2)
    stamps = sliding_window_view(rows.steps, length)
    size = max(1, _PIECE_VALUES // (length * rows.values.shape[1]))
    firsts = ends - length
    pieces = (_together(firsts[at : at + size]) for at in range(0, len(firsts), size))
    return np.concatenate([call(windows[piece], stamps[piece]) for piece in pieces])


def _together(places: NDArray[np.intp]) -> slice | NDArray[np.intp]:
    """A slice, which copies nothing, where the places follow each other."""
    first, last = int(places[0]), int(places[-1])
    return slice(first, last + 1) if last - first + 1 == len(places) else places
