"""Training cells of one's own: clipping, accumulating, a sink, two optimizers, a loss scale."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops

MICRO = 3  # micro-steps of one optimizer step


class Clipping(nn.TrainOneStepCell):
    """Clips before the optimizer, as many projects write it."""

    limit = 0.5

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        grads = self.grad_no_sens(self.network, self.weights)(*inputs)
        grads = ops.clip_by_global_norm(grads, self.limit)
        return ops.depend(loss, self.optimizer(grads))


class Inheriting(nn.TrainOneStepCell):
    """Adds something to what its base class does."""

    def construct(self, *inputs: Any) -> Any:
        return super().construct(*inputs) * 1.0


class Accumulating(nn.TrainOneStepCell):
    """Each call is a micro-step; each `MICRO`-th one runs the optimizer with the mean gradient."""

    def __init__(self, network: Any, optimizer: Any) -> None:
        super().__init__(network, optimizer)
        self.total = self.weights.clone(prefix="total", init="zeros")
        self.count = Parameter(Tensor(0, ms.int32), name="micro_count", requires_grad=False)

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        grads = self.grad_no_sens(self.network, self.weights)(*inputs)
        for index in range(len(grads)):
            ops.assign_add(self.total[index], grads[index] / MICRO)
        ops.assign_add(self.count, Tensor(1, ms.int32))
        if self.count % MICRO == 0:
            loss = ops.depend(loss, self.optimizer(self.ready(self.total)))
            for total in self.total:
                ops.assign(total, ops.zeros_like(total))
        return loss

    def ready(self, gradients: Any) -> Any:
        """What the optimizer gets of the mean gradient."""
        return gradients


class Sink(nn.Cell):
    """Several steps in one call of a graph, as a data sink makes them."""

    def __init__(self, network: Any, optimizer: Any) -> None:
        super().__init__(auto_prefix=False)
        self.one = nn.TrainOneStepCell(network, optimizer)

    def construct(self, ids: Any, labels: Any) -> Any:
        at, loss = Tensor(0, ms.int32), Tensor(0.0, ms.float32)
        while at < ids.shape[0]:
            loss = self.one(ids[at], labels[at])
            at = at + 1
        return loss


def scaled(network: Any, optimizer: Any, scale: float = 2.0**22, window: int = 2) -> Any:
    """The loss-scale cell with what makes it run on the CPU: its finite check in the graph."""
    manager = nn.DynamicLossScaleUpdateCell(scale, 2, window)
    cell = nn.TrainOneStepWithLossScaleCell(network, optimizer, manager)
    cell.ascend_910b_target = True
    cell._ascend_check_overflow_mode = "INFNAN_MODE"
    cell.enable_allfinite = False
    return cell


class TwoOptimizers(nn.Cell):
    """A training step in which each of two optimizers moves its own part of the weights."""

    def __init__(self, network: Any, first: Any, second: Any) -> None:
        super().__init__()
        self.network, self.first, self.second = network, first, second
        self.count = len(first.parameters)
        weights = ParameterTuple([*first.parameters, *second.parameters])
        self.gradients = ms.value_and_grad(network, None, weights)

    def construct(self, ids: Any, labels: Any) -> Any:
        loss, grads = self.gradients(ids, labels)
        loss = ops.depend(loss, self.first(grads[: self.count]))
        return ops.depend(loss, self.second(grads[self.count :]))
