"""An expression over many steps at once: what it says at each, without reasons and evidence.

The nodes are those of a single step, over arrays that have one axis more: (S steps, W columns). A
few steps a sweep leaves open: where a window that may be partial is not full yet, and where series
of different widths meet.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from mindpulse.rules.expression import UNKNOWN_VALUE, Expression, Reduction, WindowRef
from mindpulse.rules.functions import Steps
from mindpulse.rules.lanes import Values
from mindpulse.series import Rows

_PIECE_VALUES = 1 << 17

Read = Callable[[str], Rows | None]


class Says(IntEnum):
    """The state of a verdict as a small number; `OPEN`: the step has to be judged alone."""

    QUIET = 0
    FIRED = 1
    UNKNOWN = 2
    OPEN = 3


def sweep(expression: Expression, read: Read, steps: Steps) -> NDArray[np.int8]:
    """(S,) what the expression `Says` at each step.

    Args:
        read: the rows of a series by its tag, steps strictly increasing; None if it has none.
        steps: (S,) increasing.

    Example:
        >>> from mindpulse.rules.compiler import compile_expression
        >>> from mindpulse.testing import rows
        >>> norms = rows([1.0, 70.0, float("nan")])
        >>> expression = compile_expression("last(grad_norm) > 50")
        >>> [Says(one).name for one in sweep(expression, {"grad_norm": norms}.get, norms.steps)]
        ['QUIET', 'FIRED', 'UNKNOWN']
    """
    run = Sweep(read, steps, np.arange(len(steps)), np.zeros(len(steps), np.bool_))
    with np.errstate(all="ignore"):
        truth = expression.node(run)
    truth = np.broadcast_to(truth, (len(steps), truth.shape[-1]))
    said = np.full(len(steps), Says.QUIET, np.int8)
    said[np.isnan(truth).any(axis=-1)] = Says.UNKNOWN
    said[(truth == 1).any(axis=-1)] = Says.FIRED
    said[run.alone] = Says.OPEN
    return said


class Sweep:
    """The evaluation of many steps under way.

    Args:
        places: (S,) where these steps stand among all that are swept.
        alone: (all steps,) set where a step has to be judged alone.
    """

    __slots__ = ("_places", "_read", "_steps", "alone")

    def __init__(
        self, read: Read, steps: Steps, places: NDArray[np.intp], alone: NDArray[np.bool_]
    ) -> None:
        self._read = read
        self._steps = steps
        self._places = places
        self.alone = alone

    def step(self) -> Values:
        return self._steps.astype(np.float64)[:, None]

    def reduced(self, window: WindowRef, fewest: int, call: Reduction, text: str) -> Values:
        rows = self._read(window.tag)
        if rows is None or not len(rows):
            return UNKNOWN_VALUE
        ends = rows.steps.searchsorted(self._steps, "right") - window.skip
        full = ends >= window.length
        if window.partial:
            self.alone[self._places[(ends >= fewest) & ~full]] = True
        result = np.full((len(ends), rows.values.shape[1]), np.nan)
        if full.any():
            # A series that has a row every ten steps shows the same window at ten of them.
            fresh = np.diff(ends[full], prepend=-1) > 0
            found = _each(rows, ends[full][fresh], window.length, call)
            result[full] = found[np.cumsum(fresh) - 1]
        return result

    def where(self, chosen: NDArray[np.bool_]) -> Sweep:
        return Sweep(self._read, self._steps[chosen], self._places[chosen], self.alone)

    def misfit(self, message: str) -> None:
        self.alone[self._places] = True

    def note(self, text: str, values: Values) -> None:
        """Evidence is for the steps that are judged alone."""

    def remember(self, inner: Values) -> None:
        """The same."""


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
