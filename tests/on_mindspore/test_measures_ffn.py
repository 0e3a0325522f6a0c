"""The inside of a feed-forward block: the operators against the NumPy references, in every mode."""

from __future__ import annotations

import numpy as np
import pytest

from in_modes import Array, run
from mindpulse.catalogue import activation as reference
from mindpulse.catalogue.histogram import BINS, HISTOGRAM_EDGES
from mindpulse.errors import UsageError
from mindpulse.mindspore.measures import ffn
from nets import MODES

TAGS = ("ffn_zero_share", "ffn_dead_share", "ffn_histogram")
CLOSE = {"rtol": 1e-6, "atol": 1e-7}
KINDS = ["relu", "gelu", "all dead", "none zero", "far apart", "inf", "nan"]


def values(kind: str) -> Array:
    """(batch, token, unit); unit 3 and 9 are dead where the kind has zeros."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 7, 32))
    if kind == "gelu":
        x = x * 0.5 * (1 + np.tanh(0.8 * x))
    elif kind == "far apart":
        x = x * 2.0 ** rng.integers(-30, 20, size=x.shape)
    elif kind == "all dead":
        x = np.zeros_like(x)
    elif kind != "none zero":
        x = np.maximum(x, 0)
        x[..., [3, 9]] = 0
    if kind in ("inf", "nan"):
        x[1, 2, 3] = float(kind)
        x[1, 2, 4] = -float(kind)
    return x.astype(np.float32)


def expected(x: Array) -> Array:
    return np.concatenate(
        [[reference.unit_zero_share(x), reference.dead_share(x)], reference.histogram(x)]
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_against_the_references(mode: str, kind: str) -> None:
    x = values(kind)
    np.testing.assert_allclose(run(mode, ffn.row(TAGS), x), expected(x), **CLOSE)


@pytest.mark.parametrize("mode", MODES)
def test_an_edge_is_in_the_bin_above(mode: str) -> None:
    """Powers of two are common in bfloat16, and so are its neighbours just below them."""
    edges = np.array(HISTOGRAM_EDGES)
    below = edges * (1 - 2.0**-9)
    x = np.concatenate([edges, -edges, below, -below]).astype(np.float32)[None]
    found = run(mode, ffn.row(("ffn_histogram",)), x)
    np.testing.assert_allclose(found, reference.histogram(x), **CLOSE)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wanted", [*((tag,) for tag in TAGS), TAGS[::-1]])
def test_any_choice_in_any_order(mode: str, wanted: tuple[str, ...]) -> None:
    x = values("relu")
    split = dict(zip(TAGS, np.split(expected(x), [1, 2]), strict=True))
    found = run(mode, ffn.row(wanted), x)
    np.testing.assert_allclose(found, np.concatenate([split[tag] for tag in wanted]), **CLOSE)
    assert found.size == sum(BINS if tag == "ffn_histogram" else 1 for tag in wanted)


def test_unknown_tag() -> None:
    with pytest.raises(UsageError, match="ffn_zero_share"):
        ffn.row(("ffn_mean",))
