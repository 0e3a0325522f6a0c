"""The probe of the training cell: overflowed steps and the loss scale."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import Parameter, nn, ops

from mindpulse.mindspore.ring import HEAD, STAMP_PERIOD, Slot
from mindpulse.mindspore.tap.swap import bridge, complete


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

    base, members = bridge(plain)

    class Scaled(base):  # type: ignore[misc, valid-type]
        def construct(self, *args: Any) -> Any:
            # Both before the call: what the cell returns is already the scale of the next step, and
            # a graph does not order a read of the counter behind the branch with the optimizer.
            # Twice, so that they are real copies.
            twice, twice_step = self.scale_sense * 2.0, counter * 2
            out = self._mindpulse_scaled(*args)
            skipped = ops.stop_gradient(out[1]).astype(ms.int32).reshape(1)
            scale = (twice * 0.5).astype(ms.float32).reshape(1)
            step = twice_step // 2
            stamp = (step % STAMP_PERIOD + 1).astype(ms.float32)
            row = ops.concat((stamp, one, skipped.astype(ms.float32), scale))
            ops.scatter_update(rows, step % capacity, row.reshape(1, HEAD + 2))
            ops.assign_add(counter, skipped)
            return out

    complete(Scaled, plain, members, "_mindpulse_scaled")
    return Scaled
