"""The norm before clipping, for each way of clipping in each mode."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.ops.function import clip_func

from mindpulse import open_run
from mindpulse.mindspore import ClipNorm, attach
from mindpulse.mindspore.acting import clip as of_clip_norm
from nets import Training, batches, weights
from ways import HOWS, adam, assert_same, builder, expected, seed, small_net, train, twins
from ways_cells import MICRO, Accumulating, Clipping, TwoOptimizers

LIMIT, STEPS = 0.5, 5  # in PyNative the probe becomes a graph of its own at the fourth step
TAG = "grad_norm_unclipped"


def by_global_norm() -> Callable[[Any], Any]:
    def clip(gradients: Any) -> Any:
        return ops.clip_by_global_norm(gradients, LIMIT)

    return clip


def by_norm() -> Callable[[Any], Any]:
    def clip(gradients: Any) -> Any:
        return ops.clip_by_norm(gradients, LIMIT)

    return clip


class ClipGradNorm(nn.Cell):
    """As in MindFormers: the same class and attributes; returns the norm, too."""

    def __init__(self, max_norm: float = LIMIT) -> None:
        super().__init__()
        self.clip_norm = Tensor([max_norm], ms.float32)

    def construct(self, x: Any) -> Any:
        squares: tuple[Any, ...] = ()
        for gradient in x:
            squares = (*squares, ops.square(gradient).sum().reshape(1))
        norm = ops.sqrt(ops.addn(squares))
        factor = ops.minimum(self.clip_norm / (norm + 1e-6), Tensor(1.0, ms.float32))
        clipped: tuple[Any, ...] = ()
        for gradient in x:
            clipped = (*clipped, gradient * factor)
        return clipped, norm


WAYS = {"global_norm": by_global_norm, "norm": by_norm, "ClipNorm": lambda: ClipNorm(LIMIT)}


class ClippingWith(nn.TrainOneStepCell):
    """Clips with whatever it was given."""

    def __init__(self, network: Any, optimizer: Any, clip: Any) -> None:
        super().__init__(network, optimizer)
        self.clip = clip

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        grads = self.clip(self.grad_no_sens(self.network, self.weights)(*inputs))
        return ops.depend(loss, self.optimizer(grads))


def clipping_builder(how: str, make: Callable[[], Any]) -> Callable[[], Training]:
    """A training that clips with what `make` makes: a cell or a function."""
    if how in ("graph", "cell"):
        return builder(how, cell=lambda net, optimizer: ClippingWith(net, optimizer, make()))

    def build() -> Training:
        training = builder("pynative")()
        optimizer, clip = training.optimizer, make()
        gradients = ms.value_and_grad(training.net, None, optimizer.parameters)

        def step(*batch: Any) -> Any:
            loss, grads = gradients(*batch)
            optimizer(clip(grads))
            return loss

        training.step = ms.jit(step) if how == "jit" else step
        return training

    return build


def check(run: Any, unclipped: Any, steps: Any = None) -> None:
    """A row for each step that the optimizer has one for."""
    series = run.series(TAG)
    assert series.steps.tolist() == run.series("grad_norm").steps.tolist()
    assert series.steps.tolist() == (steps or list(range(1, len(unclipped) + 1)))
    np.testing.assert_allclose(series.values, unclipped, rtol=2e-3)


def of(run_or_monitor: Any) -> Any:
    (place,) = [place for place in run_or_monitor.probes if place.kind == "clip"]
    return place


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", HOWS)
def test_each_way_of_clipping(how: str, way: str, tmp_path: Path) -> None:
    run, _ = twins(clipping_builder(how, WAYS[way]), batches(STEPS), tmp_path)
    wanted = expected(builder("pynative"), batches(STEPS), clip=LIMIT)
    wanted.check(run)
    assert min(wanted.unclipped) > LIMIT
    check(run, wanted.unclipped)
    np.testing.assert_allclose(run.series("grad_norm").values, LIMIT, rtol=1e-5)


class Wrapped(nn.TrainOneStepCell):
    """Clips with a cell inside the training cell, in one of its own methods."""

    def __init__(self, network: Any, optimizer: Any) -> None:
        super().__init__(network, optimizer)
        self.clip_grad_norm = ClipGradNorm()

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        grads, _ = self.clip_grad_norm(self.grad_no_sens(self.network, self.weights)(*inputs))
        return ops.depend(loss, self.optimizer(grads))


@pytest.mark.parametrize("how", ["graph", "cell"])
def test_a_clipping_cell_of_another_library(how: str, tmp_path: Path) -> None:
    build = builder(how, cell=Wrapped)
    plain = train(build, batches(STEPS))
    watched = train(build, batches(STEPS), tmp_path)
    assert_same(plain.weights, watched.weights)
    wanted = expected(builder("pynative"), batches(STEPS), clip=LIMIT)
    check(open_run(tmp_path), wanted.unclipped)
    assert "clip_grad_norm" in of(watched.monitor).reason


MORE = 2.0**66  # times 2**60 the gradients are finite, times 2**62, after two steps, they are not


class Scaling(nn.TrainOneStepWithLossScaleCell):
    """Unscales, looks for overflow, clips, then asks whether to update: MindFormers' order."""

    def construct(self, *inputs: Any) -> Any:
        loss, scale = self.network(*inputs), self.scale_sense
        status, scale = self.start_overflow_check(loss, scale)
        sens = ops.ones_like(loss) * scale.astype(loss.dtype) * MORE
        grads = self.grad(self.network, self.weights)(*inputs, sens)
        grads = self.hyper_map(ops.partial(_unscale, scale), grads)
        overflow = self.process_loss_scale(self.get_overflow_status(status, grads))
        grads = ops.clip_by_global_norm(grads, LIMIT)
        if not overflow:
            loss = ops.depend(loss, self.optimizer(grads))
        return loss, overflow, scale


