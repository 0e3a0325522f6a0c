"""The ways in which MindSpore trains, as builders of small trainings, and what they should give.

A *builder* takes nothing and returns a freshly seeded `Training`; called twice it gives twins, of
which one is watched. The reference is a plain PyNative loop whose gradients are copied to NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import ParameterTuple, Tensor, nn, ops

from mindpulse import open_run
from mindpulse.mindspore import attach
from nets import Encoder, Training, batches, weights

Builder = Callable[[], Training]
HOWS = ("graph", "cell", "jit", "pynative")  # the first two: a training cell, in either mode


def adam(parameters: Any) -> Any:
    return nn.AdamWeightDecay(parameters, 1e-2)


def seed(how: str) -> None:
    ms.set_context(mode=ms.GRAPH_MODE if how == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(7)
    np.random.seed(7)


def small_net() -> Any:
    return Encoder(layers=1)


def builder(
    how: str,
    *,
    net: Callable[[], Any] = small_net,
    optimizer: Callable[[Any], Any] = adam,
    cell: Callable[[Any, Any], Any] = nn.TrainOneStepCell,
    clip: float = 0.0,
) -> Builder:
    """One step of the way `how`; `cell` makes the training cell, `clip` is for functional loops."""

    def build() -> Training:
        seed(how)
        model = net()
        model.set_train()
        made = optimizer([p for p in model.get_parameters() if p.requires_grad])
        if how in ("graph", "cell"):
            train_cell = cell(model, made)
            train_cell.set_train()
            return Training(model, made, train_cell, lambda *batch: train_cell(*batch))
        step = functional(model, made, clip)
        if how == "bytecode":
            return Training(model, made, None, ms.jit(step, capture_mode="bytecode"))
        return Training(model, made, None, ms.jit(step) if how == "jit" else step)

    return build


def functional(net: Any, optimizer: Any, clip: float = 0.0) -> Callable[..., Any]:
    """A step of `value_and_grad`, clipped by the global norm where `clip` is above 0."""
    gradients = ms.value_and_grad(net, None, optimizer.parameters)

    def step(*batch: Any) -> Any:
        loss, grads = gradients(*batch)
        if clip > 0:
            grads = ops.clip_by_global_norm(grads, clip)
        optimizer(grads)
        return loss

    return step


# -- running twins ---------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What came out of one training."""

    training: Training
    results: list[Any] = field(default_factory=list)
    weights: dict[str, Any] = field(default_factory=dict)
    monitor: Any = None


def train(
    build: Builder, data: Iterable[Any], folder: Path | None = None, micro: int = 1, **options: Any
) -> Outcome:
    """Runs a training over `data`, watched where a folder is given.

    Each `micro`-th call of its step is an optimizer step.
    """
    training = build()
    out = Outcome(training)
    if folder is not None:
        options = {"interval": 1, "snapshot_every": 0, "train_cell": training.cell} | options
        out.monitor = attach(training.net, training.optimizer, summary_dir=folder, **options)
        assert out.monitor.problem == ""
    for number, batch in enumerate(data, start=1):
        result = training.step(*batch)
        out.results.append(as_numpy(result))
        if out.monitor is not None and number % micro == 0:
            tell(out.monitor, result if training.cell is None else None)
    if out.monitor is not None:
        out.monitor.close()
        assert out.monitor.problem == ""
    out.weights = weights(training.net)
    return out


def tell(monitor: Any, result: Any) -> None:
    """Ends the step: the loss, or (loss, finite, loss scale) of a loop that scales."""
    if isinstance(result, tuple):
        loss, finite, scale = result
        monitor.step(loss, overflow=ops.logical_not(finite), loss_scale=scale)
    else:
        monitor.step(result)


def twins(build: Builder, data: Sequence[Any], folder: Path, **options: Any) -> tuple[Any, Outcome]:
    """The run of the watched twin, whose weights and losses are bit for bit the unwatched one's."""
    plain = train(build, data)
    watched = train(build, data, folder, **options)
    assert_same(plain.weights, watched.weights)
    for one, other in zip(plain.results, watched.results, strict=True):
        np.testing.assert_array_equal(one, other)
    return open_run(folder), plain


def assert_same(plain: dict[str, Any], watched: dict[str, Any]) -> None:
    """Every parameter bit for bit, in the same order."""
    assert list(plain) == list(watched)
    for name, value in plain.items():
        assert value.tobytes() == watched[name].tobytes(), name


