"""The references of the measures against independent calculations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import entropy

from mindpulse.catalogue import MEASURES, Measure, index
from mindpulse.catalogue.attention import attention_entropy, attention_focus
from mindpulse.catalogue.gradient import global_norm, param_norms
from mindpulse.errors import NameTakenError


@pytest.fixture
def p() -> np.ndarray:
    return softmax(np.random.default_rng(0).normal(0, 2, (2, 3, 5, 7)), axis=-1)


def test_focus_and_entropy_against_scipy(p: np.ndarray) -> None:
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


@pytest.mark.parametrize(
    ("row", "focus", "nats"), [([1.0, 0.0, 0.0], 1.0, 0.0), ([0.0, 0.0, 0.0], 0.0, 0.0)]
)
def test_extreme_rows_divide_by_nothing(row: list[float], focus: float, nats: float) -> None:
    p = np.array(row).reshape(1, 1, 1, 3)
    assert attention_focus(p)[0] == pytest.approx(focus, abs=1e-7)
    assert attention_entropy(p)[0] == pytest.approx(nats)
    assert attention_entropy(p.tolist())[0] == pytest.approx(nats)


def test_norms() -> None:
    gradients = [np.random.default_rng(1).normal(size=shape) for shape in [(3, 4), (5,), (2, 2, 2)]]
    flat = np.concatenate([g.ravel() for g in gradients])
    assert global_norm(gradients) == pytest.approx(np.linalg.norm(flat))
    np.testing.assert_allclose(param_norms(gradients), [np.linalg.norm(g) for g in gradients])
    assert global_norm([]) == 0.0
    assert np.isnan(global_norm([[np.nan]]))


def test_every_measure_says_what_it_is_and_makes_its_series() -> None:
    assert set(MEASURES) == {
        "train_loss", "learning_rate", "step_time_s", "grad_norm", "grad_norm_param",
        "attn_focus", "attn_entropy",
    }  # fmt: skip
    for measure in MEASURES.values():
        assert measure.formula
        assert measure.source
        assert ">>>" in (measure.reference.__doc__ or "")
        columns = [tuple("0" for _ in measure.axes)] if measure.axes else []
        assert measure.spec(columns).reduction == measure.reduction
    assert MEASURES["step_time_s"].spec().unit == "s"
    assert MEASURES["grad_norm_param"].spec([("w",)]).dtype == "float32"


def test_a_taken_name_is_refused_naming_both_definitions() -> None:
    def mine() -> float:
        return 0.0

    other = Measure("grad_norm", "mine", "", (), "mean", "me", mine)
    with pytest.raises(NameTakenError) as caught:
        index([*MEASURES.values(), other])
    assert "mindpulse.catalogue.gradient.global_norm" in str(caught.value)
    assert "mine" in str(caught.value)
