"""Optimizers of every kind, parameter groups, schedules, and models of which only a part trains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import ParameterTuple, mint, nn, ops
from mindspore.experimental import optim

from mindpulse.mindspore.learning_rate import find_learning_rates
from nets import Training, batches
from ways import Builder, as_numpy, builder, expected, seed, small_net, twins
from ways_cells import TwoOptimizers
from ways_nets import Decoder, with_adapters

STEPS = 3


class Lion(nn.Optimizer):
    """An optimizer of one's own (Chen et al. 2023, arXiv 2302.06675)."""

    def __init__(self, parameters: Any, learning_rate: float) -> None:
        super().__init__(learning_rate, parameters)
        self.momentum = self.parameters.clone(prefix="lion", init="zeros")

    def construct(self, gradients: Any) -> Any:
        rate = self.get_lr()
        for index in range(len(gradients)):
            momentum, gradient = self.momentum[index], gradients[index]
            ops.assign_sub(self.parameters[index], rate * ops.sign(momentum * 0.9 + gradient * 0.1))
            ops.assign(momentum, momentum * 0.99 + gradient * 0.01)
        return gradients


def grouped(parameters: Any) -> Any:
    """Weights decay and follow a schedule, the rest has a constant rate."""
    return nn.AdamWeightDecay(
        [
            {"params": [p for p in parameters if p.ndim < 2], "lr": 1e-3},
            {
                "params": [p for p in parameters if p.ndim > 1],
                "lr": nn.ExponentialDecayLR(1e-2, 0.5, 1),
                "weight_decay": 0.1,
            },
        ],
        1e-2,
    )


def halving(step: int) -> float:
    return 1e-2 * 0.5**step


OPTIMIZERS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "SGD": (lambda p: nn.SGD(p, 0.1, momentum=0.9, weight_decay=1e-3), [0.1] * STEPS),
    "Momentum": (lambda p: nn.Momentum(p, nn.ExponentialDecayLR(1e-2, 0.5, 1), 0.9), halving),
    "Adam": (lambda p: nn.Adam(p, [0.02, 0.01, 0.03]), [0.02, 0.01, 0.03]),
    "AdaFactor": (
        lambda p: nn.AdaFactor(p, 1e-2, scale_parameter=False, relative_step=False),
        [1e-2] * STEPS,
    ),
    "Lion": (lambda p: Lion(p, 1e-2), [1e-2] * STEPS),
    "groups": (grouped, [[1e-3, halving(step)] for step in range(STEPS)]),
    "experimental.AdamW": (lambda p: optim.AdamW(p, lr=1e-2), [1e-2] * STEPS),
    "experimental.SGD": (lambda p: optim.SGD(p, lr=1e-2), [1e-2] * STEPS),
    "mint.Adam": (lambda p: mint.optim.Adam(p, lr=1e-2), [1e-2] * STEPS),
    "mint.SGD": (lambda p: mint.optim.SGD(p, lr=1e-2), [1e-2] * STEPS),
}