_unscale = ops.MultitypeFuncGraph("test_unscale")


@_unscale.register("Tensor", "Tensor")
def _unscale_tensor(scale: Any, gradient: Any) -> Any:
    return gradient * ops.reciprocal(scale) / MORE


def scaling(network: Any, optimizer: Any) -> Any:
    cell = Scaling(network, optimizer, nn.DynamicLossScaleUpdateCell(2.0**60, 4, 2))
    cell.ascend_910b_target, cell.enable_allfinite = True, False
    cell._ascend_check_overflow_mode = "INFNAN_MODE"
    return cell


@pytest.mark.parametrize("how", ["graph", "cell"])
def test_a_step_that_overflows_has_no_row(how: str, tmp_path: Path) -> None:
    """The norm is that of the unscaled gradients; steps are counted as for grad_norm."""
    data = batches(6)
    run, _ = twins(builder(how, cell=scaling), data, tmp_path)
    overflows = run.series("overflow").values.astype(bool)
    assert overflows.tolist() == [False, False, True, False, False, True]
    went = [batch for batch, over in zip(data, overflows, strict=True) if not over]
    wanted = expected(builder("pynative"), went, clip=LIMIT)
    check(run, wanted.unclipped, (1 + np.flatnonzero(~overflows)).tolist())


class AccumulatingClipped(Accumulating):
    """Clips the mean gradient of the micro-steps."""

    def ready(self, gradients: Any) -> Any:
        return ops.clip_by_global_norm(gradients, LIMIT)


@pytest.mark.parametrize("how", ["graph", "cell"])
def test_accumulated_gradients(how: str, tmp_path: Path) -> None:
    data = batches(2 * MICRO)
    run, _ = twins(builder(how, cell=AccumulatingClipped), data, tmp_path, micro=MICRO)
    check(run, expected(builder("pynative"), data, micro=MICRO, clip=LIMIT).unclipped)


class TwoClipped(TwoOptimizers):
    """Each of two optimizers has its part of the weights; clipped apart, or all at once."""

    together = False

    def construct(self, ids: Any, labels: Any) -> Any:
        loss, grads = self.gradients(ids, labels)
        if self.together:
            grads = ops.clip_by_global_norm(grads, LIMIT)
            loss = ops.depend(loss, self.first(grads[: self.count]))
            return ops.depend(loss, self.second(grads[self.count :]))
        first = ops.clip_by_global_norm(grads[: self.count], LIMIT)
        second = ops.clip_by_global_norm(grads[self.count :], LIMIT)
        loss = ops.depend(loss, self.first(first))
        return ops.depend(loss, self.second(second))


def two_optimizers(how: str, together: bool) -> Training:
    seed(how)
    net = small_net()
    net.set_train()
    parameters = net.trainable_params()
    optimizers = [adam(parameters[:3]), nn.SGD(parameters[3:], 0.1)]
    cell = TwoClipped(net, *optimizers)
    cell.set_train()
    cell.together = together
    if how == "graph":
        return Training(net, optimizers, cell, lambda *batch: cell(*batch))
    return Training(net, optimizers, None, ms.jit(cell) if how == "jit" else cell)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("how", ["graph", "jit", "pynative"])
