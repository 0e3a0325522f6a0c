"""One value for each of many tensors: gradients, weights, moments.

Small tensors of equal size are stacked and measured together, one row each, so that a non-finite
value stays in its row. Large ones are measured one by one, as a matrix whose rows are combined.

Over many tensors goes `map`, not a loop: the graph compiler nests the rounds of a loop into each
other, and refuses about 500 of them; 200 take nine times as long to compile.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mindspore as ms
from mindspore import Tensor, ops

from mindpulse.mindspore.measures.reduce import (
    indicator,
    keep_nan,
    max_last,
    mean_last,
    require,
    sum_last,
)

STACKED_UP_TO = 4096  # elements: copying more costs as much as the operator that it saves
STACKED_FROM = 4  # tensors of one size
LONGEST_SUM = 65536  # elements that L2Loss adds up on the CPU with an error below 2e-5
_COLUMNS = 2048
_ROUNDS = 32  # of a loop in the graph


@dataclass(frozen=True, slots=True)
class Layout:
    """How P tensors are measured.

    Attributes:
        stacks: numbers of the tensors of one size, measured together.
        columns: (P,) columns of the matrix that a tensor is taken as; 0 if it is stacked.
        order: place of each tensor in (all stacks, all P); None if nothing is stacked.
    """

    stacks: tuple[tuple[int, ...], ...]
    columns: tuple[int, ...]
    order: Any


def layout(shapes: Sequence[tuple[int, ...]]) -> Layout:
    """Which tensors of these shapes are stacked."""
    sizes = [math.prod(shape) for shape in shapes]
    by_size: dict[int, list[int]] = {}
    for number, size in enumerate(sizes):
        by_size.setdefault(size, []).append(number)
    stacks = tuple(
        tuple(numbers)
        for size, numbers in by_size.items()
        if 0 < size <= STACKED_UP_TO and len(numbers) >= STACKED_FROM
    )
    places = {number: place for place, number in enumerate(itertools.chain(*stacks))}
    columns = tuple(0 if n in places else _columns(size) for n, size in enumerate(sizes))
    order = [places.get(number, len(places) + number) for number in range(len(sizes))]
    return Layout(stacks, columns, Tensor(order, ms.int32) if stacks else None)


def half_squares(shapes: Sequence[tuple[int, ...]]) -> Callable[[Any], Any]:
    """The function f(tensors) -> (P,), sum(x ** 2) / 2 of each of P tensors of any float dtype."""
    plan = layout(shapes)
    limit = LONGEST_SUM if ms.get_context("device_target") == "CPU" else math.inf
    # Columns where it is to be taken as a matrix, -1 where in one piece, 0 where it is stacked.
    ways = tuple(
        columns if math.prod(shape) > limit else -min(columns, 1)
        for shape, columns in zip(shapes, plan.columns, strict=True)
    )
    half_square, zero = squared_norm_half(), Tensor(0.0, ms.float32)

    def of_one(x: Any, way: int) -> Any:
        if way == 0:
            return zero
        if way < 0:
            return half_square(x.astype(ms.float32))
        return _half_square_by_row(x.astype(ms.float32).reshape(-1, way))

    def of_rows(x: Any) -> Any:
        return sum_last(x * x) * 0.5

    return _over(plan, ways, of_one, of_rows)


def details(shapes: Sequence[tuple[int, ...]], wanted: tuple[str, ...]) -> Callable[[Any], Any]:
    """The function f(gradients) -> (len(wanted), P).

    Raises:
        UsageError: an unknown tag.
    """
    require(wanted, _PARTS)
    plan = layout(shapes)
    measures = tuple(_detail(plan, *_PARTS[tag]) for tag in wanted)

    def measure(gradients: Any) -> Any:
        found: tuple[Any, ...] = ()
        for one in measures:
            found = (*found, one(gradients))
        return ops.stack(found)

    return measure


def squared_norm_half() -> Any:
    """The operator that gives sum(x ** 2) / 2 in one pass.

    Measured on the CPU: one pass costs a sixth of square, then sum. There it adds up in float32 one
    by one: 1e-5 off at 65 thousand elements, 1e-3 at two million (docs/experiments.md).
    """
    return ops.L2Loss()


def _half_square_by_row(x: Any) -> Any:
    """One pass too, and exact to 1e-6 at any size: the distances of the rows to a row of zeros."""
    norms = ops.cdist(x, ops.zeros((1, x.shape[1]), ms.float32))
    return ops.matmul(norms.reshape(1, -1), norms).reshape(()) * 0.5


def _detail(
    plan: Layout, of_rows: Callable[[Any], Any], combine: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    zero = Tensor(0.0, ms.float32)

    def of_one(x: Any, columns: int) -> Any:
        if columns == 0:
            return zero
        return combine(of_rows(x.astype(ms.float32).reshape(-1, columns)))

    return _over(plan, plan.columns, of_one, of_rows)


def _over(
    plan: Layout,
    ways: tuple[int, ...],
    of_one: Callable[[Any, int], Any],
    of_rows: Callable[[Any], Any],
) -> Callable[[Any], Any]:
    """The function f(tensors) -> (P,): `of_rows` of each stack, `of_one` of the other tensors."""
    order = plan.order
    stacks = tuple(
        tuple(stack[start : start + _ROUNDS] for start in range(0, len(stack), _ROUNDS))
        for stack in plan.stacks
    )

    def measure(tensors: Any) -> Any:
        singles = ops.stack(tuple(map(of_one, tensors, ways)))
        if order is None:
            return singles
        parts: tuple[Any, ...] = ()
        for stack in stacks:
            rows: tuple[Any, ...] = ()
            for numbers in stack:
                rows = (*rows, *_flat(tensors, numbers))
            parts = (*parts, of_rows(ops.stack(rows)))
        return ops.gather(ops.concat((*parts, singles)), order, 0)

    return measure


def _flat(tensors: Any, numbers: tuple[int, ...]) -> Any:
    rows: tuple[Any, ...] = ()
    for number in numbers:
        rows = (*rows, tensors[number].astype(ms.float32).reshape(-1))
    return rows


def _columns(size: int) -> int:
    """The largest divisor of `size` up to `_COLUMNS`."""
    return next(columns for columns in range(_COLUMNS, 0, -1) if size % columns == 0)


def _max_abs(x: Any) -> Any:
    size = ops.abs(x)
    return keep_nan(max_last(size), sum_last(size))


def _largest(rows: Any) -> Any:
    return keep_nan(max_last(rows), rows.sum())


def _zero_share(x: Any) -> Any:
    return mean_last(indicator(x == 0.0))


def _mean(rows: Any) -> Any:
    return rows.mean()


def _nonfinite(x: Any) -> Any:
    return sum_last(indicator(ops.logical_not(ops.isfinite(x))))


def _total(rows: Any) -> Any:
    return rows.sum()


_PARTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "grad_max_abs": (_max_abs, _largest),
    "grad_zero_share": (_zero_share, _mean),
    "grad_nonfinite": (_nonfinite, _total),
}
