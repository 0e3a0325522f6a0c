"""Times three copies of the demo BERT in one mode, in turn, and prints the seconds as JSON.

    python overhead_worker.py MODE BATCH GROUPS

A group is ten steps of each copy, because at the default density one step in ten carries the
attention probes. Started by overhead.py.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import mindspore as ms
from mindspore import Tensor, nn

from mindpulse.demo.bert import bert_task
from mindpulse.demo.loop import functional_step, set_mode
from mindpulse.demo.task import build_optimizer
from mindpulse.mindspore import attach

STEPS_PER_GROUP = 10
WARM_UP_GROUPS = 1  # compilation, and the first steps after it
COPIES = ("plain", "plain again", "watched")


@dataclass
class Copy:
    """One copy of the model; `step` trains on one batch and waits for its loss."""

    step: Callable[[list[Tensor]], float]
    close: Callable[[], None]


def build(mode: str, name: str, folder: str) -> Copy:
    """A copy with its own weights and optimizer; all copies begin with the same weights."""
    task = bert_task(seed=0)
    optimizer = build_optimizer(task, steps=1000)
    cell = nn.TrainOneStepCell(task.network, optimizer) if mode == "graph" else None
    monitor = (
        attach(task.network, optimizer, summary_dir=folder, train_cell=cell)
        if name == "watched"
        else None
    )
    if cell is not None:
        train_step: Any = cell.set_train()
    else:
        train_step = functional_step(task.network, optimizer)
        train_step = ms.jit(train_step) if mode == "jit" else train_step

    def step(batch: list[Tensor]) -> float:
        loss = train_step(*batch)
        if monitor is not None:
            monitor.step(loss)
        return float(loss.asnumpy())

    return Copy(step, monitor.close if monitor is not None else lambda: None)


def time_group(copies: dict[str, Copy], batches: Any, number: int) -> dict[str, float]:
    """Seconds that ten steps of each copy take; the order changes from step to step."""
    spent = dict.fromkeys(copies, 0.0)
    orders = list(permutations(copies))
    for index in range(number * STEPS_PER_GROUP, (number + 1) * STEPS_PER_GROUP):
        batch = [Tensor(array) for array in batches[index]]
        for name in orders[index % len(orders)]:
            began = time.perf_counter()
            copies[name].step(batch)
            spent[name] += time.perf_counter() - began
    return spent


def main() -> None:
    """Builds the copies, lets them take turns, prints."""
    mode, batch, groups = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    set_mode(mode)
    batches = replace(bert_task(seed=0).batches, batch=batch)  # type: ignore[type-var]
    with tempfile.TemporaryDirectory(prefix="mindpulse-bench-") as folder:
        copies = {name: build(mode, name, folder) for name in COPIES}
        timed = [time_group(copies, batches, number) for number in range(WARM_UP_GROUPS + groups)]
        for copy in copies.values():
            copy.close()
    counted = timed[WARM_UP_GROUPS:]
    print(json.dumps({name: [group[name] for group in counted] for name in COPIES}))


if __name__ == "__main__":
    main()
