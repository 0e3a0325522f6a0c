"""One training step as a cell, with the optimizer: what a fault changes here is an input too."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.nn.learning_rate_schedule import LearningRateSchedule

from benchmarks.faults.models import Transformer, through_half
from benchmarks.faults.settings import CONTROLS, Variant

RATE, CLIP, SCALE = CONTROLS["rate"], CONTROLS["clip"], CONTROLS["loss_scale"]
HALF_SQUARES = ops.L2Loss()  # sum(x ** 2) / 2 in one operator
HYPER = CONTROLS["beta1"], CONTROLS["weight_decay"] + 1


class HostRate(LearningRateSchedule):  # type: ignore[misc]
    """The learning rate that the host gave to the step."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.rate = Parameter(Tensor(0.0, ms.float32), name=f"{name}_rate", requires_grad=False)

    def construct(self, global_step: Tensor) -> Tensor:
        """The same whatever the step is."""
        return self.rate * 1.0


class AdamW(nn.Optimizer):  # type: ignore[misc]
    """Adam with decoupled weight decay, its numbers Parameters.

    Attributes:
        hyper: (4,) beta1, beta2, eps and weight decay.
        gates: (parameters,) multiplies each parameter's learning rate; 0 leaves it as it is.
    """

    def __init__(self, parameters: list[Parameter], name: str) -> None:
        super().__init__(HostRate(name), parameters)
        self.global_step.name = f"{name}_global_step"
        self.moments1 = self._parameters.clone(prefix="adam_m", init="zeros")
        self.moments2 = self._parameters.clone(prefix="adam_v", init="zeros")
        self.hyper = Parameter(
            Tensor([0.9, 0.98, 1e-8, 0.0], ms.float32), name=f"{name}_hyper", requires_grad=False
        )
        self.gates = Parameter(
            Tensor(np.ones(len(parameters)), ms.float32), name=f"{name}_gates", requires_grad=False
        )
        self.decayed = tuple(int(parameter.ndim > 1) for parameter in parameters)
        self.fused = ops.AdamWeightDecay()

    def construct(self, gradients: tuple[Tensor, ...]) -> Any:
        """Updates all parameters."""
        rate = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        step = ops.cast(self.global_step, ms.float32)
        beta1, beta2, eps, decay = ops.unbind(self.hyper, 0)
        corrected = rate * ops.sqrt(1.0 - ops.pow(beta2, step)) / (1.0 - ops.pow(beta1, step))
        rates = ops.unbind(corrected * self.gates, 0)
        decays = (decay * 0.0, decay)
        done = ()
        for i in range(self.param_length):
            done = done + (  # noqa: RUF005 (the graph compiler does not unpack)
                self.fused(
                    self._parameters[i], self.moments1[i], self.moments2[i], rates[i],
                    beta1, beta2, eps, decays[self.decayed[i]], gradients[i],
                ),
            )  # fmt: skip
        return done


