"""Keeps what probes compute out of the user's automatic mixed precision.

`auto_mixed_precision(net, "auto")` runs every matrix product below the model's `construct` in half
precision, those of a probe too: a sum of squares then ends at 65504. The graph compiler takes the
strategy from an attribute of the function, PyNative from a stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mindspore as ms

try:
    from mindspore._c_expression import amp
except ImportError:  # a MindSpore that does not tell
    amp = None


def keep_precision(function: Callable[..., Any]) -> None:
    """Inside this function and all that it calls, the graph compiler casts nothing."""
    if amp is not None:
        function.amp_strategy = amp.create_amp_strategy(  # type: ignore[attr-defined]
            amp.AmpLevel.AmpO0, ms.float32, [], []
        )


@contextmanager
def kept_precision() -> Iterator[None]:
    """Inside this block PyNative casts nothing."""
    if amp is None:
        yield
        return
    amp.push_amp_strategy(amp.AmpLevel.AmpO0, ms.float32, [], [])
    try:
        yield
    finally:
        amp.pop_amp_strategy()
