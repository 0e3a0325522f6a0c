"""The small functions that a compiled expression is made of, with truth in three values.

A truth value is 1 (true), 0 (false) or NaN (unknown), so that NumPy carries all columns at once.
`and` is false as soon as one side is, `or` true as soon as one side is; else unknown wins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mindpulse.rules.expression import Node, Run, WindowRef
from mindpulse.rules.functions import ColumnFunction, Reducer, Values

Operation = Callable[[Any, Any], Any]

UNKNOWN = np.full(1, np.nan)
UNKNOWN.setflags(write=False)


def constant(value: float) -> Node:
    """A number."""
    held = np.array([value])
    return lambda run: held


def step() -> Node:
    """The step at which the rule is judged."""
    return lambda run: np.array([float(run.view.step)])


def apply(operation: Callable[[Any], Any], inner: Node) -> Node:
    """An operation on one side."""
    return lambda run: operation(inner(run))


def both(operation: Operation, left: Node, right: Node) -> Node:
    """An operation on two sides, column by column; unknown if their widths do not fit."""

    def node(run: Run) -> Values:
        a, b = left(run), right(run)
        if len(a) != len(b) and 1 not in (len(a), len(b)):
            run.misfit = f"a series of {len(a)} columns meets one of {len(b)}"
            return UNKNOWN
        return np.asarray(operation(a, b))

    return node


def chain(operation: Operation, parts: Sequence[Node]) -> Node:
    """The operation from left to right over all parts."""
    node = parts[0]
    for part in parts[1:]:
        node = both(operation, node, part)
    return node


def conjunction(parts: Sequence[Node]) -> Node:
    """All of the parts; once it is false in every column the rest is not looked at."""
    node = parts[0]
    for part in parts[1:]:
        node = _unless(lambda truth: not truth.any(), node, part, logical_and)
    return node


def disjunction(parts: Sequence[Node]) -> Node:
    """Any of the parts; once it is true in every column the rest is not looked at."""
    node = parts[0]
    for part in parts[1:]:
        node = _unless(lambda truth: bool((truth == 1).all()), node, part, logical_or)
    return node


def _unless(
    settled: Callable[[Values], bool], left: Node, right: Node, operation: Operation
) -> Node:
    def node(run: Run) -> Values:
        truth = left(run)
        return truth if settled(truth) else both(operation, lambda _: truth, right)(run)

    return node


def comparing(operation: Operation) -> Operation:
    """The comparison, unknown where a side is NaN."""

    def compare(a: Values, b: Values) -> Values:
        return np.where(np.isnan(a) | np.isnan(b), np.nan, operation(a, b))

    return compare


def logical_and(a: Values, b: Values) -> Values:
    """Both."""
    return np.where((a == 0) | (b == 0), 0.0, np.minimum(a, b))


def logical_or(a: Values, b: Values) -> Values:
    """At least one."""
    return np.where((a == 1) | (b == 1), 1.0, np.maximum(a, b))


def logical_not(a: Values) -> Values:
    """The opposite; unknown stays unknown."""
    return 1.0 - a


def reduce(
    reducer: Reducer, reference: WindowRef, numbers: Sequence[float], fewest: int, text: str
) -> Node:
    """A window reduced over time; its value is kept as evidence under `text`."""

    def node(run: Run) -> Values:
        found = reference.fetch(run, fewest)
        if found is None:
            return UNKNOWN
        steps, values = found
        result = reducer(values, steps, *numbers)
        run.terms.append((text, result))
        return result

    return node


def over_columns(function: ColumnFunction, inner: Node, text: str) -> Node:
    """All columns reduced to one value; the columns of an inner condition are remembered."""

    def node(run: Run) -> Values:
        values = inner(run)
        if function.truth:
            run.inner.append(values)
        result = np.array([function.call(values)])
        run.terms.append((text, result))
        return result

    return node
