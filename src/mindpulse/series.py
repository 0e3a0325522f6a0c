"""The vocabulary: what a series is, and the rows that it is made of.

Everything measured is a row of fixed width: step, wall time, W values. A scalar has W = 1, a
gradient norm per parameter W = number of parameters, an attention entropy W = layers x heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.errors import UsageError

REDUCTIONS = ("mean", "max", "min", "sum", "none")
DTYPES = ("float64", "float32")
MAX_TAG_BYTES = 200
MIN_STEP, MAX_STEP = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class SeriesSpec:
    """Describes one series: its name, and what its columns mean.

    Args:
        tag: the name, the same everywhere (file, rule, metric); 1 to 200 bytes of UTF-8.
        plugin: the kind of quantity, free text: "scalar", "vector", "histogram", "map".
        unit: unit of the values, "" for a pure number ("s", "nats", "bytes").
        axes: names of the axes of a column label, for example ("layer", "head").
        columns: one tuple of labels, one label per axis, for each column; () for a scalar.
        dtype: "float64" or "float32", how values are stored.
        reduction: how ranks are merged: mean, max, min, sum, none.

    Raises:
        UsageError: a field is empty, too long, or the labels do not fit the axes.

    Example:
        >>> SeriesSpec("attn_focus", axes=("layer", "head"), columns=(("0", "0"), ("0", "1"))).width
        2
    """

    tag: str
    plugin: str = "scalar"
    unit: str = ""
    axes: tuple[str, ...] = ()
    columns: tuple[tuple[str, ...], ...] = ()
    dtype: str = "float64"
    reduction: str = "mean"

    def __post_init__(self) -> None:
        check_tag(self.tag)
        if self.dtype not in DTYPES:
            raise UsageError(f"dtype {self.dtype!r} of {self.tag!r}: use one of {DTYPES}")
        if self.reduction not in REDUCTIONS:
            raise UsageError(f"reduction {self.reduction!r} of {self.tag!r}: use {REDUCTIONS}")
        if bool(self.axes) != bool(self.columns):
            raise UsageError(f"{self.tag!r}: axes {self.axes!r} and columns go together")
        for labels in self.columns:
            if len(labels) != len(self.axes):
                raise UsageError(
                    f"{self.tag!r}: column {labels!r} needs one label for each of {self.axes!r}"
                )

    @property
    def width(self) -> int:
        """Number of values in a row (W)."""
        return max(1, len(self.columns))

    def pick(self, columns: Sequence[int]) -> SeriesSpec:
        """The description of the series with some of its columns, in that order.

        Raises:
            UsageError: none is named, or there is no such column.
        """
        if isinstance(columns, str | int | np.integer):
            raise UsageError(f"columns {columns!r} of {self.tag!r}: give a list of positions")
        wrong = [index for index in columns if not self._has_column(index)]
        if wrong or not len(columns):
            raise UsageError(
                f"column {repr(wrong[0]) if wrong else '(none)'} of {self.tag!r}: "
                f"it has columns 0 to {self.width - 1}{self._place_told(wrong)}"
            )
        if not self.columns:
            return self
        return replace(self, columns=tuple(self.columns[index] for index in columns))

    def _has_column(self, index: Any) -> bool:
        return isinstance(index, int | np.integer) and 0 <= int(index) < self.width

    def _place_told(self, wrong: Sequence[Any]) -> str:
        """The position of a column that was asked for by its name, "" where it has none."""
        names = [self.column_name(index) for index in range(len(self.columns))]
        return f"; {wrong[0]!r} is {names.index(wrong[0])}" if wrong and wrong[0] in names else ""

    def column_name(self, index: int) -> str:
        """The column as text, for example "layer=3 head=1"; "" for a scalar."""
        if not self.columns:
            return ""
        return " ".join(f"{a}={v}" for a, v in zip(self.axes, self.columns[index], strict=True))


def check_tag(tag: str) -> None:
    """Refuses a tag that no file name could hold.

    Raises:
        UsageError: not a string, empty, over 200 bytes, or not encodable.
    """
    if not isinstance(tag, str) or not tag:
        raise UsageError(f"tag {tag!r}: use a non-empty string")
    try:
        size = len(tag.encode())
    except UnicodeEncodeError as error:
        raise UsageError(f"tag {tag!r} is not valid Unicode: {error}") from None
    if size > MAX_TAG_BYTES:
        raise UsageError(f"tag {tag[:40]!r}... has {size} bytes; at most {MAX_TAG_BYTES} are kept")


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A block of T rows of one series.

    Attributes:
        steps: (T,) int64.
        wall_times: (T,) float64, seconds since the epoch, UTC.
        values: (T, W), float64 or float32.
    """

    steps: NDArray[np.int64]
    wall_times: NDArray[np.float64]
    values: NDArray[Any]

    def __len__(self) -> int:
        return len(self.steps)

    @classmethod
    def one(cls, step: int, wall_time: float, values: float | Sequence[float]) -> Rows:
        """A block with a single row."""
        return cls(
            np.array([step], np.int64),
            np.array([wall_time], np.float64),
            np.atleast_1d(np.asarray(values, np.float64))[None, :],
        )

    @classmethod
    def empty(cls, width: int, dtype: str = "float64") -> Rows:
        """A block with no row."""
        return cls(np.empty(0, np.int64), np.empty(0, np.float64), np.empty((0, width), dtype))

    @classmethod
    def concat(cls, blocks: Sequence[Rows]) -> Rows:
        """The blocks one after the other; at least one, all of the same width."""
        if len(blocks) == 1:
            return blocks[0]
        return cls(
            np.concatenate([b.steps for b in blocks]),
            np.concatenate([b.wall_times for b in blocks]),
            np.concatenate([b.values for b in blocks]),
        )

    def __getitem__(self, index: slice | NDArray[Any]) -> Rows:
        """The rows that a slice, a mask or an array of positions names."""
        return Rows(self.steps[index], self.wall_times[index], self.values[index])


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """A series as read: its description and all its rows."""

    spec: SeriesSpec
    rows: Rows

    @property
    def steps(self) -> NDArray[np.int64]:
        """(T,) int64."""
        return self.rows.steps

    @property
    def wall_times(self) -> NDArray[np.float64]:
        """(T,) float64, seconds since the epoch, UTC."""
        return self.rows.wall_times

    @property
    def values(self) -> NDArray[Any]:
        """(T,) for a scalar series, else (T, W)."""
        return self.rows.values if self.spec.columns else self.rows.values[:, 0]

    @property
    def labels(self) -> NDArray[np.str_]:
        """(W, axes) labels of the columns; shape (0, 0) for a scalar series."""
        if not self.spec.columns:
            return np.empty((0, 0), np.str_)
        return np.array(self.spec.columns, np.str_)

    def __len__(self) -> int:
        return len(self.rows)

    def pick(self, columns: Sequence[int] | None) -> Series:
        """The series with some of its columns, in that order; None means all.

        Raises:
            UsageError: there is no such column.
        """
        if columns is None:
            return self
        spec = self.spec.pick(columns)
        values = self.rows.values[:, list(columns)]
        return Series(spec, Rows(self.steps, self.wall_times, values))
