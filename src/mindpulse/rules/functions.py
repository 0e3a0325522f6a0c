"""The functions of the rule language, each a few lines of NumPy.

A *reducer* turns a window (N rows, W columns) into W numbers, over time. A *column function* turns
W numbers or truth values into one. Truth values are numbers here: 1 true, 0 false, NaN unknown.

All of them take one step (N, W) or many at once (S, N, W), with the same bits as result: inside,
they reduce `lanes` (..., N).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.rules.lanes import Values, mean, median, over_kept, ranked, total, unsigned
from mindpulse.rules.robust import MAD_TO_SIGMA, WARM_UP, baseline, mad, spread
from mindpulse.rules.trends import rate, rising, turns

Steps = NDArray[np.int64]

TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Reducer:
    """A function of a window.

    Attributes:
        call: (lanes (..., N), steps (..., N), *numbers) -> (...).
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

    def __call__(self, values: NDArray[Any], steps: Steps, *numbers: float) -> Values:
        """The windows (..., N, W) at steps (..., N) reduced to (..., W).

        NaN for a column without enough finite values.
        """
        lanes = np.ascontiguousarray(values.swapaxes(-1, -2), np.float64)
        if self.raw:
            return self.call(lanes, steps, *numbers)
        finite, times = np.isfinite(lanes), steps[..., None, :]
        if finite.all():
            return self.call(lanes, times, *numbers)

        def call(some: Values, some_times: Steps) -> Values:
            return self.call(some, some_times, *numbers)

        return over_kept(call, finite, self.rows, lanes, times)


def _std(v: Values, _: Steps) -> Values:
    centred = v - mean(v)[..., None]
    return np.asarray(np.sqrt(mean(np.square(centred, out=centred))))


def _noise(v: Values, _: Steps) -> Values:
    # The difference of two neighbours has sqrt(2) times the spread of one value, and no trend.
    return np.asarray(MAD_TO_SIGMA / np.sqrt(2.0) * median(np.abs(v[..., 1:] - v[..., :-1])))


def _quantile(v: Values, _: Steps, q: float) -> Values:
    place = min(max(q, 0.0), 1.0) * (v.shape[-1] - 1)
    low = int(place)
    below, above = ranked(v, low, min(low + 1, v.shape[-1] - 1))
    return unsigned(below + (place - low) * (above - below))


def _slope(v: Values, steps: Steps) -> Values:
    x = np.ascontiguousarray(steps, np.float64)
    x = x - mean(x)[..., None]
    return np.asarray(total(x * (v - mean(v)[..., None])) / total(x * x))


def _zscore(v: Values, _: Steps) -> Values:
    before = v[..., :-1]
    centre = median(before)
    spread = MAD_TO_SIGMA * mad(before)
    # A series that stood still has no spread: a thousandth of its size is taken instead.
    return np.asarray((v[..., -1] - centre) / np.maximum(spread, 1e-3 * np.abs(centre) + TINY))


def _finite(v: Values, _: Steps) -> Values:
    return np.asarray(np.isfinite(v).sum(axis=-1, dtype=np.float64))


REDUCERS: dict[str, Reducer] = {
    "last": Reducer(lambda v, _: v[..., -1], 1, "the newest value, as it is", raw=True),
    "first": Reducer(
        lambda v, _: v[..., 0], 1, "the oldest value of the window, as it is", raw=True
    ),
    "mean": Reducer(lambda v, _: mean(v), 1, "arithmetic mean"),
    "median": Reducer(lambda v, _: median(v), 1, "median"),
    "sum": Reducer(lambda v, _: total(v), 1, "sum"),
    "min": Reducer(
        lambda v, _: np.minimum.reduce(v, axis=-1),
        1,
        "smallest value; with two or more numbers instead of a window, the smaller in each column",
    ),
    "max": Reducer(
        lambda v, _: np.maximum.reduce(v, axis=-1),
        1,
        "largest value; with two or more numbers instead of a window, the larger in each column",
    ),
    "span": Reducer(
        lambda v, _: v.max(axis=-1) - v.min(axis=-1), 2, "largest minus smallest value"
    ),
    "std": Reducer(_std, 2, "standard deviation, divided by N"),
    "mad": Reducer(lambda v, _: mad(v), 2, "median distance from the median, not scaled"),
    "noise": Reducer(
        _noise,
        2,
        "spread about the trend: 1.4826 x median difference of neighbours / sqrt(2)",
    ),
    "cv": Reducer(
        lambda v, s: _std(v, s) / np.abs(mean(v)), 2, "standard deviation / size of the mean"
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
        lambda v, _: v[..., -1] / median(v[..., :-1]),
        2,
        "newest value / median of the rows before it",
    ),
    "baseline": Reducer(
        lambda v, _: baseline(v),
        WARM_UP,
        "the level without outliers, newer rows counting more: weighted mean of the rows within "
        "3 spreads of the median, the newest weighing twice as much as the middle one",
    ),
    "spread": Reducer(
        lambda v, _: spread(v), WARM_UP, "1.4826 x mad, at least 0.01 x the size of the median"
    ),
    "rate": Reducer(
        rate, 2, "growth of a counter per step; where it falls it is taken to begin anew at 0"
    ),
    "rising": Reducer(
        lambda v, _: rising(v), 2, "share of the rows that are larger than the one before, 0 to 1"
    ),
    "turns": Reducer(
        lambda v, _: turns(v),
        3,
        "share of the rows at which it turns from rising to falling or back, 0 to 1",
    ),
    "count": Reducer(_finite, 1, "how many values are finite", raw=True),
    "nonfinite": Reducer(
        lambda v, s: v.shape[-1] - _finite(v, s),
        1,
        "how many values are NaN or infinite",
        raw=True,
    ),
}


