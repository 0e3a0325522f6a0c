"""Warping against ten lines of plain Python, and against another library where it installs."""

from __future__ import annotations

import importlib
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory import peak_memory
from mindpulse.compare.dtw import warped_cost, warping_path
from mindpulse.errors import UsageError

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)
CURVES = st.lists(NUMBERS, min_size=1, max_size=12)


def plain_cost(a: list[float], b: list[float], radius: int | None) -> float:
    n, m = len(a), len(b)
    reach = n + m if radius is None else radius
    below, above = max(0, n - m) + reach, max(0, m - n) + reach
    cost = {(-1, -1): 0.0}
    for i, j in itertools.product(range(n), range(m)):
        if -below <= j - i <= above:
            before = [(i - 1, j), (i, j - 1), (i - 1, j - 1)]
            cost[i, j] = abs(a[i] - b[j]) + min(cost.get(cell, np.inf) for cell in before)
    return cost[n - 1, m - 1]


@given(CURVES, CURVES, st.one_of(st.none(), st.integers(0, 12)))
def test_cost_is_that_of_plain_python(a: list[float], b: list[float], radius: int | None) -> None:
    assert warped_cost(a, b, radius) == pytest.approx(plain_cost(a, b, radius), rel=1e-12)


@given(CURVES, CURVES, st.integers(0, 12))
def test_path_is_a_way_through_the_band_at_that_cost(
    a: list[float], b: list[float], radius: int
) -> None:
    path = warping_path(a, b, radius)
    assert path[0].tolist() == [0, 0]
    assert path[-1].tolist() == [len(a) - 1, len(b) - 1]
    assert set(map(tuple, np.diff(path, axis=0).tolist())) <= {(0, 1), (1, 0), (1, 1)}
    offset = path[:, 1] - path[:, 0]
    assert offset.max() <= max(0, len(b) - len(a)) + radius
    assert -offset.min() <= max(0, len(a) - len(b)) + radius
    along = sum(abs(a[i] - b[j]) for i, j in path)
    assert along == pytest.approx(warped_cost(a, b, radius), rel=1e-9)


@given(CURVES, CURVES, st.integers(0, 12))
def test_order_does_not_matter(a: list[float], b: list[float], radius: int) -> None:
    assert warped_cost(a, b, radius) == pytest.approx(warped_cost(b, a, radius), rel=1e-12)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=12), st.integers(0, 12))
def test_warping_never_costs_more_than_no_warping(
    pairs: list[tuple[float, float]], radius: int
) -> None:
    a, b = zip(*pairs, strict=True)
    plain = sum(abs(x - y) for x, y in pairs)
    assert warped_cost(a, b, 0) == pytest.approx(plain, rel=1e-12)
    assert warped_cost(a, b, radius) <= plain * (1 + 1e-12)
    assert warped_cost(a, b, radius + 1) <= warped_cost(a, b, radius) * (1 + 1e-12)


def test_right_values_written_out() -> None:
    """Three points by hand: |1-2| + |1-2| on the first column, then |3-3| and |4-5|."""
    assert warped_cost([1, 1, 3, 4], [2, 3, 5]) == 3.0
    assert warped_cost([0, 0, 0, 5, 0], [0, 5, 0, 0, 0], 2) == 0.0
    assert warped_cost([0, 0, 0, 5, 0], [0, 5, 0, 0, 0], 1) == 10.0


def oracle() -> Any:
    """The other library; it has no wheels for aarch64 and for Python 3.10."""
    try:
        return importlib.import_module("dtaidistance.dtw")
    except ImportError as error:
        pytest.skip(f"dtaidistance, the oracle, is not installed: {error}")


@settings(deadline=None)
@given(
    st.lists(NUMBERS, min_size=1, max_size=60),
    st.lists(NUMBERS, min_size=1, max_size=60),
    st.integers(0, 60),
)
def test_cost_is_that_of_dtaidistance(a: list[float], b: list[float], radius: int) -> None:
    """Its window counts the diagonal: window 1 is radius 0."""
    x, y = np.array(a), np.array(b)
    wanted = oracle().distance(x, y, window=radius + 1, inner_dist="euclidean")
    assert warped_cost(x, y, radius) == pytest.approx(wanted, rel=1e-9, abs=1e-6)


def test_long_curves_cost_what_dtaidistance_says() -> None:
    rng = np.random.default_rng(3)
    a, b = np.cumsum(rng.normal(size=(2, 5000)), axis=1)
    for radius in (10, 500):
        wanted = oracle().distance_fast(a, b, window=radius + 1, inner_dist="euclidean")
        assert warped_cost(a, b, radius) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.slow
def test_memory_is_linear() -> None:
    """20,000 x 20,000 cells would be 3.2 GB; the buffers are a few times the curves."""
    a = np.linspace(0, 1, 20_000)
    most = 12 * a.nbytes
    assert peak_memory(lambda: warped_cost(a, a**2, 50), most)[0] <= most


@pytest.mark.parametrize(
    ("a", "b", "radius", "words"),
    [
        ([], [1.0], None, "first curve is empty"),
        ([1.0], [1.0, np.nan], None, "second curve is nan at position 1"),
        ([np.inf], [1.0], None, "first curve is inf at position 0"),
        ([1.0], [1.0], -1, "radius -1"),
    ],
)
def test_what_cannot_be_warped_is_refused(
    a: list[float], b: list[float], radius: int | None, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        warped_cost(a, b, radius)
