"""An expression over windows, for example `std(attn_focus[100]) < 0.01`: checked, then evaluated.

`compiler` turns the text into small functions once; here is what they need at each step, and what
comes out: fired, quiet or unknown, with the columns and the evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mindpulse.rules.running import Node, ViewLike, WindowRef
from mindpulse.rules.single import Run

FIRED, QUIET, UNKNOWN = "fired", "quiet", "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an expression says at one step.

    Attributes:
        state: "fired", "quiet" or "unknown".
        columns: the columns that fired; if the expression ends as one number by way of
            any_column, share_columns..., those for which the inner condition holds; () if it is
            about no column, as with mean_columns.
        evidence: value of each term, in the first of these columns; empty unless fired.
        reason: why it is unknown, "" otherwise.
        whole: the condition is one truth value, not one for each column.
    """

    state: str
    columns: tuple[int, ...] = ()
    evidence: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    whole: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A compiled expression.

    Attributes:
        text: as it was written.
        needs: how many rows it looks back in each series that is measured, by tag.
        windows: what it reads, derived series included.
        labelled: it asks what the columns are.
        work: rows that one evaluation goes through.
    """

    text: str
    needs: Mapping[str, int]
    node: Node
    windows: tuple[WindowRef, ...] = ()
    labelled: bool = False
    work: int = 0

    @property
    def series(self) -> tuple[str, ...]:
        """The measured series that it reads."""
        return tuple(self.needs)

    def most(self, tag: str) -> int:
        """How far its windows look back in a series, in rows or in steps."""
        return max(window.end for window in self.windows if window.tag == tag)

    def evaluate(self, view: ViewLike) -> Verdict:
        """The verdict at the view's step; never raises for whatever the rows hold.

        Example:
            >>> from mindpulse.rules.compiler import compile_expression
            >>> from mindpulse.testing import view
            >>> compile_expression("last(grad_norm) > 50").evaluate(view(grad_norm=[1.0, 70.0]))
            Verdict(state='fired', columns=(0,), evidence={'last(grad_norm)': 70.0}, reason='', \
whole=True)
        """
        run = Run(view, self)
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
    elif whole and any(len(values) > 1 for _, values in run.terms):
        hits = np.zeros(1, np.bool_)  # numbers of many columns became one: it is none of them
    columns = tuple(int(c) for c in np.flatnonzero(hits))
    shown = columns[0] if columns else 0
    evidence = {
        text: float(values[shown] if shown < len(values) else values[0])
        for text, values in run.terms
    }
    return Verdict(FIRED, columns, evidence, whole=whole)
