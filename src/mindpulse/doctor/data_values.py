"""One array by itself: its type, and whether its values can be what its name says."""

from __future__ import annotations

import numpy as np

from mindpulse.doctor.data_arrays import Column
from mindpulse.doctor.result import Result

IDS, LABELS, VALUES, DTYPE = "data.ids", "data.labels", "data.values", "data.dtype"
IGNORED = -100  # the label that losses leave out
FEWEST = 16  # values, before that all are alike says something


def check_column(column: Column, vocab_size: int | None, num_labels: int | None) -> list[Result]:
    """All that can be said of one array."""
    found = _dtype(column)
    if column.array.size == 0:
        values = {"name": column.name, "shape": str(column.array.shape)}
        return [*found, Result("data.shapes", "problem", "data_empty_array", values, weight=0.8)]
    if column.role == "ids":
        found += _ids(column, vocab_size)
    elif column.role == "labels":
        found += _labels(column, num_labels, vocab_size)
    if column.array.dtype.kind == "f":
        found += _values(column)
    return found


def _dtype(column: Column) -> list[Result]:
    """Types of 64 bits, which devices convert or refuse."""
    values = {"name": column.name, "dtype": column.dtype}
    if column.dtype in ("int64", "uint64"):
        return [Result(DTYPE, "problem", "data_int64", values, weight=0.5)]
    if column.dtype == "float64":
        return [Result(DTYPE, "problem", "data_float64", values, weight=0.6)]
    return []


def _ids(column: Column, vocab_size: int | None) -> list[Result]:
    array, values = column.array, {"name": column.name, "dtype": column.dtype}
    if not column.whole:
        if np.array_equal(array, np.round(np.nan_to_num(array))) and array.ndim == 2:
            return [Result(IDS, "problem", "data_ids_float", values, weight=0.8)]
        return []  # a picture or a feature that is called input
    found = []
    below = array < 0
    if below.any():
        told = values | {"count": int(below.sum()), "least": int(array.min())}
        found.append(Result(IDS, "problem", "data_ids_negative", told, weight=0.9))
    if vocab_size is not None and (array >= vocab_size).any():
        told = values | {"count": int((array >= vocab_size).sum()), "most": int(array.max())}
        told["size"] = vocab_size
        found.append(Result(IDS, "problem", "data_ids_above", told, weight=0.95))
    if array.size >= FEWEST and array.min() == array.max():
        told = values | {"value": int(array.flat[0])}
        found.append(Result(IDS, "problem", "data_ids_constant", told, weight=0.85))
    return found


def _labels(column: Column, num_labels: int | None, vocab_size: int | None) -> list[Result]:
    array, values = column.array, {"name": column.name, "dtype": column.dtype}
    if not column.whole:
        finite = array[np.isfinite(array)] if array.dtype.kind == "f" else np.empty(0)
        classes = num_labels is not None or (finite.size > 0 and bool((finite % 1 == 0).all()))
        if column.floating and classes and np.unique(finite).size > 1:
            return [Result(LABELS, "problem", "data_labels_float", values, weight=0.5)]
        return []
    found = []
    kept = array[array != IGNORED]
    if not kept.size:
        return [Result(LABELS, "problem", "data_labels_ignored", values, weight=0.85)]
    if (kept < 0).any():
        told = values | {"count": int((kept < 0).sum()), "least": int(kept.min())}
        found.append(Result(LABELS, "problem", "data_labels_negative", told, weight=0.85))
    limit = num_labels if num_labels is not None else (vocab_size if array.ndim == 2 else None)
    if limit is not None and (kept >= limit).any():
        told = values | {"count": int((kept >= limit).sum()), "most": int(kept.max())}
        told["size"] = limit
        found.append(Result(LABELS, "problem", "data_labels_above", told, weight=0.95))
    if kept.size >= FEWEST and kept.min() == kept.max():
        told = values | {"value": int(kept.flat[0])}
        found.append(Result(LABELS, "problem", "data_labels_constant", told, weight=0.5))
    return found


def _values(column: Column) -> list[Result]:
    """NaN, infinities, and arrays in which every value is the same."""
    array = column.array
    if column.role == "mask":
        return []
    bad = ~np.isfinite(array)
    values: dict[str, object] = {"name": column.name, "count": int(bad.sum()), "of": array.size}
    if bad.any():
        values["first"] = str(tuple(int(i) for i in np.argwhere(bad)[0]))
        return [Result(VALUES, "problem", "data_not_finite", values, weight=0.95)]
    if array.size >= FEWEST and array.min() == array.max():
        values["value"] = f"{float(array.flat[0]):g}"
        return [Result(VALUES, "problem", "data_constant", values, weight=0.6)]
    return []
