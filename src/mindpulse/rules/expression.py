"""An expression over windows, for example `std(attn_focus[100]) < 0.01`: checked, then evaluated.

`compiler` turns the text into small functions once; here is what they need at each step, and what
comes out: fired, quiet or unknown, with the columns and the evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mindpulse.rules.functions import Steps
from mindpulse.rules.lanes import Values

FIRED, QUIET, UNKNOWN = "fired", "quiet", "unknown"
UNKNOWN_VALUE = np.full(1, np.nan)
UNKNOWN_VALUE.setflags(write=False)


class ViewLike(Protocol):
    """What an expression reads; `window.View` is one."""

    @property
    def step(self) -> int: ...

    def window(self, tag: str, skip: int, length: int) -> tuple[Steps, NDArray[Any]]: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an expression says at one step.

    Attributes:
        state: "fired", "quiet" or "unknown".
        columns: the columns that fired; if the expression ends as one number by way of
            any_column, share_columns..., those for which the inner condition holds.
        evidence: value of each term, in the first of these columns; empty unless fired.
        reason: why it is unknown, "" otherwise.
        whole: the condition is one truth value, not one for each column.
    """

    state: str
    columns: tuple[int, ...] = ()
    evidence: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    whole: bool = True


@dataclass(frozen=True, slots=True)
class WindowRef:
    """`tag[length]`, without its newest `skip` rows; `partial`: fewer rows are welcome."""

    tag: str
    skip: int
    length: int
    partial: bool = False


Reduction = Callable[[NDArray[Any], Steps], Values]


class RunLike(Protocol):
    """An evaluation under way, of one step (`Run`) or of many (`sweep.Sweep`)."""

    def step(self) -> Values:
        """The steps (..., 1)."""
        ...

    def reduced(self, window: WindowRef, fewest: int, call: Reduction, text: str) -> Values:
        """The window reduced by `call`, noted under `text`; NaN if rows are missing."""
        ...

    def where(self, chosen: NDArray[np.bool_]) -> RunLike:
        """The evaluation of some of the steps."""
        ...

    def misfit(self, message: str) -> None:
        """Two series do not go together."""
        ...

    def note(self, text: str, values: Values) -> None:
        """Keeps the value of a term as evidence."""
        ...

    def remember(self, inner: Values) -> None:
        """Keeps a condition over columns that is about to be reduced to one value."""
        ...


class Run:
    """The evaluation of one step: what is read, and what is noted for the verdict."""

    __slots__ = ("inner", "misfits", "short", "terms", "view")

    def __init__(self, view: ViewLike) -> None:
        self.view = view
        self.terms: list[tuple[str, Values]] = []
        self.short: list[tuple[str, int, int]] = []
        self.misfits = ""
        self.inner: list[Values] = []

    def step(self) -> Values:
        return np.array([float(self.view.step)])

    def reduced(self, window: WindowRef, fewest: int, call: Reduction, text: str) -> Values:
        steps, values = self.view.window(window.tag, window.skip, window.length)
        wanted = fewest if window.partial else window.length
        if len(steps) < wanted:
            self.short.append((window.tag, len(steps), wanted))
            return UNKNOWN_VALUE
        result = call(values, steps)
        self.note(text, result)
        return result

    def where(self, chosen: NDArray[np.bool_]) -> Run:
        return self  # one step is settled or it is not

    def misfit(self, message: str) -> None:
        self.misfits = message

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


Node = Callable[[RunLike], Values]


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A compiled expression.

    Attributes:
        text: as it was written.
        needs: how many rows it looks back in each series, by tag.
    """

    text: str
    needs: Mapping[str, int]
    node: Node

    @property
    def series(self) -> tuple[str, ...]:
        """The series that it reads."""
        return tuple(self.needs)

    def evaluate(self, view: ViewLike) -> Verdict:
        """The verdict at the view's step; never raises for whatever the rows hold.

        Example:
            >>> from mindpulse.rules.compiler import compile_expression
            >>> from mindpulse.testing import view
            >>> compile_expression("last(grad_norm) > 50").evaluate(view(grad_norm=[1.0, 70.0]))
            Verdict(state='fired', columns=(0,), evidence={'last(grad_norm)': 70.0}, reason='', \
whole=True)
        """
        run = Run(view)
        with np.errstate(all="ignore"):
            truth = self.node(run)
        hits = truth == 1
        if hits.any():
            return _fired(run, hits)
        whole = len(truth) == 1
        if np.isnan(truth).any():
            return Verdict(UNKNOWN, reason=run.reason(), whole=whole)
        return Verdict(QUIET, whole=whole)


def _fired(run: Run, hits: NDArray[np.bool_]) -> Verdict:
    whole = len(hits) == 1
    if whole and run.inner:
        # Of several conditions over columns, the one that holds in most of them led to this.
        hits = max((inner == 1 for inner in run.inner), key=np.count_nonzero)
    columns = tuple(int(c) for c in np.flatnonzero(hits))
    shown = columns[0] if columns else 0
    evidence = {
        text: float(values[shown] if shown < len(values) else values[0])
        for text, values in run.terms
    }
    return Verdict(FIRED, columns, evidence, whole=whole)
