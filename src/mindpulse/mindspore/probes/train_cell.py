"""The probe of the training cell: overflowed steps and the loss scale."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import Parameter, nn, ops

from mindpulse.mindspore.ring import HEAD, STAMP_PERIOD, Slot


def scales_loss(cell: Any) -> bool:
    """Whether a training cell returns (loss, overflow, loss scale, ...)."""
    return isinstance(cell, nn.TrainOneStepWithLossScaleCell)


def loss_scale_probe(plain: type, slot: Slot, counter: Parameter, capacity: int) -> type:
    """A subclass whose construct keeps (overflow, loss scale) of the step that just ended.

    The optimizer ends a step by advancing the counter. It is not called when gradients overflow, so
    such a step is ended here.
    """
    rows = slot.rows
    one = ms.Tensor([1.0], ms.float32)

    class Scaled(plain):  # type: ignore[misc]
        def construct(self, *args: Any) -> Any:
            # Before the call: what the cell returns is already the scale of the next step. Twice,
            # so that it is a real copy.
            twice = self.scale_sense * 2.0
            out = super().construct(*args)
            skipped = ops.stop_gradient(out[1]).astype(ms.int32).reshape(1)
            scale = (twice * 0.5).astype(ms.float32).reshape(1)
            step = counter - 1 + skipped
            stamp = (step % STAMP_PERIOD + 1).astype(ms.float32)
            row = ops.concat((stamp, one, skipped.astype(ms.float32), scale))
            ops.scatter_update(rows, step % capacity, row.reshape(1, HEAD + 2))
            ops.assign_add(counter, skipped)
            return out

    Scaled.__name__, Scaled.__qualname__ = plain.__name__, plain.__qualname__
    return Scaled
