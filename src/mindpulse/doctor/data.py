"""Is the data what the model wants? Checks of batches, each array by itself and all together."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from mindpulse.doctor.checked import checked
from mindpulse.doctor.data_arrays import Column, columns_of
from mindpulse.doctor.data_mask import check_masks
from mindpulse.doctor.data_values import IGNORED, check_column
from mindpulse.doctor.result import Result
from mindpulse.doctor.rows import shown

SHAPES, TRUNCATION, REPEAT = "data.shapes", "data.truncation", "data.repeat"
Expected = Mapping[str, str | Sequence[int | None]]
MOST_BATCHES = 16
FEWEST_ROWS = 8  # of which all are full, before that is called truncation


def check_batch(
    batch: object,
    *,
    vocab_size: int | None = None,
    num_labels: int | None = None,
    causal: bool | None = None,
    expected: Expected | None = None,
    pad_id: int | None = None,
) -> list[Result]:
    """What is wrong with one batch.

    Args:
        batch: arrays or tensors: a mapping by name, a tuple, or one array.
        vocab_size: ids must lie below it.
        num_labels: labels must lie below it; -100 is ignored by the loss and always allowed.
        causal: whether the mask must hide later tokens; None where that is not known.
        expected: name -> type ("int32") or shape ((None, 128)), as the model wants it.
        pad_id: the id of the padding token.

    Raises:
        UsageError: something in the batch is no array.

    Example:
        >>> results = check_batch({"input_ids": np.array([[5, 900]])}, vocab_size=100)
        >>> [(r.finding, r.evidence()) for r in results if r.finding == "data_ids_above"]
        [('data_ids_above', 'input_ids: 1 id(s) from 100 up, the largest 900')]
    """
    columns = columns_of(batch)
    if not columns or all(column.array.size == 0 for column in columns):
        return [Result(SHAPES, "problem", "data_empty", weight=0.9)]
    found = []
    for column in columns:
        found += check_column(column, vocab_size, num_labels)
    found += check_masks(columns, causal, pad_id)
    found += _expected(columns, expected or {})
    if found:
        return found
    values = {"arrays": shown([f"{c.name} {c.dtype} {c.array.shape}" for c in columns])}
    return [Result(SHAPES, "ok", "data_fine", values)]


def check_batches(
    batches: Iterable[object],
    *,
    most: int = MOST_BATCHES,
    vocab_size: int | None = None,
    num_labels: int | None = None,
    causal: bool | None = None,
    expected: Expected | None = None,
    pad_id: int | None = None,
) -> list[Result]:
    """The first batches one by one, and against each other; what is alike is told once."""
    look = partial(
        check_batch, vocab_size=vocab_size, num_labels=num_labels, causal=causal,
        expected=expected, pad_id=pad_id,
    )  # fmt: skip
    found: dict[tuple[str, object], Result] = {}
    seen: list[list[Column]] = []
    for batch in itertools.islice(batches, most):
        results = checked(SHAPES, partial(look, batch))
        failed = any(result.finding == "check_failed" for result in results)
        if not failed:
            seen.append(columns_of(batch))
            results += _repeated(seen)
        for result in results:
            if result.status != "ok":
                found.setdefault((result.finding, result.values.get("name")), result)
        if failed:
            break
    if not seen and not found:
        return [Result(SHAPES, "problem", "data_none", weight=0.9)]
    together = [*_shapes(seen), *_truncated(seen, causal)]
    results = [*found.values(), *together]
    values = {"count": len(seen), "arrays": _described(seen)}
    return results or [Result(SHAPES, "ok", "data_all_fine", values)]


def _described(seen: Sequence[Sequence[Column]]) -> str:
    first = seen[0] if seen else []
    return shown([f"{c.name} {c.dtype} {c.array.shape}" for c in first])


def _expected(columns: Sequence[Column], expected: Expected) -> list[Result]:
    """Types and shapes that the model's description wants."""
    by_name = {column.name: column for column in columns}
    found = []
    for name, wanted in expected.items():
        values: dict[str, object] = {"name": name, "wanted": str(wanted)}
        if name not in by_name:
            values["names"] = shown(list(by_name))
            found.append(Result("data.expected", "problem", "data_missing", values, weight=0.8))
            continue
        column = by_name[name]
        if isinstance(wanted, str):
            fits, values["there"] = column.dtype == wanted, column.dtype
        else:
            shape = column.array.shape
            fits = len(shape) == len(wanted) and all(
                w is None or w == s for w, s in zip(wanted, shape, strict=True)
            )
            values["there"] = str(shape)
        if not fits:
            found.append(Result("data.expected", "problem", "data_unexpected", values, weight=0.8))
    return found


def _repeated(seen: Sequence[Sequence[Column]]) -> list[Result]:
    """Whether the last batch is the one before it once more."""
    if len(seen) < 2:
        return []
    first, second = seen[-2], seen[-1]
    same = len(first) == len(second) and all(
        a.array.shape == b.array.shape and np.array_equal(a.array, b.array)
        for a, b in zip(first, second, strict=True)
    )
    values = {"first": len(seen) - 1, "second": len(seen)}
    return [Result(REPEAT, "problem", "data_repeated", values, weight=0.6)] if same else []


def _shapes(seen: Sequence[Sequence[Column]]) -> list[Result]:
    """Arrays whose shape differs between batches: each new one is compiled anew in graph mode."""
    shapes: dict[str, dict[tuple[int, ...], int]] = {}
    for number, columns in enumerate(seen, 1):
        for column in columns:
            shapes.setdefault(column.name, {}).setdefault(column.array.shape, number)
    found = []
    for name, different in shapes.items():
        if len(different) > 1:
            values = {"name": name, "count": len(different)}
            values["shapes"] = shown([f"{s} (batch {n})" for s, n in different.items()])
            last_only = len(different) == 2 and max(different.values()) == len(seen) > 1
            weight = 0.35 if last_only else 0.6
            found.append(Result(SHAPES, "problem", "data_shapes", values, weight=weight))
    return found


def _truncated(seen: Sequence[Sequence[Column]], causal: bool | None) -> list[Result]:
    """Whether every sequence is exactly as long as the table: longer ones were cut then.

    Packed data of a causal model is always full, and no sign of anything.
    """
    if causal:
        return []
    lengths = [row for columns in seen for row in _lengths(columns)]
    full = [width for length, width in lengths if length == width]
    if len(lengths) < FEWEST_ROWS or len(full) < len(lengths):
        return []
    values = {"rows": len(full), "length": max(full)}
    return [Result(TRUNCATION, "problem", "data_truncated", values, weight=0.4)]


def _lengths(columns: Sequence[Column]) -> list[tuple[int, int]]:
    """(length, width) of each sequence of a batch, by its padding mask."""
    ids = next((c.array for c in columns if c.role == "ids" and c.array.ndim == 2), None)
    if ids is None:
        return []
    mask = next((c.array for c in columns if c.role == "mask" and c.array.shape == ids.shape), None)
    if mask is None:
        return []
    return [(int(np.count_nonzero(row)), ids.shape[1]) for row in mask]


__all__ = ["IGNORED", "check_batch", "check_batches"]