# On the CPU the update of these does nothing in PyNative.
REFERENCES: dict[str, Callable[[Any], Any]] = {
    "mint.Adam": lambda p: optim.Adam(p, lr=1e-2),
    "mint.SGD": lambda p: optim.SGD(p, lr=1e-2),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_in_a_graph(name: str, tmp_path: Path) -> None:
    make, rates = OPTIMIZERS[name]
    run, _ = twins(builder("graph", optimizer=make), batches(STEPS), tmp_path)
    check(run, REFERENCES.get(name, make), rates)


@pytest.mark.parametrize(
    ("name", "how"),
    [("Momentum", "pynative"), ("groups", "pynative"), ("experimental.AdamW", "pynative"),
     ("Lion", "pynative"), ("groups", "jit"), ("experimental.AdamW", "jit"), ("mint.SGD", "jit")],
)  # fmt: skip
def test_an_optimizer_in_a_function(name: str, how: str, tmp_path: Path) -> None:
    make, rates = OPTIMIZERS[name]
    run, _ = twins(builder(how, optimizer=make), batches(STEPS), tmp_path)
    check(run, REFERENCES.get(name, make), rates)


def check(run: Any, make: Callable[[Any], Any], rates: Any) -> None:
    expected(builder("pynative", optimizer=make), batches(STEPS)).check(run)
    values = [rates(step) for step in range(STEPS)] if callable(rates) else rates
    # Beside a schedule MindSpore computes a constant rate as rate + 1 - 1, in float32.
    np.testing.assert_allclose(run.series("learning_rate").values, values, rtol=1e-5, atol=1e-7)


# -- two optimizers --------------------------------------------------------------------------------


def two(how: str) -> Builder:
    """Adam for the attention, SGD for the rest."""

    def build() -> Training:
        seed(how)
        net = small_net()
        net.set_train()
        inside = [p for p in net.trainable_params() if "attention" in p.name]
        rest = [p for p in net.trainable_params() if "attention" not in p.name]
        first, second = nn.AdamWeightDecay(inside, 1e-2), nn.SGD(rest, 0.1)
        cell = TwoOptimizers(net, first, second)
        cell.set_train()
        if how == "graph":
            return Training(net, [first, second], cell, lambda *batch: cell(*batch))
        return Training(net, [first, second], None, ms.jit(cell) if how == "jit" else cell)

    return build


@pytest.mark.parametrize("how", ["graph", "jit", "pynative"])
def test_two_optimizers(how: str, tmp_path: Path) -> None:
    """One step, one row: the gradients of both side by side."""
    run, _ = twins(two(how), batches(STEPS), tmp_path)
    training = two("pynative")()
    parameters = [p for optimizer in training.optimizer for p in optimizer.parameters]
    gradients = ms.value_and_grad(training.net, None, ParameterTuple(parameters))
    norms = []
    for batch in batches(STEPS):
        _, grads = gradients(*batch)
        norms.append([np.linalg.norm(as_numpy(grad).astype(np.float64)) for grad in grads])
        training.step(*batch)
    series = run.series("grad_norm_param")
    assert series.labels[:, 0].tolist() == [p.name for p in parameters]
    assert series.steps.tolist() == list(range(1, STEPS + 1))
    np.testing.assert_allclose(series.values, norms, rtol=2e-3, atol=2e-5)
    rates = run.series("learning_rate").values
    np.testing.assert_allclose(rates, [[1e-2, 0.1]] * STEPS, rtol=1e-5)


# -- a part of the model ---------------------------------------------------------------------------


def frozen() -> Any:
    net = small_net()
    for parameter in net.layers[0].attention.get_parameters():
        parameter.requires_grad = False
    return net


def tied() -> Any:
    return Decoder(tied=True)


@pytest.mark.parametrize("net", [frozen, tied, with_adapters])
@pytest.mark.parametrize("how", ["graph", "pynative"])
def test_a_part_of_the_model(how: str, net: Any, tmp_path: Path) -> None:
    """Only what is trained has a column; a tied weight has one, with the summed gradient."""
    run, _ = twins(builder(how, net=net), batches(STEPS), tmp_path)
    expected(builder("pynative", net=net), batches(STEPS)).check(run)
    names = set(run.series("grad_norm_param").labels[:, 0])
    if net is with_adapters:
        assert all(name.endswith((".up", ".down")) for name in names)
    elif net is tied:
        assert "head.weight" not in names
    else:
        assert not any("attention" in name for name in names)


@pytest.mark.parametrize("scheduled", [False, True])
def test_each_group_has_one_rate_and_is_scaled_once(scheduled: bool) -> None:
    """MindSpore repeats a group's rate for each of its parameters."""
    parameters = small_net().trainable_params()
    rest = nn.ExponentialDecayLR(0.2, 0.5, 1) if scheduled else 0.2
    groups = [{"params": parameters[:3], "lr": 0.1}, {"params": parameters[3:], "lr": rest}]
    found = find_learning_rates([nn.Adam(groups, 1e-2)])
    for schedule in found.schedules:
        schedule.on()
    assert len(found.rates) == 2
    found.scale(0.5)
    if not scheduled:
        rates = [float(rate.asnumpy()) for rate in found.rates]
        np.testing.assert_allclose(rates, [0.05, 0.1], rtol=1e-6)


def test_the_loss_scale_of_an_optimizer_is_taken_out(tmp_path: Path) -> None:
    """A cell with `sens` scales the gradients, and the optimizer divides by its `loss_scale`."""

    def scaled_momentum(parameters: Any) -> Any:
        return nn.Momentum(parameters, 0.1, 0.9, loss_scale=1024.0)

    def cell(network: Any, optimizer: Any) -> Any:
        return nn.TrainOneStepCell(network, optimizer, sens=1024.0)

    run, _ = twins(builder("graph", optimizer=scaled_momentum, cell=cell), batches(STEPS), tmp_path)
    plain = builder("pynative", optimizer=lambda p: nn.Momentum(p, 0.1, 0.9))
    expected(plain, batches(STEPS)).check(run)
