"""The overview of a series against a plain loop over its rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from mindpulse.errors import UsageError
from mindpulse.series import Rows, Series, SeriesSpec
from mindpulse.store.blocks import blocks_of, joined, merged
from mindpulse.store.overview import Overview, overview_of
from series_samples import FOCUS, LOSS, odd_rows

ODD = st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 5e-324, 1.0, 2.5])
VALUES = st.one_of(ODD, st.floats(-1e6, 1e6))


def series_of(values: NDArray[np.float64], spec: SeriesSpec = LOSS) -> Series:
    values = values[:, None] if values.ndim == 1 else values
    steps = np.arange(len(values), dtype=np.int64) * 3
    return Series(spec, Rows(steps, 1.7e9 + steps * 0.25, values.astype(spec.dtype)))


def assert_tells(overview: Overview, series: Series) -> None:
    """Each bucket is what a loop over its rows finds; the buckets are all rows, in order."""
    ends = np.cumsum(overview.counts)
    assert (ends[-1] if len(ends) else 0) == len(series)
    for bucket, end in enumerate(ends.tolist()):
        rows = series.rows[end - int(overview.counts[bucket]) : end]
        assert overview.first_steps[bucket] == rows.steps[0]
        assert overview.last_steps[bucket] == rows.steps[-1]
        assert overview.low_steps[bucket] == rows.steps.min()
        assert overview.high_steps[bucket] == rows.steps.max()
        assert overview.first_times[bucket] == rows.wall_times[0]
        assert overview.last_times[bucket] == rows.wall_times[-1]
        for column in range(series.spec.width):
            assert_column(overview, bucket, column, rows)


def assert_column(overview: Overview, bucket: int, column: int, rows: Rows) -> None:
    values = rows.values[:, column].astype(np.float64)
    finite = np.isfinite(values)
    assert overview.nonfinite[bucket, column] == np.sum(~finite)
    if not finite.all():
        first = int(np.argmin(finite))
        assert overview.nonfinite_steps[bucket, column] == rows.steps[first]
        np.testing.assert_equal(overview.nonfinite_values[bucket, column], values[first])
    if not finite.any():
        for name in ("minimum", "maximum", "mean"):
            assert np.isnan(getattr(overview, name)[bucket, column])
        return
    good, steps = values[finite], rows.steps[finite]
    assert overview.minimum[bucket, column] == good.min()
    assert overview.maximum[bucket, column] == good.max()
    assert overview.min_steps[bucket, column] == steps[np.argmin(good)]
    assert overview.max_steps[bucket, column] == steps[np.argmax(good)]
    mean = float(np.sum(good / len(good)))
    tolerance = 1e-12 * float(np.max(np.abs(good))) + 1e-300
    assert overview.mean[bucket, column] == pytest.approx(mean, abs=tolerance)


def rows_in(curve: Series, series: Series, column: int) -> bool:
    """Whether each row of a curve is a row of the series, NaN equal to NaN."""
    there = {
        (step, str(value))
        for step, value in zip(
            series.steps.tolist(), series.rows.values[:, column].tolist(), strict=True
        )
    }
    found = zip(curve.steps.tolist(), curve.rows.values[:, 0].tolist(), strict=True)
    return all((step, str(value)) in there for step, value in found)


@given(arrays.arrays(np.float64, st.integers(0, 300), elements=VALUES), st.integers(3, 60))
@settings(deadline=None)
def test_each_bucket_and_the_curve_against_a_loop(values: NDArray[np.float64], points: int) -> None:
    series = series_of(values)
    overview = overview_of(series, points)
    assert_tells(overview, series)
    wanted = len(series) if len(series) <= points else points // 2
    assert len(overview) == wanted
    curve = overview.curve()
    assert len(curve) <= points
    assert curve.spec == LOSS
    assert rows_in(curve, series, 0)
    assert np.all(np.diff(curve.steps) >= 0)
    finite = values[np.isfinite(values)]
    drawn = curve.values[np.isfinite(curve.values)]
    if len(finite):
        assert (drawn.min(), drawn.max()) == (finite.min(), finite.max())
    assert (len(drawn) < len(curve)) == (len(finite) < len(values))


@given(st.data())
@settings(deadline=None)
def test_several_columns_and_steps_in_any_order(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 60))
    values = data.draw(arrays.arrays(np.float32, (count, 3), elements=st.floats(width=32)))
    steps = data.draw(arrays.arrays(np.int64, count, elements=st.integers(-(2**63), 2**63 - 1)))
    series = Series(FOCUS, Rows(steps, np.arange(count) * 1.0, values))
    overview = overview_of(series, data.draw(st.integers(3, 20)))
    assert_tells(overview, series)
    for column in range(3):
        curve = overview.curve(column)
        assert len(curve) <= overview.points
        assert curve.spec == FOCUS.pick([column])
        assert rows_in(curve, series, column)


@given(st.data())
def test_blocks_of_blocks_are_blocks_of_rows(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 80))
    series = series_of(data.draw(arrays.arrays(np.float64, count, elements=VALUES)))
    cuts = data.draw(st.sets(st.integers(1, count), max_size=6)) | {0, count}
    edges = sorted(cuts)
    pieces = [
        blocks_of(series.rows[start:end], data.draw(st.integers(1, 9)))
        for start, end in pairwise(edges)
    ]
    small = joined(pieces)
    starts = np.cumsum([0, *(len(piece) for piece in pieces)])[:-1]
    names = {name: getattr(merged(small, starts), name) for name in small.__slots__}
    assert_tells(Overview(**names, spec=LOSS, points=3), series)


def test_a_short_series_is_its_own_curve() -> None:
    series = series_of(np.array([3.0, 3.0, np.nan, -np.inf, 1.0]))
    curve = overview_of(series, 5).curve()
    np.testing.assert_array_equal(curve.values, series.values)
    assert curve.steps.tolist() == series.steps.tolist()
    assert curve.wall_times.tolist() == series.wall_times.tolist()


def test_a_spike_and_a_nan_among_a_million_rows_are_in_the_curve() -> None:
    values = np.sin(np.arange(1_000_000) / 1e4)
    values[123_457], values[777_777], values[888_888] = 9.0, np.nan, -7.0
    curve = overview_of(series_of(values)).curve()
    assert 1900 <= len(curve) <= 2000
    found = dict(zip((curve.steps // 3).tolist(), curve.values.tolist(), strict=True))
    assert (found[123_457], found[888_888]) == (9.0, -7.0)
    assert np.isnan(found[777_777])


def test_a_nan_in_every_bucket_costs_resolution_not_the_extremes() -> None:
    values = np.sin(np.arange(10_000) / 100)
    values[::5] = np.nan
    values[4242] = 8.0
    curve = overview_of(series_of(values), 300).curve()
    assert 270 <= len(curve) <= 300
    assert np.nanmax(curve.values) == 8.0
    assert np.isnan(curve.values).sum() == pytest.approx(len(curve) / 3, abs=1)


def test_odd_steps_and_values_of_the_type() -> None:
    for spec in (LOSS, FOCUS):
        series = Series(spec, odd_rows(spec))
        assert_tells(overview_of(series, 4), series)
        assert_tells(overview_of(series, 8), series)


def test_what_cannot_be_drawn_is_told() -> None:
    overview = overview_of(series_of(np.arange(9.0)), 3)
    with pytest.raises(UsageError, match="column 1 of 'train_loss': it has columns 0 to 0"):
        overview.curve(1)
    with pytest.raises(UsageError, match="2 points: a curve needs at least 3"):
        overview_of(series_of(np.arange(9.0)), 2)
