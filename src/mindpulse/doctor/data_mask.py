"""The mask of a batch: its type and shape, and whether it hides what it should."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mindpulse.doctor.data_arrays import Array, Column
from mindpulse.doctor.result import Result

MASK, PADDING = "data.mask", "data.padding"
LARGE = 1e3  # an additive mask hides by less than minus this
FEWEST_KEYS = 4


def check_masks(columns: Sequence[Column], causal: bool | None, pad_id: int | None) -> list[Result]:
    """Every mask against the ids, and the padding of the batch."""
    ids = next((c for c in columns if c.role == "ids" and c.whole and c.array.ndim == 2), None)
    found = []
    for column in columns:
        if column.role == "mask" and column.array.size:
            found += _mask(column, None if ids is None else ids.array, causal, pad_id)
    if not any(result.finding == "data_all_padding" for result in found):
        found += _padding(ids, pad_id)
    return found


def _mask(
    column: Column, ids: Array | None, causal: bool | None, pad_id: int | None
) -> list[Result]:
    """One mask."""
    values: dict[str, object] = {"name": column.name, "dtype": column.dtype}
    values["shape"] = str(column.array.shape)
    found = []
    if column.dtype in ("float32", "float64"):
        found.append(Result(MASK, "problem", "data_mask_float32", values, weight=0.4))
    if ids is not None and not _fits(column.array.shape, ids.shape):
        told = values | {"ids": str(ids.shape)}
        return [*found, Result(MASK, "problem", "data_mask_shape", told, weight=0.8)]
    array = column.array
    if array.dtype.kind == "f" and np.isnan(array).any():
        return [*found, Result(MASK, "problem", "data_mask_nan", values, weight=0.9)]
    additive = array.dtype.kind == "f" and bool(array.min() < -LARGE)
    if additive and np.isneginf(array).any():
        found.append(Result(MASK, "problem", "data_mask_infinite", values, weight=0.4))
    seen = array > -LARGE if additive else array != 0
    return found + _hides(column, seen, ids, causal, pad_id, values)


def _fits(shape: tuple[int, ...], ids: tuple[int, ...]) -> bool:
    """Whether a mask can be broadcast over (batch, head, query, key) of these ids."""
    batch, length = ids
    if len(shape) == 2:
        return shape in ((batch, length), (length, length), (1, length))
    if len(shape) == 3:
        return shape[0] in (1, batch) and shape[1] in (1, length) and shape[2] == length
    return len(shape) == 4 and shape[0] in (1, batch) and shape[2:] in ((1, length), (length,) * 2)


def _hides(
    column: Column,
    seen: Array,
    ids: Array | None,
    causal: bool | None,
    pad_id: int | None,
    values: dict[str, object],
) -> list[Result]:
    """What the mask lets through: nothing, the padding only, or later tokens."""
    if not seen.any():
        return [Result(MASK, "problem", "data_mask_zero", values, weight=0.95)]
    found = []
    square = seen.ndim >= 2 and seen.shape[-1] == seen.shape[-2] >= FEWEST_KEYS
    of_pairs = square and (seen.ndim > 2 or ids is None or seen.shape != ids.shape)
    blind = ~seen.any(axis=-1)
    if blind.any():
        told = values | {"count": int(blind.sum()), "of": int(blind.size)}
        finding = "data_mask_blind" if of_pairs else "data_all_padding"
        found.append(Result(MASK, "problem", finding, told, weight=0.7))
    if of_pairs:
        found += _order(seen, causal, values)
    elif ids is not None and seen.shape == ids.shape:
        found += _inverted(seen, ids, pad_id, values)
    extra = _odd_values(column)
    if extra:
        told = values | {"values": extra}
        found.append(Result(MASK, "problem", "data_mask_values", told, weight=0.4))
    return found


def _order(seen: Array, causal: bool | None, values: dict[str, object]) -> list[Result]:
    """Later tokens that may be seen, or earlier ones that may not, by a mask of pairs."""
    pairs = seen.reshape(-1, *seen.shape[-2:])
    later = np.triu(np.ones(pairs.shape[-2:], np.bool_), 1)
    ahead, behind = bool((pairs & later).any()), bool((pairs & later.T).any())
    if causal and ahead:
        finding = "data_mask_leaks" if behind else "data_mask_transposed"
        told = values | {"count": int((pairs & later).sum())}
        return [Result(MASK, "problem", finding, told, weight=0.9)]
    if causal is False and not ahead:
        return [Result(MASK, "problem", "data_mask_causal", values, weight=0.7)]
    return []


def _inverted(
    seen: Array, ids: Array, pad_id: int | None, values: dict[str, object]
) -> list[Result]:
    """Whether the mask is one where the padding is."""
    if seen.all():
        hidden = ids == pad_id if pad_id is not None else np.zeros_like(ids, np.bool_)
        if hidden.any():
            told = values | {"count": int(hidden.sum()), "pad": pad_id}
            return [Result(MASK, "problem", "data_mask_open", told, weight=0.6)]
        return []
    shown_ids, hidden_ids = np.unique(ids[seen]), np.unique(ids[~seen])
    only_padding = shown_ids.size == 1 and (pad_id is None or shown_ids[0] == pad_id)
    if only_padding and hidden_ids.size > 1:
        told = values | {"pad": int(shown_ids[0])}
        return [Result(MASK, "problem", "data_mask_inverted", told, weight=0.9)]
    return []


def _odd_values(column: Column) -> str:
    """Values of a mask that are neither of the two that a mask has; "" if there are none."""
    array = column.array
    if array.dtype.kind == "b":
        return ""
    known = np.unique(array)
    if known.size <= 2 and (known.size < 2 or known[0] in (0, -1) or known[0] < -LARGE):
        return ""
    return ", ".join(f"{value:g}" for value in known[:5]) + (" ..." if known.size > 5 else "")


def _padding(ids: Column | None, pad_id: int | None) -> list[Result]:
    """Sequences that are nothing but padding."""
    if ids is None or pad_id is None:
        return []
    empty = (ids.array == pad_id).all(axis=1)
    if not empty.any():
        return []
    values = {"name": ids.name, "count": int(empty.sum()), "of": len(empty), "dtype": ids.dtype}
    values["shape"] = str(ids.array.shape)
    return [Result(PADDING, "problem", "data_all_padding", values, weight=0.7)]
