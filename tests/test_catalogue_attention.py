"""The references of the attention measures against SciPy, by hand, and the fused forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import entropy

from mindpulse.catalogue import MEASURES
from mindpulse.catalogue.attention import (
    attention_entropy,
    attention_focus,
    attention_future_mass,
    attention_max_logit,
    attention_padding_mass,
    attention_sink_mass,
    attention_sparsity,
    visible,
)
from mindpulse.catalogue.fused import fused_focus, fused_max_logit, online_softmax

Array = NDArray[np.float64]


@pytest.fixture
def p() -> Array:
    return softmax(np.random.default_rng(0).normal(0, 2, (2, 3, 5, 7)), axis=-1)


def test_focus_and_entropy_against_scipy(p: Array) -> None:
    np.testing.assert_allclose(attention_focus(p), p.max(-1).mean((0, 2)), rtol=1e-6)
    nats = entropy(p, axis=-1) / np.log(7)
    np.testing.assert_allclose(attention_entropy(p), nats.mean((0, 2)), rtol=1e-12)


def test_hidden_keys_do_not_count() -> None:
    p = np.zeros((1, 1, 2, 4))
    p[..., :2] = 0.5
    assert attention_entropy(p).tolist() == [1.0]
    mask = np.array([True, True, False, False])
    assert attention_entropy(p, mask).tolist() == [1.0]
    assert attention_entropy(p, np.ones(4, bool)).tolist() == [0.5]
    assert attention_sparsity(p, mask).tolist() == [0.0]
    assert attention_sparsity(p).tolist() == [0.5]


@pytest.mark.parametrize("mask", [-1e4, -1e9, np.finfo(np.float32).min, -np.inf])
def test_every_usual_mask_hides(mask: float) -> None:
    logits = np.random.default_rng(2).normal(0, 30, (2, 4)) + np.array([0, mask, 0, mask])
    assert visible(logits).tolist() == [[True, False, True, False]] * 2


@pytest.mark.parametrize(
    ("row", "focus", "nats"), [([1.0, 0.0, 0.0], 1.0, 0.0), ([0.0, 0.0, 0.0], 0.0, 0.0)]
)
def test_extreme_rows_divide_by_nothing(row: list[float], focus: float, nats: float) -> None:
    p = np.array(row).reshape(1, 1, 1, 3)
    assert attention_focus(p)[0] == pytest.approx(focus, abs=1e-7)
    assert attention_entropy(p)[0] == pytest.approx(nats)
    assert attention_entropy(p.tolist())[0] == pytest.approx(nats)
    assert attention_sparsity(p, np.zeros(3, bool))[0] == 0.0


def test_sparsity_is_the_mean_of_the_shares_of_rows() -> None:
    p = np.array([[[[0.999, 0.0005, 0.0005, 0.0], [0.5, 0.4995, 0.0005, 0.0]]]])
    mask = np.array([[True, True, True, False], [True, True, False, False]])
    assert attention_sparsity(p, mask)[0] == pytest.approx((2 / 3 + 0 / 2) / 2)
    assert attention_sparsity(np.full((1, 1, 1, 4), 1e-3))[0] == 0.0  # the limit itself is kept


def test_max_logit_is_that_of_a_visible_key() -> None:
    logits = np.random.default_rng(3).normal(-2000, 1, (2, 3, 4, 5))
    logits[..., 3:] = -1e4
    found = attention_max_logit(logits)
    np.testing.assert_array_equal(found, logits[..., :3].max((0, 2, 3)))
    logits[:, 1] = -1e9
    assert attention_max_logit(logits)[1] == -1e9


def test_sink_mass(p: Array) -> None:
    np.testing.assert_allclose(attention_sink_mass(p), p[:, :, :, 0].mean((0, 2)))


@pytest.mark.parametrize(("queries", "keys"), [(4, 4), (2, 5), (1, 3)])
def test_future_mass_aligns_the_last_query_with_the_last_key(queries: int, keys: int) -> None:
    p = softmax(np.random.default_rng(4).normal(size=(2, 3, queries, keys)), axis=-1)
    future = [p[:, :, q, keys - queries + q + 1 :].sum(-1) for q in range(queries)]
    np.testing.assert_allclose(attention_future_mass(p), np.mean(future, axis=(0, 1)), atol=1e-15)
    causal = np.where(np.tri(queries, keys, keys - queries, bool), p, 0)
    assert attention_future_mass(causal).tolist() == [0.0] * 3


def test_future_mass_is_unknown_with_more_queries_than_keys() -> None:
    assert np.isnan(attention_future_mass(np.ones((1, 2, 4, 3)))).all()


def test_padding_mass_looks_at_each_sample_alone(p: Array) -> None:
    padding = np.zeros((2, 7), bool)
    padding[1, 4:] = True
    want = (0 + p[1, :, :, 4:].sum(-1).mean(-1)) / 2
    np.testing.assert_allclose(attention_padding_mass(p, padding), want)
    assert attention_padding_mass(p, np.zeros((2, 7))).tolist() == [0.0] * 3
    np.testing.assert_allclose(attention_padding_mass(p, np.ones((2, 7))), 1.0)


REFERENCES = {tag: m.reference for tag, m in MEASURES.items() if m.family == "attention"}


@pytest.mark.parametrize("tag", REFERENCES)
def test_a_nan_stays_in_its_head_and_no_row_is_no_value(tag: str, p: Array) -> None:
    more = [np.ones((2, 7))] if tag == "attn_padding_mass" else []
    reference: Any = REFERENCES[tag]
    p = p[..., :5]
    p[0, 1, 2, 1] = np.nan
    more = [m[:, :5] for m in more]
    assert np.isnan(reference(p, *more)).tolist() == [False, True, False]
    assert np.isnan(reference(p[:0], *[m[:0] for m in more])).tolist() == [True] * 3


# Fused attention.


def plain(logits: Array) -> Array:
    """Softmax over the keys; zeros where every logit is -inf."""
    seen = np.isfinite(logits).any(-1, keepdims=True)
    return np.asarray(np.where(seen, softmax(np.where(seen, logits, 0.0), axis=-1), 0.0))


MASKS = st.sampled_from([0.0, -1e4, -1e9, -np.inf])
SHAPE = st.tuples(*[st.integers(1, 3)] * 3, st.integers(1, 9))


@st.composite
def masked_logits(draw: st.DrawFn) -> Array:
    """(batch, head, query, key), any of which may be hidden, whole rows too."""
    shape = draw(SHAPE)
    logits = draw(arrays(np.float64, shape, elements=st.floats(-80, 80)))
    mask = draw(arrays(np.float64, shape, elements=MASKS))
    rows = draw(arrays(np.float64, (*shape[:-1], 1), elements=MASKS))
    return np.asarray(logits + mask + rows, np.float64)


@given(masked_logits(), st.integers(1, 9))
def test_maxima_and_sums_give_focus_and_max_logit(logits: Array, block: int) -> None:
    m, s = online_softmax(logits, block)
    np.testing.assert_array_equal(m, logits.max(-1))
    # The plain formula divides by sum p + 1e-8, which is 1 + 1e-8.
    np.testing.assert_allclose(
        fused_focus(m, s), attention_focus(plain(logits)) * (1 + 1e-8), rtol=1e-12
    )
    np.testing.assert_array_equal(fused_max_logit(m), attention_max_logit(logits))


@given(masked_logits())
def test_eight_equal_values_for_each_row_change_nothing(logits: Array) -> None:
    m, s = online_softmax(logits, 4)
    eight = [np.repeat(x[..., None], 8, axis=-1) for x in (m, s)]
    np.testing.assert_allclose(fused_focus(*eight), fused_focus(m, s), rtol=1e-14)
    np.testing.assert_array_equal(fused_max_logit(eight[0]), fused_max_logit(m))


def test_rows_that_see_nothing() -> None:
    m, s = online_softmax(np.full((1, 1, 1, 4), -np.inf), 2)
    assert (m.tolist(), s.tolist()) == ([[[-np.inf]]], [[[0.0]]])
    assert fused_focus(m, s).tolist() == [0.0]
    assert fused_focus(*online_softmax(np.full((1, 1, 1, 4), -1e9), 2)).tolist() == [0.25]


def test_a_nan_or_an_infinite_logit_shows() -> None:
    for bad in (np.nan, np.inf):
        logits = np.zeros((1, 2, 2, 4))
        logits[0, 1, 0, 3] = bad
        m, s = online_softmax(logits, 2)
        assert np.isnan(fused_focus(m, s)).tolist() == [False, True]
        assert fused_max_logit(m)[0] == 0.0
        assert not np.isfinite(fused_max_logit(m)[1])
