"""`TransformerMonitor`: the one line for `Model.train`; `attach`: for a loop of one's own."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from mindspore.train import Callback

from mindpulse.mindspore.monitor import Monitor
from mindpulse.mindspore.planting import Options
from mindpulse.mindspore.structure import Place, find_optimizer


class TransformerMonitor(Callback):  # type: ignore[misc]
    """Watches a training run by `Model.train(callbacks=[TransformerMonitor()])`.

    The model's source is not touched: probes are planted when the training begins and taken out
    when it ends. Trained weights are bit for bit those of an unwatched run.

    Args:
        summary_dir: the run folder; a second training into it becomes the run's next attempt.
        flush_interval: seconds between two writes; one second while a watcher is present.
        attention_every: steps between two measurements of attention. In graph mode an interval
            above 1
            compiles the step twice (once with these probes, once without); 1 compiles once.
        snapshot_every: steps between two attention maps; 0 for none.
        include, exclude: globs over the paths of the softmaxes ("encoder.*").
        capacity: rows kept on the device between two drains.
        rank: number of this process; None takes RANK_ID.
        mirror: "tensorboard", "mindspore" or both: event files for TensorBoard or MindInsight,
            written live in a folder of that name in the run.

    Example:
        >>> from mindpulse.mindspore import TransformerMonitor
        >>> monitor = TransformerMonitor(summary_dir="./summary")  # model.train(2, data, [monitor])
    """

    def __init__(
        self,
        summary_dir: str | os.PathLike[str] = "./summary",
        flush_interval: float = 120.0,
        *,
        attention_every: int = 10,
        snapshot_every: int = 100,
        include: str = "*",
        exclude: str = "",
        capacity: int = 64,
        rank: int | None = None,
        mirror: str | Iterable[str] = (),
    ) -> None:
        super().__init__()
        self.mirror = mirror
        self.summary_dir = summary_dir
        self.flush_interval = flush_interval
        self.options = Options(attention_every, snapshot_every, include, exclude, capacity)
        self.rank = rank
        self.monitor: Monitor | None = None
        self._next_step = 1

    @property
    def probes(self) -> list[Place]:
        """The places found in the model, planted or not, with the reason; empty before training."""
        return self.monitor.probes if self.monitor is not None else []

    def on_train_begin(self, run_context: Any) -> None:
        """Plants the probes; MindSpore compiles at the first step, after this."""
        params = run_context.original_args()
        train_cell = params["train_network"]
        self.monitor = Monitor(
            params["network"] if params.get("network") is not None else train_cell,
            find_optimizer(train_cell),
            summary_dir=self.summary_dir,
            flush_interval=self.flush_interval,
            options=self.options,
            train_cell=train_cell,
            rank=self.rank,
            first_step=max(self._next_step, int(params.get("cur_step_num") or 0) + 1),
            mirror=self.mirror,
        )

    def on_train_step_end(self, run_context: Any) -> None:
        """Counts the step; asks MindSpore to stop where the watcher asked for it."""
        if self.monitor is not None and self.monitor.step():
            run_context.request_stop()

    def on_train_end(self, run_context: Any) -> None:
        """Writes what is left and takes the probes out."""
        if self.monitor is not None:
            self._next_step += self.monitor.steps_seen
            self.monitor.close()


def attach(
    net: Any,
    optimizer: Any,
    *,
    summary_dir: str | os.PathLike[str] = "./summary",
    flush_interval: float = 120.0,
    attention_every: int = 10,
    snapshot_every: int = 100,
    include: str = "*",
    exclude: str = "",
    capacity: int = 64,
    train_cell: Any = None,
    rank: int | None = None,
    first_step: int = 1,
    mirror: str | Iterable[str] = (),
) -> Monitor:
    """Watches a training loop of one's own; call it before the first step (before anything is
    compiled).

    Args:
        net: the model, any `nn.Cell`.
        optimizer: the optimizer that the loop calls.
        train_cell: the cell that one step calls in graph mode, if there is one: then attention is
            thinned there
            too. Under `@jit` it is measured on every step.
        first_step: number of the first step, above 1 when a training goes on from a checkpoint.
        summary_dir, flush_interval, attention_every, snapshot_every, include, exclude, capacity,
            rank, mirror: as for `TransformerMonitor`.

    Example:
        >>> # monitor = attach(net, optimizer)
        >>> # for batch in data:
        >>> #     loss = train_step(batch)
        >>> #     if monitor.step(loss):
        >>> #         break
        >>> # monitor.close()
    """
    return Monitor(
        net,
        optimizer,
        summary_dir=summary_dir,
        flush_interval=flush_interval,
        options=Options(attention_every, snapshot_every, include, exclude, capacity),
        train_cell=train_cell,
        rank=rank,
        first_step=first_step,
        mirror=mirror,
    )
