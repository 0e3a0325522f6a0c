"""Copies of a BERT to be timed, plain or watched; each waits for its loss on every step."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import mindspore as ms
from mindspore import Parameter, Tensor, nn

from mindpulse.catalogue import MEASURES
from mindpulse.demo.bert import bert_task
from mindpulse.demo.encoder import EncoderConfig
from mindpulse.demo.loop import functional_step
from mindpulse.demo.task import Task, build_optimizer
from mindpulse.mindspore import Monitor, attach
from mindpulse.summary import SummaryReader
from overhead_cells import LEVELS, SIZES, Setting

SCHEDULED_STEPS = 1000


@dataclass(slots=True)
class Copy:
    """One copy of a training; `step` trains on one batch and waits for its loss."""

    step: Callable[[list[Tensor]], object]
    monitor: Monitor | None = None

    def close(self, setting: Setting | None = None) -> None:
        """Ends the monitor.

        Raises:
            RuntimeError: it gave up, or a tag that `setting` names was never written, or a level
                has no gradient norm of the last step.
        """
        if self.monitor is None:
            return
        self.monitor.close()
        if self.monitor.problem:
            raise RuntimeError(f"the monitor gave up: {self.monitor.problem}")
        written = {path.name.partition(".")[0] for path in self.monitor.directory.glob("*.ms")}
        words = setting.measures.split("+") if setting is not None else []
        missing = [word for word in words if word in MEASURES and word not in written]
        if missing:
            raise RuntimeError(f"never measured: {', '.join(missing)}")
        if setting is not None and setting.measures in LEVELS:
            steps = SummaryReader(self.monitor.directory.parents[1]).series("grad_norm").steps
            if len(steps) < self.monitor.steps_seen:
                raise RuntimeError(f"{setting}: {len(steps)} of {self.monitor.steps_seen} steps")


def task(size: str) -> Task:
    """The training of this size; every call gives the same weights and the same data."""
    chosen = SIZES[size]
    made = bert_task(seed=0, size=EncoderConfig(chosen.layers, chosen.hidden, chosen.heads))
    made.batches = replace(made.batches, batch=chosen.batch)  # type: ignore[type-var]
    return made


def batches(size: str) -> Callable[[int], list[Tensor]]:
    """Batch k as tensors, the first 64 over and over: making them is not what is timed."""
    arrays = task(size).batches

    @lru_cache(maxsize=64)
    def tensors(index: int) -> list[Tensor]:
        return [Tensor(array) for array in arrays[index]]

    return lambda index: tensors(index % 64)


def build(made: Task, mode: str, setting: Setting | None, folder: Path) -> Copy:
    """A copy of a training with its own optimizer, watched unless `setting` is None."""
    optimizer = build_optimizer(made, SCHEDULED_STEPS)
    if mode == "graph":
        cell = nn.TrainOneStepCell(made.network, optimizer)
        monitor = watch(made.network, optimizer, setting, folder, train_cell=cell)
        return waiting(cell.set_train(), monitor)
    monitor = watch(made.network, optimizer, setting, folder)
    step: Callable[..., Any] = functional_step(made.network, optimizer)
    if mode == "jit":
        step = ms.jit(step) if monitor is None else monitor.jit(step)
    return waiting(step, monitor)


def watch(
    net: nn.Cell, optimizer: nn.Cell, setting: Setting | None, folder: Path, **more: Any
) -> Monitor | None:
    """Our monitor on a training, or none."""
    if setting is None:
        return None
    return attach(net, optimizer, summary_dir=folder, **setting.options(), **more)


def waiting(train_step: Callable[..., Any], monitor: Monitor | None) -> Copy:
    """A copy whose step returns when its loss, the first of its outputs, has been read."""

    def step(batch: list[Tensor]) -> float:
        found = train_step(*batch)
        loss = found[0] if isinstance(found, tuple) else found
        if monitor is not None:
            monitor.step(loss)
        return float(loss.asnumpy())

    return Copy(step, monitor)


def device_bytes() -> int:
    """Bytes of all Parameters that monitors of this process hold."""
    objects = (thing for thing in gc.get_objects() if type(thing).__name__ == "Parameter")
    held = (thing for thing in objects if isinstance(thing, Parameter))  # a dead proxy raises here
    return sum(p.nbytes for p in held if p.name.startswith("mindpulse"))


def file_bytes(folder: Path) -> int:
    """Bytes of the series below a run folder."""
    return sum(path.stat().st_size for path in folder.rglob("*.ms"))