def test_two_optimizers(how: str, together: bool, tmp_path: Path) -> None:
    """However they are clipped, it is the norm over the gradients of both."""
    run, _ = twins(lambda: two_optimizers(how, together), batches(2), tmp_path)
    training = builder("pynative")()
    gradients = ms.value_and_grad(training.net, None, training.optimizer.parameters)
    _, grads = gradients(*batches(1)[0])
    total = np.sqrt(sum(np.square(g.asnumpy().astype(np.float64)).sum() for g in grads))
    assert run.series(TAG).steps.tolist() == [1, 2]
    np.testing.assert_allclose(run.series(TAG).values[0], total, rtol=1e-4)


@pytest.mark.parametrize("how", ["graph", "pynative"])
def test_a_training_that_does_not_clip(how: str, tmp_path: Path) -> None:
    """Nothing is written, nothing is said to be broken, and the tag is free for the user."""
    training = builder(how)()
    monitor = attach(
        training.net, training.optimizer, summary_dir=tmp_path, train_cell=training.cell
    )
    for batch in batches(3):
        loss = training.step(*batch)
        monitor.step(loss if training.cell is None else None)
        monitor.add_scalars({TAG: 2.5})
    place = of(monitor)
    monitor.close()
    assert (place.state, "ClipNorm" in place.reason) == ("skipped", True)
    assert monitor.problem == ""
    run = open_run(tmp_path)
    assert run.series(TAG).values.tolist() == [2.5] * 3
    told = [note.data for note in run.notes() if note.kind == "probe"]
    assert [note["state"] for note in told if note["what"] == "clip"] == ["planted"]


def test_a_user_who_writes_the_same_tag(tmp_path: Path) -> None:
    """From then on it is the user's, with one row for each step."""
    training = builder("pynative", clip=LIMIT)()
    monitor = attach(training.net, training.optimizer, summary_dir=tmp_path)
    for batch in batches(4):
        monitor.step(training.step(*batch))
        monitor.add_scalars({TAG: 2.5})
    monitor.close()
    assert monitor.problem == ""
    run = open_run(tmp_path)
    assert run.series(TAG).steps[-3:].tolist() == [2, 3, 4]
    assert run.series(TAG).values[-3:].tolist() == [2.5] * 3
    assert run.series("train_loss").steps.tolist() == [1, 2, 3, 4]


def test_it_is_thinned_in_a_step_compiled_by_the_monitor(tmp_path: Path) -> None:
    plain = train(builder("jit", clip=LIMIT), batches(5))
    training = builder("pynative", clip=LIMIT)()
    monitor = attach(
        training.net, training.optimizer, summary_dir=tmp_path, interval={TAG: 2}, snapshot_every=0
    )
    step = monitor.jit(training.step)
    for batch in batches(5):
        monitor.step(step(*batch))
    monitor.close()
    assert_same(plain.weights, weights(training.net))
    run = open_run(tmp_path)
    assert run.series(TAG).steps.tolist() == [1, 3, 5]
    wanted = expected(builder("pynative"), batches(5), clip=LIMIT)
    np.testing.assert_allclose(run.series(TAG).values, wanted.unclipped[::2], rtol=2e-3)


def test_two_monitors_see_their_own_gradients(tmp_path: Path) -> None:
    """And when they go, in any order, the framework is as it was."""
    names = [
        (clip_func, "_ClipByGlobalNorm"),
        (clip_func, "_cal_total_norm"),
        (of_clip_norm, "square_total"),
    ]
    before = [getattr(module, name) for module, name in names]
    one = builder("pynative", clip=LIMIT)()
    other = builder("pynative", clip=LIMIT, optimizer=lambda p: adam(p[:5]))()
    first = attach(one.net, one.optimizer, summary_dir=tmp_path / "one")
    second = attach(other.net, other.optimizer, summary_dir=tmp_path / "other")
    for batch in batches(2):
        first.step(one.step(*batch))
        second.step(other.step(*batch))
    first.close()
    second.step(other.step(*batches(1)[0]))
    second.close()
    assert [getattr(module, name) for module, name in names] == before
    a, b = (open_run(tmp_path / name).series(TAG) for name in ("one", "other"))
    assert (a.steps.tolist(), b.steps.tolist()) == ([1, 2], [1, 2, 3])
    assert a.values[0] > b.values[0] > 0


@pytest.mark.parametrize("how", ["graph", "cell"])
def test_paused_and_closed_cells_hold_no_probe(how: str, tmp_path: Path) -> None:
    training = builder(how, cell=Clipping)()
    monitor = attach(
        training.net, training.optimizer, summary_dir=tmp_path, train_cell=training.cell
    )
    data = batches(3)
    training.step(*data[0])
    monitor.step()
    slot = monitor._planted.ring.slots["clipping.0"]
    monitor.close()
    kept = slot.rows.asnumpy().copy()
    training.step(*data[1])
    np.testing.assert_array_equal(slot.rows.asnumpy(), kept)
