"""set_clip: change the clipping threshold, where the training has one that can be reached.

A threshold that is a Python number is part of the compiled step. `ClipNorm` keeps it in a
Parameter, so that it can be changed while the step runs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops

from mindpulse.errors import UsageError
from mindpulse.mindspore.acting.verb import Args, Data, RefusedError
from mindpulse.mindspore.learning_rate import put, value_of

_numbers = itertools.count()
_EPSILON = 1e-6


class ClipNorm(nn.Cell):  # type: ignore[misc]
    """Clips gradients by their global norm: g * min(1, limit / (norm + 1e-6)).

    Use it in a training cell or a step function, in every mode; `set_clip` changes its limit
    without a new compilation. Inside a training cell it is found; for a step function hand it over:
    `attach(net, optimizer, clip=clip)`.

    Args:
        limit: the largest global L2 norm, above 0.

    Raises:
        UsageError: the limit is not a finite number above 0.

    Example:
        >>> # clip = ClipNorm(1.0)
        >>> # optimizer(clip(gradients))
    """

    def __init__(self, limit: float) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(limit, (int, float)) or not math.isfinite(limit) or limit <= 0:
            raise UsageError(f"limit {limit!r}: use a finite number above 0")
        name = f"mindpulse.clip{next(_numbers)}.limit"
        self.limit = Parameter(Tensor(limit, ms.float32), name=name, requires_grad=False)

    def construct(self, gradients: Any) -> Any:
        """A tuple of gradients -> the same, clipped, each in its own type."""
        squares = square_total(gradients)
        factor = ops.minimum(self.limit / (ops.sqrt(squares) + _EPSILON), _one)
        return _times_each(ops.partial(_times, factor), gradients)


_one = Tensor(1.0, ms.float32)
_times_each = ops.HyperMap()
_times = ops.MultitypeFuncGraph("mindpulse_times")


@_times.register("Tensor", "Tensor")  # type: ignore[untyped-decorator]
def _times_tensor(factor: Any, gradient: Any) -> Any:
    return gradient * factor.astype(gradient.dtype)


def square_total(gradients: Any) -> Any:
    """Sum of the squares of all gradients; a name of its own, behind which a probe can stand."""
    return ops.addn(tuple(map(_square_sum, gradients)))


def _square_sum(gradient: Any) -> Any:
    return ops.square(gradient.astype(ms.float32)).sum()


def find_limits(cells: Sequence[Any], given: Any = None) -> tuple[Parameter, ...]:
    """The thresholds that can be reached: the one given, else those of each `ClipNorm`.

    Args:
        cells: training cell and model; None is passed over.
        given: a `ClipNorm` or a Parameter; None where nothing was given.

    Raises:
        UsageError: what was given is neither.
    """
    if isinstance(given, ClipNorm):
        return (given.limit,)
    if isinstance(given, Parameter):
        return (given,)
    if given is not None:
        raise UsageError(f"clip={given!r}: give a ClipNorm, or the Parameter that is the threshold")
    found = [
        part.limit
        for cell in cells
        if cell is not None
        for _, part in cell.cells_and_names()
        if isinstance(part, ClipNorm)
    ]
    return tuple({id(limit): limit for limit in found}.values())


class SetClip:
    """Args: limit."""

    def __init__(self, limits: Sequence[Parameter]) -> None:
        self._limits = tuple(limits)

    def consider(self, args: Args) -> Data:
        """Refuses where no threshold can be reached."""
        if not self._limits:
            raise RefusedError(
                "no clipping threshold can be reached: clip with mindpulse.mindspore.ClipNorm in "
                "the training cell, or hand the threshold's Parameter over as clip="
            )
        return {}

    def do(self, args: Args, step: int) -> tuple[str, Data]:
        """Sets all thresholds."""
        self.consider(args)
        told: Data = {}
        for index, limit in enumerate(self._limits):
            name = "clip" if index == 0 else f"clip_{index}"
            before = value_of(limit)
            told |= {f"{name}_before": before, f"{name}_after": put(limit, args["limit"])}
        befores = ", ".join(f"{value:.6g}" for key, value in told.items() if "before" in key)
        return f"clipping at {befores} -> {args['limit']:.6g}", told

    def undo(self, args: Args, data: Data) -> tuple[str, Data]:
        """Sets the thresholds that were there before."""
        self.consider(args)
        told: Data = {}
        for index, limit in enumerate(self._limits):
            name = "clip" if index == 0 else f"clip_{index}"
            held = value_of(limit)
            told |= {f"{name}_before": held, f"{name}_after": put(limit, data[f"{name}_before"])}
        return f"clipping at {told['clip_before']:.6g} -> {told['clip_after']:.6g}", told
