"""The probe of a learning-rate schedule."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import Parameter, ops


def schedule_probe(plain: type, factor: Parameter, used: Parameter) -> type:
    """A subclass that multiplies the schedule by `factor` and keeps in `used` what came out.

    Both are float32 of shape (1,). The factor is 1.0 until an action changes it; multiplying by 1.0
    changes no bit.
    """

    class Probed(plain):  # type: ignore[misc]
        def construct(self, global_step: Any) -> Any:
            rate = super().construct(global_step)
            rate = rate * factor.reshape(()).astype(rate.dtype)
            ops.assign(used, rate.astype(ms.float32).reshape(1))
            return rate

    Probed.__name__, Probed.__qualname__ = plain.__name__, plain.__qualname__
    return Probed