class Step(nn.Cell):  # type: ignore[misc]
    """Loss, gradients, clipping, update; returns loss, whether the update was made, norm."""

    def __init__(self, network: Transformer, optimizer: AdamW, variant: Variant) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.optimizer = network, optimizer
        self.weights = optimizer.parameters
        self.half, self.accumulates = variant.half, variant.accumulates
        self.gradient = ops.GradOperation(get_by_list=True, sens_param=True)
        self.gradient_gates = new_gates(len(self.weights), "gradient_gates")
        self.rate, self.hyper = optimizer.learning_rate.rate, optimizer.hyper
        if self.accumulates:
            self.kept = self.weights.clone(prefix="kept", init="zeros")

    def construct(
        self, ids: Tensor, targets: Tensor, bias: Tensor, places: Tensor, controls: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The inputs of `Transformer` -> loss (), 1.0 where the optimizer was called, and the
        global norm of the gradients before they are clipped ()."""
        loss = self.network(ids, targets, bias, places, controls)
        sens = ops.ones_like(loss) * controls[SCALE]
        gradients = self.gradient(self.network, self.weights)(
            ids, targets, bias, places, controls, sens
        )
        if self.half:
            gradients = half_tuple(gradients)
        if self.accumulates:
            gradients = self._accumulated(gradients, controls[CONTROLS["keep"]])
        norm = global_norm(gradients) / controls[SCALE]
        factor = ops.minimum(controls[CLIP] / (norm + 1e-6), 1.0) / controls[SCALE]
        gradients = scaled(gradients, factor, self.gradient_gates)
        ops.assign(self.rate, controls[RATE])
        ops.assign(self.hyper, controls[HYPER[0] : HYPER[1]])
        wanted = controls[CONTROLS["apply"]]
        if self.half:
            wanted = wanted * ops.isfinite(norm).astype(ms.float32)
        if self.half or self.accumulates:
            if wanted > 0.5:
                self.optimizer(gradients)
        else:
            self.optimizer(gradients)
        return loss, wanted, norm

    def _accumulated(self, gradients: tuple[Tensor, ...], keep: Tensor) -> tuple[Tensor, ...]:
        found = ()
        for i in range(len(gradients)):
            total = self.kept[i] * keep + gradients[i]
            ops.assign(self.kept[i], total)
            found = found + (total,)  # noqa: RUF005
        return found


class RankStep(nn.Cell):  # type: ignore[misc]
    """Two ranks of a data-parallel training in one graph: their gradients are averaged.

    Each rank has its own network, optimizer, batch and controls.
    """

    def __init__(self, networks: list[Transformer], optimizers: list[AdamW]) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.network1 = networks
        self.optimizer, self.optimizer1 = optimizers
        self.weights, self.weights1 = (x.parameters for x in optimizers)
        self.gradient = ops.GradOperation(get_by_list=True)
        self.gradient1 = ops.GradOperation(get_by_list=True)
        self.gradient_gates = new_gates(len(self.weights), "gradient_gates")
        self.rate, self.rate1 = (x.learning_rate.rate for x in optimizers)
        self.hyper, self.hyper1 = (x.hyper for x in optimizers)

    def construct(
        self, ids: Tensor, targets: Tensor, bias: Tensor, places: Tensor, controls: Tensor,
        ids1: Tensor, targets1: Tensor, bias1: Tensor, places1: Tensor, controls1: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """The inputs of `Transformer` for each rank -> the losses, the norms before clipping."""
        loss = self.network(ids, targets, bias, places, controls)
        loss1 = self.network1(ids1, targets1, bias1, places1, controls1)
        own = self.gradient(self.network, self.weights)(ids, targets, bias, places, controls)
        own1 = self.gradient1(self.network1, self.weights1)(
            ids1, targets1, bias1, places1, controls1
        )
        ops.assign(self.rate, controls[RATE])
        ops.assign(self.rate1, controls1[RATE])
        ops.assign(self.hyper, controls[HYPER[0] : HYPER[1]])
        ops.assign(self.hyper1, controls1[HYPER[0] : HYPER[1]])
        gradients, norm = self._reduced(own, own1, controls)
        gradients1, norm1 = self._reduced(own1, own, controls1)
        self.optimizer(gradients)
        self.optimizer1(gradients1)
        return loss, loss1, norm, norm1

    def _reduced(
        self, own: tuple[Tensor, ...], other: tuple[Tensor, ...], controls: Tensor
    ) -> tuple[tuple[Tensor, ...], Tensor]:
        reduce, reduced = controls[CONTROLS["reduce"]], controls[CONTROLS["reduced"]]
        gradients = ()
        for i in range(len(own)):
            mean = (own[i] + other[i]) * (0.5 * reduced)
            gradients = gradients + (mean * reduce + own[i] * (1.0 - reduce),)  # noqa: RUF005
        norm = global_norm(gradients)
        factor = ops.minimum(controls[CLIP] / (norm + 1e-6), 1.0)
        return scaled(gradients, factor, self.gradient_gates), norm


def new_gates(count: int, name: str) -> Parameter:
    """(count,) ones that the host may assign."""
    return Parameter(Tensor(np.ones(count), ms.float32), name=name, requires_grad=False)


def half_tuple(gradients: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Each gradient as float16 holds it."""
    found = ()
    for gradient in gradients:
        found = found + (through_half(gradient),)  # noqa: RUF005
    return found


def global_norm(gradients: tuple[Tensor, ...]) -> Tensor:
    """Square root of the sum of all squares, ()."""
    halves = ()
    for gradient in gradients:
        halves = halves + (HALF_SQUARES(gradient),)  # noqa: RUF005
    return ops.sqrt(2.0 * ops.addn(halves))


def scaled(gradients: tuple[Tensor, ...], factor: Tensor, gates: Parameter) -> tuple[Tensor, ...]:
    """Each gradient times the factor and its gate."""
    factors = ops.unbind(factor * gates, 0)
    found = ()
    for i in range(len(gradients)):
        found = found + (gradients[i] * factors[i],)  # noqa: RUF005
    return found


def build(variant: Variant) -> tuple[list[Transformer], list[AdamW], nn.Cell]:
    """The networks and optimizers of all ranks, and the cell that makes a step."""
    networks = [Transformer(variant) for _ in range(variant.ranks)]
    for network in networks:
        for parameter in network.get_parameters():
            parameter.requires_grad = not parameter.name.startswith(variant.frozen or ("-",))
    optimizers = [
        AdamW(list(network.trainable_params()), f"adam{rank}")
        for rank, network in enumerate(networks)
    ]
    if variant.ranks > 1:
        return networks, optimizers, RankStep(networks, optimizers)
    return networks, optimizers, Step(networks[0], optimizers[0], variant)


def tell_apart(network: Transformer, optimizer: AdamW, rank: int) -> None:
    """Puts the rank before the names of a rank's Parameters: a graph wants each name once.

    Called when the monitor has read the names: each rank of a real training has the same ones.
    """
    found = {id(p): p for p in (*network.get_parameters(), *optimizer.get_parameters())}
    for parameter in found.values():
        parameter.name = f"rank{rank}.{parameter.name}"
