"""The evaluation of one step: what is read, and what is noted for the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.rules.functions import Steps
from mindpulse.rules.lanes import Values
from mindpulse.rules.running import (
    UNKNOWN_VALUE,
    RecordLike,
    Reduction,
    ViewLike,
    WindowRef,
    layers_of,
)
from mindpulse.series import Rows

if TYPE_CHECKING:
    from mindpulse.rules.expression import Expression


class Run:
    """The evaluation of one step under way.

    Args:
        view: what is read.
        expression: the whole that is evaluated.
    """

    __slots__ = ("_derived", "_expression", "inner", "misfits", "short", "terms", "view")

    def __init__(self, view: ViewLike, expression: Expression) -> None:
        self.view = view
        self._expression = expression
        self._derived: dict[str, Rows] = {}
        self.terms: list[tuple[str, Values]] = []
        self.short: list[tuple[str, int, int]] = []
        self.misfits = ""
        self.inner: list[Values] = []

    def step(self) -> Values:
        return np.array([float(self.view.step)])

    def age(self, tag: str, text: str) -> Values:
        steps, _ = self.view.window(tag, 0, 1)
        if not len(steps):
            self.short.append((tag, 0, 1))
            return UNKNOWN_VALUE
        result = np.array([float(self.view.step - int(steps[-1]))])
        self.note(text, result)
        return result

    def reduced(self, window: WindowRef, call: Reduction, text: str) -> Values:
        steps, values = self._rows(window)
        if len(steps) < window.wanted:
            self._lacks(window, len(steps))
            return UNKNOWN_VALUE
        if window.too_large(values.shape[1]):
            size = f"{window.length:,} rows of {values.shape[1]:,} columns"
            self.misfit(f"a window of {size} is too large: ask for fewer rows of {window.tag}")
            return UNKNOWN_VALUE
        result = call(values, steps)
        self.note(text, result)
        return result

    def _lacks(self, window: WindowRef, have: int) -> None:
        if window.in_steps:
            stretch = f"in the last {window.end} steps, {window.fewest} needed"
            self.withheld(f"{window.tag} has {have} rows {stretch}")
        else:
            self.short.append((window.tag, have, window.wanted))

    def _rows(self, window: WindowRef) -> tuple[Steps, NDArray[Any]]:
        if window.record is None:
            if not window.in_steps:
                return self.view.window(window.tag, window.skip, window.length)
            steps, values = self.view.window(window.tag, 0, window.end)
        else:
            rows = self._rows_of_record(window.tag, window.record)
            steps, values = rows.steps, rows.values
        if window.in_steps:
            begin, end = window.bounds(steps, self.view.step)
        else:
            end = max(0, len(steps) - window.skip)
            begin = max(0, end - window.length)
        return steps[begin:end], values[begin:end]

    def _rows_of_record(self, name: str, record: RecordLike) -> Rows:
        if name not in self._derived:
            now, most = self.view.step, self._expression.most(name)
            self._derived[name] = record.rows(self._read, self.view.spec, now, now, most)
        return self._derived[name]

    def _read(self, tag: str) -> Rows | None:
        steps, values = self.view.window(tag, 0, self._expression.needs[tag])
        return Rows(steps, np.zeros(len(steps)), values) if len(steps) else None

    def layers(self, tags: tuple[str, ...], width: int) -> dict[int, list[int]]:
        return layers_of(self.view.spec, tags, width)

    def where(self, chosen: NDArray[np.bool_]) -> Run:
        return self  # one step is settled or it is not

    def misfit(self, message: str) -> None:
        self.misfits = self.misfits or message

    def withheld(self, message: str) -> None:
        self.misfits = self.misfits or message

    @contextmanager
    def tentatively(self) -> Iterator[None]:
        short, misfits = list(self.short), self.misfits
        yield
        self.short, self.misfits = short, misfits

    def note(self, text: str, values: Values) -> None:
        self.terms.append((text, values))

    def remember(self, inner: Values) -> None:
        self.inner.append(inner)

    def reason(self) -> str:
        """Why the result is unknown."""
        parts = [
            f"{tag} has {have} of the {want} rows needed" if have else f"{tag} has no rows yet"
            for tag, have, want in dict.fromkeys(self.short)
        ]
        return "; ".join(parts) or self.misfits or "no finite value to judge"
