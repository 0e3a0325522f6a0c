"""The references of all other families against NumPy, SciPy and by hand, degenerate inputs too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import kurtosis

from mindpulse.catalogue import activation, gradient, layers, loss, memory, moe, output, weight
from mindpulse.catalogue.histogram import BINS, HISTOGRAM_EDGES, HISTOGRAM_LABELS, histogram
from mindpulse.report.layers import group_parameters, layer_norms

Array = NDArray[np.float64]


def random(*shape: int, scale: float = 1.0, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(0, scale, shape)


# Loss.


def test_what_the_loop_knows() -> None:
    assert loss.mean_loss(2.5) == 2.5
    assert np.isnan(loss.mean_loss([1.0, np.nan]))
    assert loss.loss_scale(1024) == 1024.0
    assert loss.per_second([8, 8], [2.0, 4.0]).tolist() == [4.0, 2.0]
    assert np.isnan(loss.per_second(8, [0.0, -1.0])).all()
    assert loss.data_wait([], []) == 0.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_overflow_is_any_element_that_is_not_finite(bad: float) -> None:
    gradients = [random(3, 4), random(5)]
    assert loss.overflow(gradients) == 0.0
    gradients[1][2] = bad
    assert loss.overflow(gradients) == 1.0


# Gradients and weights.


def test_norms() -> None:
    gradients = [random(*shape, seed=1) for shape in [(3, 4), (5,), (2, 2, 2)]]
    flat = np.concatenate([g.ravel() for g in gradients])
    assert gradient.global_norm(gradients) == pytest.approx(np.linalg.norm(flat))
    norms = [np.linalg.norm(g.ravel()) for g in gradients]
    np.testing.assert_allclose(gradient.param_norms(gradients), norms)
    assert gradient.global_norm([]) == 0.0
    assert np.isnan(gradient.global_norm([[np.nan]]))


def test_details_of_each_gradient() -> None:
    gradients = [np.array([[0.0, -7.0], [3.0, 0.0]]), np.array([np.nan, -np.inf, 0.0])]
    np.testing.assert_array_equal(gradient.max_abs(gradients), [7.0, np.nan])
    np.testing.assert_allclose(gradient.zero_share(gradients), [0.5, 1 / 3])
    assert gradient.nonfinite(gradients).tolist() == [0.0, 2.0]
    empty = [np.empty((0, 4))]
    assert gradient.max_abs(empty).tolist() == gradient.nonfinite(empty).tolist() == [0.0]
    assert np.isnan(gradient.zero_share(empty)).all()
    assert gradient.max_abs([[-np.inf]]).tolist() == [np.inf]


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("encoder.layers.3.attention.wq.weight", 3),
        ("12.weight", 12),
        ("blocks.07.fc", 7),
        ("decoder.1.experts.5.w1", 1),
        ("layer3.weight", None),
        ("fc.v2.5x.bias", None),
        ("", None),
    ],
)
def test_the_layer_of_a_parameter_is_the_first_whole_number(path: str, number: int | None) -> None:
    assert layers.layer_number(path) == number


PATHS = ["embed.w", "h.10.q", "h.2.q", "h.10.k", "h.2.k", "h.5.q", "head.w"]


def test_norm_ratio_takes_the_smallest_and_the_greatest_number() -> None:
    gradients = [random(4, 3, seed=n) for n in range(7)]
    first = np.linalg.norm(np.stack([gradients[2], gradients[4]]))
    last = np.linalg.norm(np.stack([gradients[1], gradients[3]]))
    assert gradient.norm_ratio(PATHS, gradients) == pytest.approx(first / last)
    many = np.stack([gradient.param_norms(gradients), 1e200 * gradient.param_norms(gradients)])
    np.testing.assert_allclose(layers.first_to_last(PATHS, many), [first / last] * 2)


@pytest.mark.parametrize(
    ("first", "last", "want"),
    [(1.0, 0.0, np.inf), (0.0, 0.0, np.nan), (0.0, 2.0, 0.0), (np.nan, 1.0, np.nan)],
)
def test_norm_ratio_of_gradients_that_are_gone(first: float, last: float, want: float) -> None:
    found = layers.first_to_last(["l.0.w", "l.1.w"], np.array([[first, last]]))
    np.testing.assert_array_equal(found, [want])


def test_norm_ratio_is_unknown_with_fewer_than_two_layers() -> None:
    for paths in ([], ["a", "b"], ["l.0.a", "l.0.b"]):
        assert (
            np.isnan(layers.first_to_last(paths, np.ones((3, len(paths))))).tolist() == [True] * 3
        )


def test_the_report_and_the_ratio_agree_on_layers() -> None:
    groups = group_parameters(PATHS)
    norms = np.abs(random(4, 7, seed=9))
    by_layer = dict(zip(groups, layer_norms(norms, groups).T, strict=True))
    np.testing.assert_allclose(
        layers.first_to_last(PATHS, norms), by_layer["layer 2"] / by_layer["layer 10"]
    )


def test_update_ratio() -> None:
    before = [random(3, 4), np.zeros(2), np.zeros(2)]
    after = [before[0] * 1.001, np.zeros(2), np.ones(2)]
    np.testing.assert_allclose(weight.update_ratio(before, after), [1e-3, np.nan, np.nan])
    np.testing.assert_array_equal(
        weight.relative([[1.0, 1.0, np.nan]], [[4.0, 0.0, 2.0]]), [[0.25, np.nan, np.nan]]
    )


# Activations.


def test_moments_against_scipy() -> None:
    x = np.random.default_rng(5).standard_t(4, (2, 3, 16)) + 0.5
    assert activation.input_mean(x) == pytest.approx(x.mean())
    assert activation.input_variance(x) == pytest.approx(x.var(axis=-1).mean())
    assert activation.input_rms(x) == pytest.approx(np.linalg.norm(x) / np.sqrt(x.size))
    assert activation.input_max_abs(x) == np.abs(x).max()
    want = kurtosis(x, axis=-1, fisher=False).mean()
    assert activation.input_kurtosis(x) == pytest.approx(want)
    assert activation.input_kurtosis(x * 1e3 + 1e4) == pytest.approx(want, rel=1e-6)


def test_kurtosis_of_normal_features_is_three_and_of_one_outlier_their_number() -> None:
    assert activation.input_kurtosis(random(100, 512)) == pytest.approx(3, abs=0.1)
    spike = np.zeros((1, 512))
    spike[0, 7] = 1000
    assert activation.input_kurtosis(spike) == pytest.approx(512, rel=0.01)
    assert activation.input_kurtosis(np.full((2, 4), 3.0)) == 0.0


def test_zero_share_and_dead_share() -> None:
    x = np.maximum(random(4, 5, 8) - 0.5, 0)
    x[..., 3] = 0
    assert activation.unit_zero_share(x) == pytest.approx(np.mean(x.ravel() == 0))
    dead = sum(not x[..., unit].any() for unit in range(8)) / 8
    assert activation.dead_share(x) == dead == 1 / 8
    x[..., 3] = np.nan
    assert activation.dead_share(x) == 0.0


SCALARS = [
    activation.input_mean,
    activation.input_variance,
    activation.input_rms,
    activation.input_max_abs,
    activation.input_kurtosis,
]


@pytest.mark.parametrize("measure", [*SCALARS, activation.unit_zero_share, activation.dead_share])
def test_nothing_has_no_value(measure: Any) -> None:
    for shape in [(0, 4), (2, 0, 4), (3, 0)]:
        assert np.isnan(measure(np.empty(shape)))


@pytest.mark.parametrize("measure", SCALARS)
def test_a_value_that_is_not_finite_shows(measure: Any) -> None:
    for bad in (np.nan, np.inf):
        x = random(3, 4)
        x[1, 2] = bad
        assert not np.isfinite(measure(x))
    assert measure(np.zeros((3, 4))) == 0.0


# Histogram.


def test_labels_and_edges_belong_together() -> None:
    assert len(HISTOGRAM_LABELS) == BINS == len(HISTOGRAM_EDGES) + 2 == 35
    assert len(set(HISTOGRAM_LABELS)) == BINS
    for edge, label in zip(HISTOGRAM_EDGES, HISTOGRAM_LABELS[2:], strict=True):
        found = histogram([edge])
        assert HISTOGRAM_LABELS[int(found.argmax())] == label
        below = histogram([-np.nextafter(np.float32(edge), np.float32(0))])
        assert below.argmax() == found.argmax() - 1


@given(arrays(np.float32, array_shapes(), elements=st.floats(width=32)))
def test_histogram_counts_each_element_once(x: NDArray[np.float32]) -> None:
    size = np.abs(x[~np.isnan(x)].astype(np.float64))
    want = [np.sum(size == 0), np.sum((size > 0) & (size < 2.0**-20))]
    want += [np.sum((size >= 2.0**k) & (size < 2.0 ** (k + 1))) for k in range(-20, 12)]
    want += [np.sum(size >= 2.0**12)]
    np.testing.assert_allclose(histogram(x), np.array(want) / x.size)


def test_histogram_of_nothing() -> None:
    assert np.isnan(histogram([])).all()
    assert histogram([np.nan]).tolist() == [0.0] * BINS


# Output and experts.


def test_log_partition_against_scipy() -> None:
    x = random(2, 3, 11, scale=50, seed=6)
    assert output.log_partition(x) == pytest.approx(logsumexp(x, axis=-1).mean())
    assert output.log_partition(x + 1e5) == pytest.approx(output.log_partition(x) + 1e5)
    x[0, 0, 0] = -np.inf
    assert output.log_partition(x) == pytest.approx(logsumexp(x, axis=-1).mean())
    assert output.log_partition(np.full((1, 4), -np.inf)) == -np.inf
    assert output.log_partition([[np.inf, 0.0]]) == np.inf
    assert np.isnan(output.log_partition([[np.nan, 0.0]]))
    assert np.isnan(output.log_partition(np.empty((0, 4))))


@pytest.mark.parametrize("top_k", [1, 2, 4])
def test_expert_load_counts_the_choices(top_k: int) -> None:
    p = random(3, 5, 4, seed=7)
    counts = np.zeros(4)
    for token in p.reshape(-1, 4):
        counts[np.argpartition(token, -top_k)[-top_k:]] += 1
    np.testing.assert_allclose(moe.expert_load(p, top_k), counts / counts.sum())
    assert np.isnan(moe.expert_load(np.empty((0, 4)), top_k)).all()


def test_of_equal_experts_the_first_is_chosen() -> None:
    assert moe.expert_load(np.zeros((6, 3)), 2).tolist() == [0.5, 0.5, 0.0]


# Memory.

BLOCKS = st.lists(st.tuples(st.integers(1, 100), st.booleans()), max_size=12)


@given(BLOCKS)
def test_the_numbers_of_a_pool_fit_together(blocks: list[tuple[int, bool]]) -> None:
    sizes, used = [b[0] for b in blocks], [b[1] for b in blocks]
    free, largest = memory.free(sizes, used), memory.largest_free(sizes, used)
    assert memory.allocated(sizes, used) + free == memory.reserved(sizes) == sum(sizes)
    assert 0 <= largest <= free
    runs = "".join("x" if b[1] else " " * b[0] for b in blocks).split("x")
    assert largest == max(map(len, runs))
    if free:
        assert 0 < memory.contiguity(largest, free) <= 1
        assert memory.fragmentation(largest, free) == 1 - largest / free


def test_fragmentation_is_high_when_memory_is_in_pieces() -> None:
    sizes = [1] * 20
    whole, pieces = [n < 10 for n in range(20)], [n % 2 == 0 for n in range(20)]
    values = [
        memory.fragmentation(memory.largest_free(sizes, used), memory.free(sizes, used))
        for used in (whole, pieces)
    ]
    assert values == [0.0, 0.9]
    assert np.isnan(memory.fragmentation(0, 0))
    assert np.isnan(memory.contiguity(0, 0))


def test_peak() -> None:
    assert memory.peak([]) == 0.0
    assert memory.peak([3, 8, 2]) == 8.0


def test_resident_bytes() -> None:
    status = Path("/proc/self/status")
    if status.exists():
        assert 1e6 < memory.resident(status.read_text()) < 1e12
    assert np.isnan(memory.resident("Name:\tkthreadd\n"))