def as_numpy(result: Any) -> Any:
    if isinstance(result, (tuple, list)):
        return [as_numpy(part) for part in result]
    return np.array(result.asnumpy() if hasattr(result, "asnumpy") else result)


# -- the reference ---------------------------------------------------------------------------------


@dataclass
class Expected:
    """What a plain PyNative loop saw in T steps.

    Attributes:
        names: of the P parameters.
        losses: (T,).
        norms: (T, P), of the gradients that the optimizer got.
        unclipped: (T,), the global norm before they were clipped.
        focus: (T, layers * heads), the mean over the calls of a step.
    """

    names: list[str]
    losses: list[float] = field(default_factory=list)
    norms: list[list[float]] = field(default_factory=list)
    unclipped: list[float] = field(default_factory=list)
    focus: list[Any] = field(default_factory=list)

    def check(self, run: Any, rtol: float = 2e-3, atol: float = 2e-6) -> None:
        """A row for every step, with these numbers."""
        steps = list(range(1, len(self.losses) + 1))
        norms = run.series("grad_norm_param")
        assert norms.labels[:, 0].tolist() == self.names
        assert norms.steps.tolist() == steps
        np.testing.assert_allclose(norms.values, self.norms, rtol=rtol, atol=10 * atol)
        for tag, values in (
            ("train_loss", self.losses),
            ("grad_norm", np.sqrt(np.square(self.norms).sum(1))),
            ("attn_focus", self.focus),
        ):
            series = run.series(tag)
            assert series.steps.tolist() == steps
            np.testing.assert_allclose(series.values, values, rtol=rtol, atol=atol)


def expected(build: Builder, data: Sequence[Any], micro: int = 1, clip: float = 0.0) -> Expected:
    """Trains in PyNative; gradients are summed and clipped in NumPy, in double precision."""
    training = build()
    parameters = list(training.optimizer.parameters)
    gradients = ms.value_and_grad(training.net, None, ParameterTuple(parameters))
    out = Expected([parameter.name for parameter in parameters])
    focus = Focus(training.net)
    for start in range(0, len(data), micro):
        parts = [gradients(*batch) for batch in data[start : start + micro]]
        out.losses.append(float(np.mean([loss.asnumpy() for loss, _ in parts])))
        got = [[g.asnumpy().astype(np.float64) for g in grads] for _, grads in parts]
        mean = [np.mean(values, axis=0) for values in zip(*got, strict=True)]
        total = np.sqrt(sum(np.square(value).sum() for value in mean))
        out.unclipped.append(float(total))
        factor = min(1.0, clip / total) if clip > 0 else 1.0
        mean = [value * factor for value in mean]
        out.norms.append([float(np.linalg.norm(value)) for value in mean])
        out.focus.append(focus.take())
        training.optimizer(
            tuple(Tensor(value, p.dtype) for value, p in zip(mean, parameters, strict=True))
        )
    return out


class Focus:
    """Attention focus of every softmax, seen by PyNative hooks and computed in NumPy."""

    def __init__(self, net: Any) -> None:
        self.seen: dict[str, list[Any]] = {}
        for path, cell in net.cells_and_names():
            # By name: amp O1 makes copies of MindSpore's classes when it converts a second model.
            if "Softmax" in [kind.__name__ for kind in type(cell).__mro__]:
                self.seen[path] = []
                cell.register_forward_hook(self._hook(self.seen[path]))

    @staticmethod
    def _hook(seen: list[Any]) -> Any:
        def hook(cell: Any, inputs: Any, output: Any) -> None:
            if cell.training:
                p = output.astype(ms.float32).asnumpy().astype(np.float64)
                seen.append((p.max(-1) / (p.sum(-1) + 1e-8)).mean(axis=(0, 2)))

        return hook

    def take(self) -> Any:
        """(layers * heads,), the mean over the calls since the last time."""
        found = [np.mean(seen, axis=0) for seen in self.seen.values() if seen]
        for seen in self.seen.values():
            seen.clear()
        return np.concatenate(found)


def stacked(count: int, size: int) -> list[tuple[Any, Any]]:
    """`count` sinks of `size` batches each, the same batches as `batches(count * size)`."""
    flat = batches(count * size)
    return [
        tuple(ops.stack([flat[start + i][side] for i in range(size)]) for side in (0, 1))
        for start in range(0, count * size, size)
    ]
