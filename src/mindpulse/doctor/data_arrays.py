"""The arrays of a batch by name, and what each of them is for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mindpulse.errors import UsageError

Array = NDArray[Any]
Role = Literal["ids", "labels", "mask", "other ids", "values"]
# What columns are called, in this order: "label_mask" is a mask, "token_type_ids" no tokens.
_ROLES: tuple[tuple[str, Role], ...] = (
    (r"mask|padding", "mask"),
    (r"label|target|^y$|next_sentence|masked_lm_ids", "labels"),
    (r"type_id|segment|position|seg_id|weight", "other ids"),
    (r"id$|ids$|token|^x$|input|word", "ids"),
)
_MOST_CLASSES = 4096


@dataclass(frozen=True, slots=True)
class Column:
    """One array of a batch.

    Attributes:
        dtype: as the framework says it, which for bfloat16 is not that of the array.
    """

    name: str
    array: Array
    dtype: str
    role: Role

    @property
    def whole(self) -> bool:
        """Whole numbers."""
        return self.array.dtype.kind in "iu"

    @property
    def floating(self) -> bool:
        """Numbers with a fraction."""
        return self.array.dtype.kind == "f" or self.dtype == "bfloat16"


def columns_of(batch: object) -> list[Column]:
    """The arrays of a batch: a mapping by name, a sequence by place, or one array.

    Raises:
        UsageError: something in it is no array.
    """
    if isinstance(batch, Mapping):
        items = [(str(name), value) for name, value in batch.items()]
    elif isinstance(batch, list | tuple):
        items = [(str(place), value) for place, value in enumerate(batch)]
    else:
        items = [("0", batch)]
    arrays = [(name, *_array(name, value)) for name, value in items]
    return [
        Column(name, array, dtype, role)
        for (name, array, dtype), role in zip(arrays, _roles(arrays), strict=True)
    ]


def _array(name: str, value: Any) -> tuple[Array, str]:
    """A NumPy array and the type that the framework says. Tensors are copied."""
    told = str(getattr(value, "dtype", "")).rpartition(".")[2].lower()
    for method in ("asnumpy", "numpy"):
        if not isinstance(value, np.ndarray) and callable(getattr(value, method, None)):
            value = np.array(_as_float(value, told), copy=True)
            break
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" and told != "bfloat16":
        raise UsageError(
            f"{name}: {type(value).__name__} of type {array.dtype} is no array of numbers; give a "
            "mapping or a tuple of NumPy arrays or tensors"
        )
    return array, told or str(array.dtype)


def _as_float(value: Any, dtype: str) -> Any:
    """The array of a tensor; bfloat16, which NumPy does not have, as float32."""
    if dtype == "bfloat16" and hasattr(value, "float"):
        value = value.float()
    return value.asnumpy() if hasattr(value, "asnumpy") else value.numpy()


def _roles(arrays: Sequence[tuple[str, Array, str]]) -> list[Role]:
    """What each array is for: by its name, else by its type and shape."""
    found: list[Role] = []
    for name, array, _ in arrays:
        role = next((role for pattern, role in _ROLES if re.search(pattern, name.lower())), None)
        found.append(role or _guessed(array, found))
    return found


def _guessed(array: Array, before: Sequence[Role]) -> Role:
    """Of an array without a telling name: tables of whole numbers are ids, then labels."""
    if array.dtype.kind == "b":
        return "mask"
    if array.dtype.kind in "iu":
        if array.ndim >= 2 and array.size and set(np.unique(array).tolist()) <= {0, 1}:
            return "mask"
        return "labels" if "ids" in before or array.ndim < 2 else "ids"
    return "values"
