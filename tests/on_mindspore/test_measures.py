"""Attention: the operators against the NumPy references, on the same tensors, in every mode."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

from in_modes import Array, check_slope, run
from mindpulse.catalogue import attention as reference
from mindpulse.errors import UsageError
from mindpulse.mindspore.measures import attention
from nets import MODES

# float32 keeps 24 bits; the sums run over at most 64 keys and 24 rows.
CLOSE = {"rtol": 2e-6, "atol": 2e-6}
TAGS = (
    "attn_focus",
    "attn_entropy",
    "attn_sparsity",
    "attn_max_logit",
    "attn_sink_mass",
    "attn_future_mass",
    "attn_padding_mass",
)
MASKS = {
    "mask -1e4": -1e4,
    "mask -1e9": -1e9,
    "mask -inf": -np.inf,
    "mask lowest": np.finfo(np.float32).min,
}
KINDS = ["plain", "sharp", "uniform", "one key", "padded query", "blind query", "causal", *MASKS]
SHAPES = {
    "one head": (2, 1, 6, 6),
    "GQA": (2, 6, 6, 6),
    "cross": (2, 3, 5, 9),
    "more queries": (2, 3, 9, 5),
    "one row": (1, 2, 1, 7),
    "one key": (2, 2, 3, 1),
}


def logits_of(kind: str, shape: tuple[int, ...] = (3, 4, 8, 64)) -> Array:
    """Logits (batch, head, query, key)."""
    logits = np.random.default_rng(1).normal(size=shape)
    if kind == "sharp":
        logits *= 50
    if kind == "uniform":
        logits[:] = 0
    if kind in MASKS:
        logits[..., 40:] += MASKS[kind]
    if kind == "one key":
        logits[..., 1:] = -1e9
    if kind == "padded query":
        logits[:, :, 5:] -= 1e9
    if kind == "blind query":
        logits[:, :, 5:] = -np.inf
    if kind == "causal":
        logits[..., np.arange(64) > np.arange(8)[:, None] + 56] = -1e4
    return np.clip(logits, np.finfo(np.float32).min, None).astype(np.float32)


def probabilities(logits: Array) -> Array:
    """Softmax over the keys, float32; a row of -inf gives zeros."""
    top = logits.max(-1, keepdims=True).astype(np.float64)
    p = np.exp(logits - np.where(np.isfinite(top), top, 0.0))
    return (p / np.maximum(p.sum(-1, keepdims=True), 1e-300)).astype(np.float32)


def padding_of(p: Array) -> Array:
    return (np.random.default_rng(2).random((p.shape[0], p.shape[3])) < 0.3).astype(np.float32)


def expected(p: Array, logits: Array, padding: Array) -> Array:
    """The references of all `TAGS`, (tag, head)."""
    shown = reference.visible(logits)
    return np.stack(
        [
            reference.attention_focus(p),
            reference.attention_entropy(p, shown),
            reference.attention_sparsity(p, shown),
            reference.attention_max_logit(logits),
            reference.attention_sink_mass(p),
            reference.attention_future_mass(p),
            reference.attention_padding_mass(p, padding),
        ]
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_masks(mode: str, kind: str) -> None:
    logits = logits_of(kind)
    p = probabilities(logits)
    padding = padding_of(p)
    found = run(mode, attention.rows(TAGS), p, logits, padding)
    np.testing.assert_allclose(found, expected(p, logits, padding), **CLOSE)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_shapes(mode: str, shape: tuple[int, ...]) -> None:
    logits = logits_of("plain", shape)
    p = probabilities(logits)
    padding = padding_of(p)
    found = run(mode, attention.rows(TAGS), p, logits, padding)
    np.testing.assert_allclose(found, expected(p, logits, padding), **CLOSE)
    assert np.isnan(found[5]).all() == (shape[2] > shape[3])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "wanted", [(tag,) for tag in TAGS] + [TAGS[::-1], ("attn_sink_mass", "attn_entropy")]
)
def test_any_choice_in_any_order(mode: str, wanted: tuple[str, ...]) -> None:
    logits = logits_of("mask -1e4")
    p = probabilities(logits)
    padding = padding_of(p)
    want = dict(zip(TAGS, expected(p, logits, padding), strict=True))
    found = run(mode, attention.rows(wanted), p, logits, padding)
    np.testing.assert_allclose(found, [want[tag] for tag in wanted], **CLOSE)


@pytest.mark.parametrize("mode", MODES)
def test_without_padding_only_its_measure_is_unknown(mode: str) -> None:
    measure = attention.rows(TAGS)

    def without(p: Any, logits: Any) -> Any:
        return measure(p, logits, None)

    logits = logits_of("plain")
    found = run(mode, without, probabilities(logits), logits)
    assert np.isnan(found).all(axis=1).tolist() == [tag == "attn_padding_mass" for tag in TAGS]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [ms.float16, ms.bfloat16], ids=["float16", "bfloat16"])
def test_half_precision_cast_by_the_caller(mode: str, kind: Any) -> None:
    measure = attention.rows(TAGS)

    def cast(p: Any, logits: Any, padding: Any) -> Any:
        halves = p.astype(kind), logits.astype(kind)
        return measure(halves[0].astype(ms.float32), halves[1].astype(ms.float32), padding)

    logits = logits_of("mask -1e4")
    p = probabilities(logits)
    padding = padding_of(p)
    rounded = [Tensor(array).astype(kind).astype(ms.float32).asnumpy() for array in (p, logits)]
    found = run(mode, cast, p, logits, padding)
    np.testing.assert_allclose(found, expected(*rounded, padding), **CLOSE)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_number_stays_in_its_head(mode: str, bad: float) -> None:
    logits = logits_of("plain")
    p = probabilities(logits)
    padding = padding_of(p)
    want = expected(p, logits, padding)
    logits[1, 2, 3, 4] = bad
    p[1, 2, 3] = np.nan
    found = run(mode, attention.rows(TAGS), p, logits, padding)
    assert np.isnan(found[:, 2]).all()
    others = [0, 1, 3]
    np.testing.assert_allclose(found[:, others], want[:, others], **CLOSE)


@pytest.mark.parametrize("mode", MODES)
def test_a_single_nan_in_p_is_enough(mode: str) -> None:
    logits = logits_of("plain")
    p = probabilities(logits)
    padding = padding_of(p)
    p[0, 1, 7, 63] = np.nan
    found = run(mode, attention.rows(TAGS), p, logits, padding)
    assert np.isnan(found).tolist() == [[False, True, False, False]] * len(TAGS)


@pytest.mark.parametrize("mode", MODES)
def test_limit_of_sparsity(mode: str) -> None:
    below, limit = np.nextafter(np.float32(1e-3), np.float32(0)), np.float32(1e-3)
    p = np.array([[[[0.5, below, limit, 0.4]]]], np.float32)
    found = run(mode, attention.rows(("attn_sparsity",)), p, np.zeros_like(p), np.zeros((1, 4)))
    np.testing.assert_allclose(found, [[0.25]])


def test_known_values() -> None:
    uniform, one = (probabilities(logits_of(kind)) for kind in ("uniform", "one key"))
    wanted = ("attn_focus", "attn_entropy", "attn_sink_mass")
    for p, kind, want in ((uniform, "uniform", (1 / 64, 1, 1 / 64)), (one, "one key", (1, 0, 1))):
        found = run("pynative", attention.rows(wanted), p, logits_of(kind), padding_of(p))
        np.testing.assert_allclose(found, np.repeat(np.array(want)[:, None], 4, 1), atol=2e-6)


def test_unknown_tag() -> None:
    with pytest.raises(UsageError, match="'attn_hope' is not measured here: use one of attn_focus"):
        attention.rows(("attn_focus", "attn_hope"))


@pytest.mark.parametrize("tag", [tag for tag in TAGS if tag != "attn_sparsity"])
def test_slopes(tag: str) -> None:
    measure = attention.rows((tag,))
    start = logits_of("plain", (2, 3, 5, 6))
    padding = padding_of(start)

    def of_logits(logits: Any) -> Any:
        return measure(ops.softmax(logits, -1), logits, Tensor(padding))

    def in_numpy(logits: Array) -> Any:
        p = np.exp(logits.astype(np.float64))
        p = p / p.sum(-1, keepdims=True)
        return expected(p, logits, padding)[TAGS.index(tag)]

    check_slope(of_logits, in_numpy, start)


def test_gradient_under_a_mask_is_finite() -> None:
    measure = attention.rows(("attn_focus", "attn_entropy"))

    def total(logits: Any) -> Any:
        return measure(ops.softmax(logits, -1), logits, None).sum()

    for kind in ("mask -1e9", "sharp", "one key", "blind query"):
        assert np.isfinite(ms.grad(total)(Tensor(logits_of(kind))).asnumpy()).all()


@pytest.mark.parametrize(
    ("shape", "heads", "want"),
    [((6, 5, 7), 3, (2, 3, 5, 7)), ((6, 5, 7), 0, (6, 1, 5, 7)), ((2, 3, 5, 7), 9, (2, 3, 5, 7))],
)
def test_folded_heads(shape: tuple[int, ...], heads: int, want: tuple[int, ...]) -> None:
    assert attention.four_axes(Tensor(np.zeros(shape, np.float32)), heads).shape == want
