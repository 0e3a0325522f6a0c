"""The small functions that a compiled expression is made of, with truth in three values.

A truth value is 1 (true), 0 (false) or NaN (unknown), so that NumPy carries all columns at once.
`and` is false as soon as one side is, `or` true as soon as one side is; else unknown wins.

At one step a value is (W columns,), over many it is (S steps, W columns).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from mindpulse.rules.functions import ColumnFunction, Reducer, known_mean
from mindpulse.rules.lanes import Values
from mindpulse.rules.running import UNKNOWN_VALUE, Node, RunLike, WindowRef

Operation = Callable[[Any, Any], Any]


def constant(value: float) -> Node:
    """A number."""
    held = np.array([value])
    return lambda run: held


def step() -> Node:
    """The step at which the rule is judged."""
    return lambda run: run.step()


def apply(operation: Callable[[Any], Any], inner: Node) -> Node:
    """An operation on one side."""
    return lambda run: operation(inner(run))


def both(operation: Operation, left: Node, right: Node) -> Node:
    """An operation on two sides, column by column; unknown if their widths do not fit."""

    def node(run: RunLike) -> Values:
        a, b = left(run), right(run)
        widths = a.shape[-1], b.shape[-1]
        if widths[0] != widths[1] and 1 not in widths:
            run.misfit(f"a series of {widths[0]} columns meets one of {widths[1]}")
            return UNKNOWN_VALUE
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
        node = _unless(lambda truth: ~truth.any(axis=-1), node, part, logical_and)
    return node


def disjunction(parts: Sequence[Node]) -> Node:
    """Any of the parts; once it is true in every column the rest is not looked at."""
    node = parts[0]
    for part in parts[1:]:
        node = _unless(lambda truth: (truth == 1).all(axis=-1), node, part, logical_or)
    return node


def _unless(
    settled: Callable[[Values], Any], left: Node, right: Node, operation: Operation
) -> Node:
    def node(run: RunLike) -> Values:
        truth = left(run)
        done = settled(truth)
        if done.ndim == 0:  # one step, or all of them alike
            return truth if done else both(operation, lambda _: truth, right)(run)
        if done.all():
            return truth
        some = both(operation, lambda _: truth[~done], right)(run.where(~done))
        shape = len(truth), max(truth.shape[-1], some.shape[-1])
        result = np.broadcast_to(truth, shape).copy()
        result[~done] = some
        return result

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


def known(first: Node, second: Node) -> Node:
    """The first number, or the second where it is unknown; of series with one column each."""

    def node(run: RunLike) -> Values:
        with run.tentatively():
            preferred = first(run)
        with nullcontext() if np.isnan(preferred).any() else run.tentatively():
            other = second(run)
        if max(preferred.shape[-1], other.shape[-1]) > 1:
            run.misfit("known() is for series of one column: reduce the columns first")
            return UNKNOWN_VALUE
        return np.where(np.isnan(preferred), other, preferred)

    return node


def age(tag: str, text: str) -> Node:
    """Steps since the newest row of a series."""
    return lambda run: run.age(tag, text)


def reduce(reducer: Reducer, reference: WindowRef, numbers: Sequence[float], text: str) -> Node:
    """A window reduced over time; its value is kept as evidence under `text`."""

    def node(run: RunLike) -> Values:
        return run.reduced(reference, lambda v, s: reducer(v, s, *numbers), text)

    return node


def when(guard: Node, inner: Node, text: str) -> Node:
    """The number where the guard holds, unknown where it does not."""

    def node(run: RunLike) -> Values:
        truth = guard(run)
        if not (truth == 1).any():
            run.withheld(f"the condition of {text} does not hold")
        return both(_where_true, lambda _: truth, inner)(run)

    return node


def _where_true(truth: Values, number: Values) -> Values:
    return np.where(truth == 1, number, np.nan)


def over_columns(function: ColumnFunction, inner: Node, text: str) -> Node:
    """All columns reduced to one value; the columns of an inner condition are remembered."""

    def node(run: RunLike) -> Values:
        values = inner(run)
        result = function.call(values)[..., None]
        if function.truth:
            run.remember(values)
        run.note(text, result)
        return result

    return node


def of_layer(place: int, tags: tuple[str, ...], inner: Node, text: str) -> Node:
    """The mean of the columns of the first (0) or last (-1) layer."""

    def node(run: RunLike) -> Values:
        values = inner(run)
        layers = run.layers(tags, values.shape[-1])
        if len(layers) < 2:
            run.withheld(f"{text}: the columns name no two layers")
            return UNKNOWN_VALUE
        some = np.ascontiguousarray(values[..., list(layers.values())[place]])
        result = known_mean(some)[..., None]
        run.note(text, result)
        return result

    return node
