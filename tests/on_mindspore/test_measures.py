"""The operators against the NumPy references, on the same tensors, in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from mindpulse.catalogue import attention as reference
from mindpulse.mindspore import measures
from nets import MODES

# float32 keeps 24 bits; the sums run over at most 64 keys and 24 rows.
TOLERANCE = 2e-6
MASKS = {"mask -1e4": -1e4, "mask -1e9": -1e9, "mask -inf": -np.inf, "mask lowest": -3e38}
KINDS = ["plain", "sharp", "uniform", "one key", "padded query", *MASKS]


def logits_of(kind: str) -> np.ndarray[Any, Any]:
    """Logits (batch, head, query, key) of shape (3, 4, 8, 64)."""
    logits = np.random.default_rng(1).normal(size=(3, 4, 8, 64))
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
    return logits.astype(np.float32)


def probabilities(kind: str) -> np.ndarray[Any, Any]:
    """Softmax of these logits over the keys, float32."""
    logits = logits_of(kind).astype(np.float64)
    p = np.exp(logits - logits.max(-1, keepdims=True))
    return (p / p.sum(-1, keepdims=True)).astype(np.float32)


def shown(kind: str) -> np.ndarray[Any, Any]:
    """Which keys the mask leaves visible, (key,) or (query, key)."""
    keys = np.arange(64)
    if kind == "padded query":
        return (np.arange(8) < 5)[:, None] & (keys >= 0)
    return keys < (40 if kind in MASKS else 1 if kind == "one key" else 64)


def run(mode: str, function: Callable[..., Any], *arrays: np.ndarray[Any, Any]) -> Any:
    tensors = [Tensor(array) for array in arrays]
    if mode == "jit":
        return ms.jit(function)(*tensors).asnumpy()
    if mode == "pynative":
        return function(*tensors).asnumpy()

    class Net(nn.Cell):
        def construct(self, *args: Any) -> Any:
            return function(*args)

    ms.set_context(mode=ms.GRAPH_MODE)
    return Net()(*tensors).asnumpy()


def entropy(p: Any, logits: Any) -> Any:
    return measures.attention_entropy(p, measures.visible_keys(logits))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_focus_and_entropy(mode: str, kind: str) -> None:
    p = probabilities(kind)
    close = {"rtol": TOLERANCE, "atol": TOLERANCE}
    np.testing.assert_allclose(
        run(mode, measures.attention_focus, p), reference.attention_focus(p), **close
    )
    np.testing.assert_allclose(
        run(mode, entropy, p, logits_of(kind)), reference.attention_entropy(p, shown(kind)), **close
    )


def test_known_values() -> None:
    for kind, want in (("uniform", 1.0), ("one key", 0.0)):
        found = run("pynative", entropy, probabilities(kind), logits_of(kind))
        np.testing.assert_allclose(found, want, atol=TOLERANCE)
    focus = run("pynative", measures.attention_focus, probabilities("uniform"))
    np.testing.assert_allclose(focus, 1 / 64, rtol=TOLERANCE)


def test_measures_are_differentiable() -> None:
    def total(logits: Any) -> Any:
        p = ops.softmax(logits, -1)
        return entropy(p, logits).sum() + measures.attention_focus(p).sum()

    gradient = ms.grad(total)(Tensor(logits_of("plain"))).asnumpy()
    assert np.isfinite(gradient).all()
    assert np.abs(gradient).max() > 0


@pytest.mark.parametrize(
    ("shape", "heads", "want"),
    [((6, 5, 7), 3, (2, 3, 5, 7)), ((6, 5, 7), 0, (6, 1, 5, 7)), ((2, 3, 5, 7), 9, (2, 3, 5, 7))],
)
def test_folded_heads(shape: tuple[int, ...], heads: int, want: tuple[int, ...]) -> None:
    assert measures.four_axes(Tensor(np.zeros(shape, np.float32)), heads).shape == want
