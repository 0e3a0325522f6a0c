"""The functions of the rule language, each a few lines of NumPy.

A *reducer* turns a window (N rows, W columns) into W numbers, over time. A *column function* turns
W numbers or truth values into one. Truth values are numbers here: 1 true, 0 false, NaN unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Steps = NDArray[np.int64]

MAD_TO_SIGMA = 1.4826
TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Reducer:
    """A function of a window.

    Attributes:
        call: (values (N, W), steps (N,), *numbers) -> (W,).
        rows: fewest rows that it needs.
        doc: its line in the documentation.
        raw: it wants non-finite values too; otherwise they are left out before `call`.
        numbers: how many plain numbers follow the window.
    """

    call: Callable[..., Values]
    rows: int
    doc: str
    raw: bool = False
    numbers: int = 0

    def __call__(self, values: Values, steps: Steps, *numbers: float) -> Values:
        """The reduced window (W,); NaN for a column without enough finite values."""
        if self.raw or np.isfinite(values).all():
            return self.call(values, steps, *numbers)
        return np.array([self._column(column, steps, numbers) for column in values.T])

    def _column(self, column: Values, steps: Steps, numbers: tuple[float, ...]) -> float:
        finite = np.isfinite(column)
        if np.count_nonzero(finite) < self.rows:
            return np.nan
        return float(self.call(column[finite][:, None], steps[finite], *numbers)[0])


def _mean(v: Values, _: Steps) -> Values:
    return np.asarray(np.add.reduce(v, axis=0) / len(v))


def _std(v: Values, _: Steps) -> Values:
    centred = v - np.add.reduce(v, axis=0) / len(v)
    return np.asarray(np.sqrt(np.add.reduce(centred * centred, axis=0) / len(v)))


def _median(v: Values, _: Steps | None = None) -> Values:
    ordered = np.sort(v, axis=0)
    middle = len(v) // 2
    if len(v) % 2:
        return np.asarray(ordered[middle])
    return np.asarray((ordered[middle - 1] + ordered[middle]) / 2)


def _mad(v: Values, _: Steps | None = None) -> Values:
    return _median(np.abs(v - _median(v)))


def _noise(v: Values, _: Steps) -> Values:
    # The difference of two neighbours has sqrt(2) times the spread of one value, and no trend.
    return np.asarray(MAD_TO_SIGMA / np.sqrt(2.0) * _median(np.abs(v[1:] - v[:-1])))


def _quantile(v: Values, _: Steps, q: float) -> Values:
    ordered = np.sort(v, axis=0)
    place = min(max(q, 0.0), 1.0) * (len(v) - 1)
    low = int(place)
    high = min(low + 1, len(v) - 1)
    return np.asarray(ordered[low] + (place - low) * (ordered[high] - ordered[low]))


def _slope(v: Values, steps: Steps) -> Values:
    x = steps - steps.mean()
    return np.asarray(x @ (v - v.mean(axis=0)) / (x @ x))


def _zscore(v: Values, _: Steps) -> Values:
    centre = _median(v[:-1])
    spread = MAD_TO_SIGMA * _mad(v[:-1])
    # A series that stood still has no spread: a thousandth of its size is taken instead.
    return np.asarray((v[-1] - centre) / np.maximum(spread, 1e-3 * np.abs(centre) + TINY))


REDUCERS: dict[str, Reducer] = {
    "last": Reducer(lambda v, _: v[-1], 1, "the newest value, as it is", raw=True),
    "first": Reducer(lambda v, _: v[0], 1, "the oldest value of the window, as it is", raw=True),
    "mean": Reducer(_mean, 1, "arithmetic mean"),
    "median": Reducer(_median, 1, "median"),
    "sum": Reducer(lambda v, _: np.add.reduce(v, axis=0), 1, "sum"),
    "min": Reducer(
        lambda v, _: np.minimum.reduce(v, axis=0),
        1,
        "smallest value; with two or more numbers instead of a window, the smaller in each column",
    ),
    "max": Reducer(
        lambda v, _: np.maximum.reduce(v, axis=0),
        1,
        "largest value; with two or more numbers instead of a window, the larger in each column",
    ),
    "span": Reducer(lambda v, _: v.max(axis=0) - v.min(axis=0), 2, "largest minus smallest value"),
    "std": Reducer(_std, 2, "standard deviation, divided by N"),
    "mad": Reducer(_mad, 2, "median distance from the median, not scaled"),
    "noise": Reducer(
        _noise,
        2,
        "spread about the trend: 1.4826 x median difference of neighbours / sqrt(2)",
    ),
    "cv": Reducer(
        lambda v, s: _std(v, s) / np.abs(_mean(v, s)), 2, "standard deviation / size of the mean"
    ),
    "slope": Reducer(_slope, 2, "slope of the least-squares line, per step"),
    "quantile": Reducer(
        _quantile, 1, "quantile, the second argument between 0 and 1, interpolated", numbers=1
    ),
    "zscore": Reducer(
        _zscore,
        3,
        "(newest - median of the rows before) / (1.4826 x their mad, at least 0.001 x the median)",
    ),
    "ratio": Reducer(
        lambda v, _: v[-1] / _median(v[:-1]), 2, "newest value / median of the rows before it"
    ),
    "count": Reducer(
        lambda v, _: np.isfinite(v).sum(axis=0, dtype=np.float64),
        1,
        "how many values are finite",
        raw=True,
    ),
    "nonfinite": Reducer(
        lambda v, _: len(v) - np.isfinite(v).sum(axis=0, dtype=np.float64),
        1,
        "how many values are NaN or infinite",
        raw=True,
    ),
}


@dataclass(frozen=True, slots=True)
class ColumnFunction:
    """A function of all columns: (W,) -> (1,). `truth`: it takes truth values, not numbers."""

    call: Callable[[Values], float]
    truth: bool
    gives_truth: bool
    doc: str


def _any(v: Values) -> float:
    return 1.0 if (v == 1).any() else (np.nan if np.isnan(v).any() else 0.0)


def _all(v: Values) -> float:
    return 0.0 if (v == 0).any() else (np.nan if np.isnan(v).any() else 1.0)


def _known(reduce: Callable[[Values], Any]) -> Callable[[Values], float]:
    def call(v: Values) -> float:
        known = v[~np.isnan(v)]
        return float(reduce(known)) if len(known) else np.nan

    return call


COLUMN_FUNCTIONS: dict[str, ColumnFunction] = {
    "any_column": ColumnFunction(_any, True, True, "true if it holds in at least one column"),
    "all_columns": ColumnFunction(_all, True, True, "true if it holds in every column"),
    "share_columns": ColumnFunction(
        _known(np.mean), True, False, "share of the columns in which it holds, 0 to 1"
    ),
    "max_columns": ColumnFunction(_known(np.max), False, False, "largest of the columns"),
    "min_columns": ColumnFunction(_known(np.min), False, False, "smallest of the columns"),
    "mean_columns": ColumnFunction(_known(np.mean), False, False, "mean of the columns"),
    "median_columns": ColumnFunction(_known(np.median), False, False, "median of the columns"),
    "sum_columns": ColumnFunction(_known(np.sum), False, False, "sum of the columns"),
}

NUMBER_FUNCTIONS: dict[str, tuple[Callable[[Values], Values], str]] = {
    "abs": (np.abs, "absolute value"),
    "sqrt": (np.sqrt, "square root"),
    "log": (np.log, "natural logarithm"),
}

WINDOW_FUNCTIONS: dict[str, str] = {
    "upto": "the window, or what there is of it: upto(x[200]) is never short of rows but the first",
}


def documentation() -> dict[str, str]:
    """Every function of the language and what it does, by name."""
    return {
        **{name: reducer.doc for name, reducer in REDUCERS.items()},
        **{name: function.doc for name, function in COLUMN_FUNCTIONS.items()},
        **{name: doc for name, (_, doc) in NUMBER_FUNCTIONS.items()},
        **WINDOW_FUNCTIONS,
    }