@dataclass(frozen=True, slots=True)
class ColumnFunction:
    """A function of all columns: (..., W) -> (...). `truth`: it takes truth values, not numbers."""

    call: Callable[[Values], Values]
    truth: bool
    gives_truth: bool
    doc: str


def _any(v: Values) -> Values:
    return np.where((v == 1).any(axis=-1), 1.0, _unknown_or(0.0, v))


def _all(v: Values) -> Values:
    return np.where((v == 0).any(axis=-1), 0.0, _unknown_or(1.0, v))


def _unknown_or(value: float, v: Values) -> Values:
    return np.where(np.isnan(v).any(axis=-1), np.nan, value)


def _known(reduce: Callable[[Values], Values]) -> Callable[[Values], Values]:
    def call(v: Values) -> Values:
        columns, known = np.ascontiguousarray(v), ~np.isnan(v)
        return reduce(columns) if known.all() else over_kept(reduce, known, 1, columns)

    return call


known_mean = _known(mean)

COLUMN_FUNCTIONS: dict[str, ColumnFunction] = {
    "any_column": ColumnFunction(_any, True, True, "true if it holds in at least one column"),
    "all_columns": ColumnFunction(_all, True, True, "true if it holds in every column"),
    "share_columns": ColumnFunction(
        known_mean, True, False, "share of the columns in which it holds, 0 to 1"
    ),
    "max_columns": ColumnFunction(
        _known(lambda v: np.maximum.reduce(v, axis=-1)), False, False, "largest of the columns"
    ),
    "min_columns": ColumnFunction(
        _known(lambda v: np.minimum.reduce(v, axis=-1)), False, False, "smallest of the columns"
    ),
    "mean_columns": ColumnFunction(known_mean, False, False, "mean of the columns"),
    "median_columns": ColumnFunction(_known(median), False, False, "median of the columns"),
    "sum_columns": ColumnFunction(_known(total), False, False, "sum of the columns"),
}

NUMBER_FUNCTIONS: dict[str, tuple[Callable[[Values], Values], str]] = {
    "abs": (np.abs, "absolute value"),
    "sqrt": (np.sqrt, "square root"),
    "log": (np.log, "natural logarithm"),
}

WINDOW_FUNCTIONS: dict[str, str] = {
    "upto": "the window, or what there is of it: upto(x[200]) is never short of rows but the first",
    "steps": "a window in steps: steps(x[200]) has the rows of the last 200 steps, few or many",
}

LAYER_FUNCTIONS: dict[str, tuple[int, str]] = {
    "first_layer": (0, "mean of the columns of the first layer"),
    "last_layer": (-1, "mean of the columns of the last layer"),
}

SPECIAL_FUNCTIONS: dict[str, str] = {
    "age": "steps since the newest row of a series: age(eval_loss)",
    "known": "the first argument where it is known, else the second: "
    "known(last(grad_norm_unclipped), last(grad_norm)); for series of one column",
    "when": "the second argument where the condition, its first, holds; unknown where it does not",
}


def documentation() -> dict[str, str]:
    """Every function of the language and what it does, by name."""
    return {
        **{name: reducer.doc for name, reducer in REDUCERS.items()},
        **{name: function.doc for name, function in COLUMN_FUNCTIONS.items()},
        **{name: doc for name, (_, doc) in LAYER_FUNCTIONS.items()},
        **{name: doc for name, (_, doc) in NUMBER_FUNCTIONS.items()},
        **WINDOW_FUNCTIONS,
        **SPECIAL_FUNCTIONS,
    }
