"""What goes into a LayerNorm or RMSNorm: moments over the features, averaged over the tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindspore import ops

from mindpulse.mindspore.measures.reduce import TINY, keep_nan, max_last, mean_last, require

_NOISE = 1e-12  # a variance this small beside the mean square is what float32 makes of a constant


def row(wanted: tuple[str, ...]) -> Callable[[Any], Any]:
    """The function f(x (..., features)) -> (len(wanted),).

    Raises:
        UsageError: an unknown tag.
    """
    require(wanted, _PARTS)
    parts = tuple(_PARTS[tag] for tag in wanted)
    needs_moments = any(tag in _OF_MOMENTS for tag in wanted)
    needs_squares = any(tag in _OF_SQUARES for tag in wanted)

    def measure(x: Any) -> Any:
        x = x.reshape(-1, x.shape[-1])
        mean, centred, squares = x, x, x
        if needs_moments:
            mean = mean_last(x)
            centred = x - mean.reshape(-1, 1)
        if needs_squares:
            squares = mean_last(x * x)
        values: tuple[Any, ...] = ()
        for part in parts:
            values = (*values, part(x, mean, centred, squares))
        return ops.stack(values)

    return measure


def _mean(x: Any, mean: Any, centred: Any, squares: Any) -> Any:
    return mean.mean()


def _variance(x: Any, mean: Any, centred: Any, squares: Any) -> Any:
    return mean_last(centred * centred).mean()


def _rms(x: Any, mean: Any, centred: Any, squares: Any) -> Any:
    return ops.sqrt(squares.mean())


def _max_abs(x: Any, mean: Any, centred: Any, squares: Any) -> Any:
    return keep_nan(max_last(max_last(ops.abs(x))), squares.mean())


def _kurtosis(x: Any, mean: Any, centred: Any, squares: Any) -> Any:
    square = centred * centred
    variance = mean_last(square)
    variance = ops.maximum(variance, _NOISE * squares)
    fourth = mean_last(square * square)
    return (fourth / (variance * variance + TINY)).mean()


_PARTS: dict[str, Callable[..., Any]] = {
    "norm_input_mean": _mean,
    "norm_input_variance": _variance,
    "norm_input_rms": _rms,
    "norm_input_max_abs": _max_abs,
    "norm_input_kurtosis": _kurtosis,
}
_OF_MOMENTS = ("norm_input_mean", "norm_input_variance", "norm_input_kurtosis")
_OF_SQUARES = ("norm_input_rms", "norm_input_max_abs", "norm_input_kurtosis")
