"""`TransformerMonitor`: the one line for `Model.train`; `attach`: for a loop of one's own."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mindspore.train import Callback

from mindpulse.mindspore.monitor import Monitor
from mindpulse.mindspore.planting import Globs, Options
from mindpulse.mindspore.probe_table import ProbeTable
from mindpulse.mindspore.structure import find_optimizers


class TransformerMonitor(Callback):  # type: ignore[misc]
    """Watches a training run by `Model.train(callbacks=[TransformerMonitor()])`.

    The model's source is not touched: probes are planted when the training begins and taken out
    when it ends. Trained weights are bit for bit those of an unwatched run.

    Args:
        summary_dir: the run folder; a second training into it becomes the run's next attempt.
        flush_interval: seconds between two writes; one second while a watcher is present.
        measures: "cheap", "default" or "all", or names of families and tags (docs/measures.md).
        interval: steps between two measurements: a number for all dear measures (10 without it), or
            one for each family or tag named, as {"attention": 5, "ffn_histogram": 100}. In graph
            mode each different interval costs one more compilation of the step; 1 for all costs
            none.
        snapshot_every: steps between two attention maps; 0 for none.
        snapshot_side: a map keeps that many queries and keys of the first sample.
        include, exclude: one glob or several over the paths in the model ("encoder.*").
        pad_id: id of the padding token, for attn_padding_mass.
        causal: whether each token must attend to itself and earlier ones only, in all attention of
            the model; True lets the rule causal-mask-leak judge attn_future_mass from the first
            step on. None where it is not known, or differs between layers.
        max_overhead: a share of the time, as 0.02, that the monitor keeps to by measuring less
            often.
        capacity: rows kept on the device between two drains.
        keep_every: steps between two copies of weights and optimizer in host memory, for
            `rollback`; 0 for none until they are asked for.
        clip: the `ClipNorm` or the Parameter that holds the clipping threshold, for `set_clip`;
            a `ClipNorm` in the training cell is found without it.
        rank: number of this process; None takes RANK_ID.
        mirror: "tensorboard", "mindspore" or both: event files for TensorBoard or MindInsight,
            written live in a folder of that name in the run.

    Raises:
        UsageError: an argument cannot be used; the message quotes it.

    Example:
        >>> from mindpulse.mindspore import TransformerMonitor
        >>> monitor = TransformerMonitor(summary_dir="./summary")  # model.train(2, data, [monitor])
    """

    def __init__(
        self,
        summary_dir: str | os.PathLike[str] = "./summary",
        flush_interval: float = 120.0,
        *,
        measures: str | Sequence[str] = "default",
        interval: int | Mapping[str, int] | None = None,
        snapshot_every: int = 100,
        snapshot_side: int = 64,
        include: Globs = "*",
        exclude: Globs = "",
        pad_id: int | None = None,
        causal: bool | None = None,
        max_overhead: float | None = None,
        capacity: int = 64,
        keep_every: int = 0,
        clip: Any = None,
        rank: int | None = None,
        mirror: str | Iterable[str] = (),
    ) -> None:
        super().__init__()
        self.mirror = mirror
        self.summary_dir = summary_dir
        self.flush_interval = flush_interval
        self.options = Options(
            measures, interval, snapshot_every, snapshot_side, include, exclude, pad_id,
            causal, max_overhead, capacity, keep_every, clip,
        )  # fmt: skip
        self.rank = rank
        self.monitor: Monitor | None = None
        self._next_step = 1
        self._ended_at: float | None = None
        self._evaluation: Any = None

    @property
    def probes(self) -> ProbeTable:
        """The places found in the model, planted or not, with the reason; empty before training."""
        return self.monitor.probes if self.monitor is not None else ProbeTable()

    def on_train_begin(self, run_context: Any) -> None:
        """Plants the probes; MindSpore compiles at the first step, after this."""
        params = run_context.original_args()
        train_cell = params["train_network"]
        self.monitor = Monitor(
            params["network"] if params.get("network") is not None else train_cell,
            find_optimizers(train_cell),
            summary_dir=self.summary_dir,
            flush_interval=self.flush_interval,
            options=self.options,
            train_cell=train_cell,
            rank=self.rank,
            first_step=max(self._next_step, int(params.get("cur_step_num") or 0) + 1),
            mirror=self.mirror,
        )

    def on_train_step_begin(self, run_context: Any) -> None:
        """The data is here: since the end of the step before, the training waited for it."""
        if self.monitor is not None and self._ended_at is not None:
            self.monitor.waited(time.monotonic() - self._ended_at)

    def on_train_step_end(self, run_context: Any) -> None:
        """Counts the step; asks MindSpore to stop where the watcher asked for it."""
        if self.monitor is not None and self.monitor.step():
            run_context.request_stop()
        self._ended_at = time.monotonic()

    def on_eval_begin(self, run_context: Any) -> None:
        """Takes the probes out: what evaluation computes is no training."""
        if self.monitor is not None:
            self._evaluation = self.monitor.paused()
            self._evaluation.__enter__()

    def on_eval_end(self, run_context: Any) -> None:
        """Puts the probes back."""
        if self._evaluation is not None:
            self._evaluation.__exit__(None, None, None)
            self._evaluation = self._ended_at = None

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
    measures: str | Sequence[str] = "default",
    interval: int | Mapping[str, int] | None = None,
    snapshot_every: int = 100,
    snapshot_side: int = 64,
    include: Globs = "*",
    exclude: Globs = "",
    pad_id: int | None = None,
    causal: bool | None = None,
    max_overhead: float | None = None,
    capacity: int = 64,
    keep_every: int = 0,
    clip: Any = None,
    train_cell: Any = None,
    rank: int | None = None,
    first_step: int = 1,
    mirror: str | Iterable[str] = (),
) -> Monitor:
    """Watches a training loop of one's own; call it before the first step (before anything is
    compiled).

    Args:
        net: the model, any `nn.Cell`.
        optimizer: the optimizer that the loop calls; a list where it calls several, in the order
            in which it calls them.
        train_cell: the cell that one step calls in graph mode, if there is one: then dear measures
            are thinned there too. Under `@jit` use `monitor.jit(step)` for that.
        first_step: number of the first step, above 1 when a training goes on from a checkpoint.
        summary_dir, flush_interval, measures, interval, snapshot_every, snapshot_side, include,
            exclude, pad_id, causal, max_overhead, capacity, rank, mirror: as for
            `TransformerMonitor`.

    Raises:
        UsageError: an argument cannot be used; the message quotes it.

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
        options=Options(
            measures, interval, snapshot_every, snapshot_side, include, exclude, pad_id,
            causal, max_overhead, capacity, keep_every, clip,
        ),
        train_cell=train_cell,
        rank=rank,
        first_step=first_step,
        mirror=mirror,
    )  # fmt: skip
