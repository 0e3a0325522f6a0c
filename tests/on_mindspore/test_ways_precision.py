"""Mixed precision, half precision, and a loss scale with steps that overflow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest

from nets import Encoder, Training, batches
from ways import Builder, adam, builder, expected, seed, twins
from ways_cells import scaled
from ways_nets import Decoder

STEPS = 3
SCALE, WINDOW = 2.0**17, 2


@pytest.mark.parametrize("level", ["O1", "O2", "O3", "auto"])
@pytest.mark.parametrize("how", ["graph", "jit", "pynative"])
def test_mixed_precision(how: str, level: str, tmp_path: Path) -> None:
    """The model is converted first and attached then."""

    def net() -> Any:
        return ms.amp.auto_mixed_precision(Decoder(), level)

    run, _ = twins(builder(how, net=net), batches(STEPS), tmp_path)
    wanted = expected(builder("pynative", net=net), batches(STEPS))
    wanted.check(run, rtol=2e-2, atol=2e-3)


def half() -> Any:
    return Encoder(layers=1, hidden=0).to_float(ms.float16)


@pytest.mark.parametrize("how", ["graph", "pynative"])
def test_half_precision(how: str, tmp_path: Path) -> None:
    run, _ = twins(builder(how, net=half), batches(STEPS), tmp_path)
    expected(builder("pynative", net=half), batches(STEPS)).check(run, rtol=2e-2, atol=2e-3)


def with_scaler(how: str) -> Builder:
    """A functional loop with a loss scaler; a step returns (loss, finite, scale that was used)."""

    def build() -> Training:
        seed(how)
        net = half()
        net.set_train()
        optimizer = adam(net.trainable_params())
        scaler = ms.amp.DynamicLossScaler(SCALE, 2, WINDOW)

        def scaled_loss(ids: Any, labels: Any) -> Any:
            return scaler.scale(net(ids, labels).astype(ms.float32))

        gradients = ms.value_and_grad(scaled_loss, None, optimizer.parameters)

        def step(ids: Any, labels: Any) -> Any:
            loss, grads = gradients(ids, labels)
            finite = ms.amp.all_finite(grads)
            scale = scaler.scale_value * 1.0
            loss, grads = scaler.unscale(loss), scaler.unscale(grads)
            scaler.adjust(finite)
            if finite:
                optimizer(grads)
            return loss, finite, scale

        return Training(net, optimizer, None, ms.jit(step) if how == "jit" else step)

    return build


def scaling(network: Any, optimizer: Any) -> Any:
    return scaled(network, optimizer, SCALE, WINDOW)


def scales_by_rule(overflows: list[bool]) -> list[float]:
    """The scale that each step used: halved by an overflow, doubled after `WINDOW` good steps."""
    scales, scale, good = [], SCALE, 0
    for overflow in overflows:
        scales.append(scale)
        good = 0 if overflow else good + 1
        if overflow:
            scale /= 2
        elif good == WINDOW:
            scale, good = scale * 2, 0
    return scales


@pytest.mark.parametrize("how", ["graph", "cell", "jit", "pynative"])
def test_overflowed_steps(how: str, tmp_path: Path) -> None:
    """The scale is too large at first, and after each time that it grew."""
    functional = how in ("jit", "pynative")
    build = with_scaler(how) if functional else builder(how, net=half, cell=scaling)
    data = batches(8)
    run, plain = twins(build, data, tmp_path)
    flags = [bool(result[1]) != functional for result in plain.results]  # finite, or overflow
    assert flags[:3] == [True, True, False]
    assert 3 <= sum(flags) < len(flags) - 2
    steps = list(range(1, len(flags) + 1))
    for tag in ("train_loss", "overflow", "loss_scale", "step_time_s"):
        assert run.series(tag).steps.tolist() == steps
    assert run.series("overflow").values.tolist() == [float(flag) for flag in flags]
    assert run.series("loss_scale").values.tolist() == scales_by_rule(flags)
    losses = [float(result[0]) for result in plain.results]
    np.testing.assert_allclose(run.series("train_loss").values, losses, rtol=2e-3)
    norms = run.series("grad_norm")
    real = np.isfinite(norms.values)
    assert norms.steps[real].tolist() == [
        s for s, flag in zip(steps, flags, strict=True) if not flag
    ]
    # A skipped step moves nothing: the good batches alone give the same training.
    good = [batch for batch, flag in zip(data, flags, strict=True) if not flag]
    wanted = np.square(expected(builder("pynative", net=half), good).norms).sum(1)
    np.testing.assert_allclose(norms.values[real], np.sqrt(wanted), rtol=2e-2)
