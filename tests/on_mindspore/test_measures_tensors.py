"""Gradients and weights: the operators against the NumPy references, in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor

from in_modes import Array, run
from mindpulse.catalogue import gradient as reference
from mindpulse.errors import UsageError
from mindpulse.mindspore.measures import tensors
from nets import MODES

Shapes = list[tuple[int, ...]]
REFERENCES: dict[str, Callable[[list[Array]], Array]] = {
    "grad_max_abs": reference.max_abs,
    "grad_zero_share": reference.zero_share,
    "grad_nonfinite": reference.nonfinite,
}
TAGS = tuple(REFERENCES)
# Stacks of two sizes (one with shapes that differ), small and large singles, mixed in their order.
MIXED: Shapes = [
    (8,), (300, 500), (8,), (4, 4), (2, 4), (16,), (8,), (70001,), (16,), (2, 2, 4), (5,), (1,),
    (8,), (16,), (90, 100),
]  # fmt: skip
CHOICES: dict[str, Shapes] = {
    "mixed": MIXED,
    "one": [(3, 4)],
    "one large": [(300, 500)],
    "all stacked": [(6,)] * 5,
    "none stacked": [(6,), (7,), (8, 9)],
}


def values(shapes: Shapes, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=shape) * 10.0 ** rng.integers(-3, 3) for shape in shapes]
    for array in arrays:
        array[rng.random(array.shape) < 0.2] = 0
    return [array.astype(np.float32) for array in arrays]


def of_tuple(measure: Callable[[Any], Any]) -> Callable[..., Any]:
    def function(*arrays: Any) -> Any:
        return measure(arrays)

    return function


def half_squares(arrays: list[Array]) -> Array:
    return reference.param_norms(arrays) ** 2 / 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shapes", CHOICES.values(), ids=CHOICES)
def test_half_squares(mode: str, shapes: Shapes) -> None:
    arrays = values(shapes)
    found = run(mode, of_tuple(tensors.half_squares(shapes)), *arrays)
    np.testing.assert_allclose(found, half_squares(arrays), rtol=2e-5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shapes", CHOICES.values(), ids=CHOICES)
def test_details(mode: str, shapes: Shapes) -> None:
    arrays = values(shapes)
    wanted = TAGS[::-1]
    found = run(mode, of_tuple(tensors.details(shapes, wanted)), *arrays)
    want = [REFERENCES[tag](arrays) for tag in wanted]
    np.testing.assert_allclose(found, want, rtol=2e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [0, 1, 3, 10])
def test_a_bad_number_stays_in_its_tensor(mode: str, bad: float, where: int) -> None:
    arrays = values(MIXED)
    arrays[where].flat[2] = bad

    def both(*gradients: Any) -> Any:
        return ms.ops.concat((half(gradients).reshape(1, -1), detail(gradients)))

    half, detail = tensors.half_squares(MIXED), tensors.details(MIXED, TAGS)
    want = [half_squares(arrays), *(REFERENCES[tag](arrays) for tag in TAGS)]
    np.testing.assert_allclose(run(mode, both, *arrays), want, rtol=2e-5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [ms.float16, ms.bfloat16], ids=["float16", "bfloat16"])
def test_half_precision(mode: str, kind: Any) -> None:
    shapes: Shapes = [(8,), (8,), (2, 4), (8,), (300, 400), (40,)]
    arrays = values(shapes)
    measure = tensors.half_squares(shapes)

    def cast(*gradients: Any) -> Any:
        halves: tuple[Any, ...] = ()
        for gradient in gradients:
            halves = (*halves, gradient.astype(kind))
        return measure(halves)

    rounded = [Tensor(array).astype(kind).astype(ms.float32).asnumpy() for array in arrays]
    np.testing.assert_allclose(run(mode, cast, *arrays), half_squares(rounded), rtol=2e-5)


@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_large_tensors_are_summed_exactly(mode: str) -> None:
    """L2Loss on the CPU adds one number after the other: here it is off by 1e-3."""
    shape = (2048, 1024)
    array = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    found = run(mode, of_tuple(tensors.half_squares([shape])), array)
    np.testing.assert_allclose(found, half_squares([array]), rtol=2e-6)


def test_gradient_is_the_tensor_itself() -> None:
    arrays = values(MIXED)
    measure = tensors.half_squares(MIXED)

    def total(*gradients: Any) -> Any:
        return measure(gradients).sum()

    found = ms.grad(total, grad_position=tuple(range(len(MIXED))))(*map(Tensor, arrays))
    for gradient, array in zip(found, arrays, strict=True):
        np.testing.assert_allclose(gradient.asnumpy(), array, rtol=1e-5, atol=1e-6)


def test_layout() -> None:
    plan = tensors.layout(MIXED)
    assert plan.stacks == ((0, 2, 4, 6, 12), (3, 5, 8, 9, 13))
    assert plan.columns == (0, 2000, 0, 0, 0, 0, 0, 1, 0, 0, 5, 1, 0, 0, 1800)
    assert tensors.layout([(6,)] * 3).order is None


def test_more_tensors_than_a_loop_in_a_graph_can_have() -> None:
    shapes: Shapes = [(3,)] * 40 + [(n, 2) for n in range(1, 601)]
    arrays = values(shapes)
    found = run("graph", of_tuple(tensors.half_squares(shapes)), *arrays)
    np.testing.assert_allclose(found, half_squares(arrays), rtol=2e-5)


def test_unknown_tag() -> None:
    with pytest.raises(UsageError, match="grad_max_abs"):
        tensors.details([(3,)], ("grad_median",))
