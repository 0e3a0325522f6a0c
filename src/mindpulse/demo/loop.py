"""The three ways to train: `Model.train` in a static graph, a step under `@jit`, and PyNative."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import mindspore as ms
from mindspore import Tensor, nn
from mindspore.dataset import GeneratorDataset
from mindspore.train import Callback, Model

from mindpulse.demo.task import Batch, Batches, Task
from mindpulse.errors import UsageError

MODES = ("graph", "jit", "pynative")


def set_mode(mode: str) -> None:
    """Tells MindSpore how to run what comes; before the network is built.

    Raises:
        UsageError: `mode` is not one of `MODES`.
    """
    if mode not in MODES:
        raise UsageError(f"mode {mode!r}: use one of {', '.join(MODES)}")
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    if mode == "pynative":
        # On few cores the threads that launch operators one by one spin: 1.3 s a step, not 0.3 s.
        ms.runtime.launch_blocking()


class Observer(Protocol):
    """Told about each step, 1-based."""

    def before_step(self, step: int) -> None:
        """The step has not begun."""

    def after_step(self, step: int, loss: float) -> None:
        """The step is done."""


class ObserverCallback(Callback):  # type: ignore[misc]
    """Tells an observer what `Model.train` does."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer

    def on_train_step_begin(self, run_context: ms.train.RunContext) -> None:
        """Called with `cur_step_num` already at the step that begins."""
        self.observer.before_step(run_context.original_args()["cur_step_num"])

    def on_train_step_end(self, run_context: ms.train.RunContext) -> None:
        """Reads the loss, which waits for the step to be finished."""
        args = run_context.original_args()
        self.observer.after_step(args["cur_step_num"], float(args["net_outputs"].asnumpy()))


def dataset(batches: Batches, steps: int) -> GeneratorDataset:
    """The first `steps` batches as MindSpore wants them."""

    def generate() -> Iterator[Batch]:
        return (tuple(batches[index]) for index in range(steps))

    return GeneratorDataset(generate, list(batches.columns), shuffle=False)


def train_model(
    task: Task,
    optimizer: nn.Optimizer,
    steps: int,
    observer: Observer,
    callbacks: list[Callback],
) -> None:
    """`Model.train`, after `set_mode("graph")`; a monitor is one of `callbacks`."""
    model = Model(task.network, optimizer=optimizer)
    everyone = [*callbacks, ObserverCallback(observer)]
    model.train(1, dataset(task.batches, steps), callbacks=everyone, dataset_sink_mode=False)


def train_functional(
    task: Task,
    optimizer: nn.Optimizer,
    steps: int,
    observer: Observer,
    after_step: Callable[[Tensor], bool],
    *,
    jit: bool,
) -> None:
    """A loop of one's own over `value_and_grad`; `after_step(loss)` says whether to stop."""
    train_step = functional_step(task.network, optimizer)
    if jit:
        train_step = ms.jit(train_step)
    for step in range(1, steps + 1):
        batch = [Tensor(array) for array in task.batches[step - 1]]
        observer.before_step(step)
        loss = train_step(*batch)
        stop = after_step(loss)
        observer.after_step(step, float(loss.asnumpy()))
        if stop:
            break


def functional_step(network: nn.Cell, optimizer: nn.Optimizer) -> Callable[..., Tensor]:
    """A function from a batch to its loss that also updates the weights."""
    network.set_train()
    loss_and_gradients = ms.value_and_grad(network, None, optimizer.parameters)

    def train_step(*batch: Tensor) -> Tensor:
        loss, gradients = loss_and_gradients(*batch)
        optimizer(gradients)
        return loss

    return train_step
