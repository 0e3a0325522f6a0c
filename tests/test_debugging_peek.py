"""`mindpulse.peek`: values against NumPy, one copy, odd tensors, and what cannot be looked at."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mindpulse
from mindpulse.debugging.picture import COLUMNS, ROWS, picture
from mindpulse.debugging.statistics import PIECE, SAMPLE, statistics
from mindpulse.errors import UsageError

RNG = np.random.default_rng(5)


class Device:
    """A tensor of a framework: counts the copies that it is asked for."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)
        self.copies = 0
        self.dtype, self.device = "Float32", "Ascend:3"

    def asnumpy(self) -> Any:
        """The device's memory itself, as MindSpore hands out on the CPU."""
        self.copies += 1
        return self.array


class Torch:
    """The four methods of a torch tensor that are used; torch itself is not installed here."""

    def __init__(self, array: Any, dtype: str = "torch.float32") -> None:
        self.array, self.dtype, self.device = np.asarray(array), dtype, "cuda:0"
        self.asked: list[str] = []

    def detach(self) -> Torch:
        """Itself."""
        self.asked.append("detach")
        return self

    def cpu(self) -> Torch:
        """Itself."""
        self.asked.append("cpu")
        return self

    def float(self) -> Torch:
        """Itself, told."""
        self.asked.append("float")
        return self

    def numpy(self) -> Any:
        """The array."""
        if self.dtype == "torch.bfloat16" and "float" not in self.asked:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.array


@given(
    hnp.arrays(
        st.sampled_from(["f2", "f4", "f8", "i1", "i8", "u2", "?"]),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9),
        elements={"allow_nan": True, "allow_infinity": True},
    )
)  # fmt: skip
def test_statistics_are_those_of_numpy(array: Any) -> None:
    found = mindpulse.peek(array)
    finite = array[np.isfinite(array)]
    assert found.shape == array.shape
    assert found.nonfinite == array.size - finite.size
    assert found.zeros == array.size - np.count_nonzero(array)
    if finite.size:
        wide = finite.astype(np.float64)
        assert (found.min, found.max) == (finite.min(), finite.max())
        with np.errstate(over="ignore", invalid="ignore"):
            np.testing.assert_allclose(found.mean, wide.mean(), rtol=1e-9, atol=1e-300)
            if np.abs(wide).max() < 1e150:
                np.testing.assert_allclose(found.std, wide.std(), rtol=1e-6, atol=1e-9)
            middle = np.quantile(wide, 0.5)
        np.testing.assert_allclose(found.quantiles[0.5], middle, rtol=1e-9)
    assert repr(found)
    assert found._repr_html_()


def test_whole_numbers_beyond_floats_keep_their_digits() -> None:
    assert mindpulse.peek(np.array([2**62 + 1, 0])).max == 2**62 + 1


def test_several_pieces_are_one_array() -> None:
    array = RNG.normal(1e3, 1, 2 * PIECE + 77).astype(np.float32)
    array[[3, PIECE + 1]] = np.nan, np.inf
    array[-5:] = 0
    found, wide = mindpulse.peek(array), array[np.isfinite(array)].astype(np.float64)
    assert (found.statistics.nan, found.statistics.posinf) == (1, 1)
    assert found.zeros == 5
    np.testing.assert_allclose([found.mean, found.std], [wide.mean(), wide.std()], rtol=1e-9)
    assert found.statistics.sampled
    np.testing.assert_allclose(found.quantiles[0.5], np.median(wide), rtol=1e-4)
    assert "of a sample" in repr(found)


def test_half_precision_does_not_overflow() -> None:
    found = mindpulse.peek(np.full((300, 300), 60_000, np.float16))
    assert (found.mean, found.std) == (60_000.0, 0.0)


def test_one_copy_and_a_copy_of_its_own() -> None:
    tensor = Device(np.ones((4, 5), np.float32))
    found = mindpulse.peek(tensor, "x")
    repr(found), found._repr_html_(), found.quantiles
    assert tensor.copies == 1
    tensor.array[:] = 7
    assert found.array.max() == 1.0
    assert repr(found).splitlines()[0] == "x: Float32 (4, 5) on Ascend:3, 80 B"


def test_torch_tensors() -> None:
    found = mindpulse.peek(Torch(np.ones((2, 2), np.float32), "torch.bfloat16"))
    assert (found.dtype, found.device, found.nbytes) == ("torch.bfloat16", "cuda:0", 8)
    assert found.mean == 1.0


def test_memory_beside_a_large_array_is_bounded() -> None:
    array = np.zeros(8_000_000, np.float32)
    tracemalloc.start()
    try:
        statistics(array)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * max(PIECE, SAMPLE)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("words", "'words'"),
        (None, "None"),
        ({"a": 1}, "holds no numbers"),
        ([object()], "holds no numbers"),
        ([[1, 2], [3]], "cannot be copied"),
    ],
)  # fmt: skip
def test_what_holds_no_numbers_is_refused(given: Any, told: str) -> None:
    with pytest.raises(UsageError, match=r"holds no numbers|cannot be copied") as caught:
        mindpulse.peek(given)
    assert told in str(caught.value)


def test_a_tensor_without_a_value_is_told() -> None:
    class Abstract:
        dtype = "Float32"

        def asnumpy(self) -> Any:
            raise RuntimeError("tensor has no value while the graph is compiled")

    with pytest.raises(UsageError, match="cannot be copied to the host: RuntimeError: tensor has"):
        mindpulse.peek(Abstract())


def test_the_map_is_the_mean_of_blocks() -> None:
    array = RNG.normal(size=(2, 3, 2 * ROWS, 3 * COLUMNS))
    found = picture(array)
    assert found is not None
    assert (found.where, found.shape) == ("[0, 0, :, :]", (2 * ROWS, 3 * COLUMNS))
    blocks = array[0, 0].reshape(ROWS, 2, COLUMNS, 3).mean((1, 3))
    np.testing.assert_allclose(found.cells, blocks)
    array[0, 0, 0, 0] = np.nan
    marked = picture(array)
    assert marked is not None
    assert marked.text()[0][0] == "!"
    assert "#d62728" in marked.svg()
    assert sum(line.count("!") for line in marked.text()) == 1


@pytest.mark.parametrize("array", [np.empty((0, 3)), np.array([]), np.empty((2, 0, 4))])
def test_empty_tensors(array: Any) -> None:
    found = mindpulse.peek(array)
    assert "empty" in repr(found)
    assert "empty" in found._repr_html_()
    assert found.picture is None
    assert np.isnan(found.mean)


def test_numbers_without_axes_and_constants() -> None:
    assert mindpulse.peek(3).max == 3
    assert mindpulse.peek(np.float32(0.5)).short() == "float32 () mean=0.5 std=0 min=0.5 max=0.5"
    flat = mindpulse.peek(np.full((3, 3), 2.0))
    assert flat.picture is not None
    assert set("".join(flat.picture.text())) == {" "}


def test_complex_numbers_by_magnitude() -> None:
    found = mindpulse.peek(np.array([3 + 4j, 0]))
    assert (found.max, found.min, found.zeros) == (5.0, 0.0, 1)


def test_views_that_are_not_contiguous() -> None:
    array = np.arange(24.0).reshape(4, 6)
    found = mindpulse.peek(array.T[::2])
    np.testing.assert_array_equal(found.array, array.T[::2])
    assert found.array.flags.c_contiguous
