"""The input of a normalisation: the operators against the NumPy references, in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor

from in_modes import Array, check_slope, run
from mindpulse.catalogue import activation as reference
from mindpulse.errors import UsageError
from mindpulse.mindspore.measures import norm
from nets import MODES

REFERENCES: dict[str, Callable[[Array], float]] = {
    "norm_input_mean": reference.input_mean,
    "norm_input_variance": reference.input_variance,
    "norm_input_rms": reference.input_rms,
    "norm_input_max_abs": reference.input_max_abs,
    "norm_input_kurtosis": reference.input_kurtosis,
}
TAGS = tuple(REFERENCES)
CLOSE = {"rtol": 5e-6, "atol": 2e-7}
KINDS = ["plain", "shifted", "outlier", "constant token", "zero", "one token", "inf", "nan"]


def values(kind: str) -> Array:
    """(batch, token, feature)."""
    x = np.random.default_rng(0).normal(size=(3, 7, 48)).astype(np.float32)
    if kind == "shifted":
        x += 20
    if kind == "outlier":
        x[..., 5] = 3000
    if kind == "constant token":
        x[1:] = 0.1
    if kind == "zero":
        x[:] = 0
    if kind == "one token":
        return x[0, 0]
    if kind in ("inf", "nan"):
        x[1, 2, 3] = float(kind)
    return x


def expected(x: Array, tags: tuple[str, ...] = TAGS) -> list[float]:
    return [REFERENCES[tag](x) for tag in tags]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_against_the_references(mode: str, kind: str) -> None:
    x = values(kind)
    np.testing.assert_allclose(run(mode, norm.row(TAGS), x), expected(x), **CLOSE)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wanted", [*((tag,) for tag in TAGS), TAGS[::-1]])
def test_any_choice_in_any_order(mode: str, wanted: tuple[str, ...]) -> None:
    x = values("plain")
    np.testing.assert_allclose(run(mode, norm.row(wanted), x), expected(x, wanted), **CLOSE)


@pytest.mark.parametrize("tag", TAGS)
def test_slopes(tag: str) -> None:
    check_slope(norm.row((tag,)), REFERENCES[tag], values("plain"))


def test_unknown_tag() -> None:
    with pytest.raises(UsageError, match="norm_input_mean"):
        norm.row(("norm_output_mean",))


def test_gradient_of_a_constant_token_is_finite() -> None:
    measure = norm.row(TAGS)

    def total(x: Any) -> Any:
        return measure(x).sum()

    assert np.isfinite(ms.grad(total)(Tensor(values("constant token"))).asnumpy()).all()
