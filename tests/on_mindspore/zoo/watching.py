"""Trains a model with a tap on each of its places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from mindpulse.mindspore.structure import Place, find_places
from mindpulse.mindspore.tap import tap

Numbers = dict[str, Any]


class Slots:
    """For each planted place a Parameter: largest input, mean and mean square of the node."""

    def __init__(self, places: list[Place]) -> None:
        self.slots = {
            place.path: Parameter(
                Tensor(np.zeros(3), ms.float32), name=f"slot{number}", requires_grad=False
            )
            for number, place in enumerate(places)
        }
        self.taps = [tap(place, self._watch(place)) for place in places]

    def _watch(self, place: Place) -> Callable[[Any, Any, Any], None]:
        slot, of_input = self.slots[place.path], place.side == "input"

        def watch(training: Any, before: Any, after: Any) -> None:
            x = before if of_input else after
            before = ops.stop_gradient(before).astype(ms.float32)
            x = ops.stop_gradient(x).astype(ms.float32)
            ops.assign(slot, ops.stack((ops.amax(before), x.mean(), (x * x).mean())))

        return watch

    def read(self) -> Numbers:
        return {path: slot.asnumpy().copy() for path, slot in self.slots.items()}


def train(
    net: Any, batches: list[Any], mode: str, after_step: Callable[[], None]
) -> tuple[list[float], dict[str, bytes]]:
    """Losses and the bytes of all weights after a few steps."""
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    optimizer = nn.AdamWeightDecay(net.trainable_params(), 1e-2)
    if mode == "graph":
        step = nn.TrainOneStepCell(net, optimizer)
        step.set_train()
    else:
        gradients = ms.value_and_grad(net, None, optimizer.parameters)

        def step(*batch: Any) -> Any:
            loss, grads = gradients(*batch)
            optimizer(grads)
            return loss

        step = ms.jit(step) if mode == "jit" else step
    losses = []
    for batch in batches:
        losses.append(float(step(*batch).asnumpy()))
        after_step()
    return losses, {p.name: p.asnumpy().tobytes() for p in net.get_parameters()}


def planted(net: Any) -> list[Place]:
    return [place for place in find_places(net) if place.state == "planted"]


def same_but_for_the_order_of_sums(tapped: dict[str, bytes], plain: dict[str, bytes]) -> None:
    """Equal up to rounding.

    In a graph, what a tap writes comes before later reads of weights, and the compiler follows that
    order when it adds up gradients. Where a tapped node is computed early and used late (a router
    before its experts, an encoder before its decoder), its input's gradients are the same terms in
    another order.
    """
    for name, value in plain.items():
        pair = (np.frombuffer(each, np.float32) for each in (tapped[name], value))
        np.testing.assert_allclose(*pair, atol=1e-5, err_msg=name)
