"""One training by `Model.train` in graph mode with one callback; prints the seconds of each step.

    python overhead_collector.py SUBJECT SIZE STEPS

SUBJECT is one of `SUBJECTS`. MindSpore's collector starts processes that spin, which would slow
down any copy beside it, so each subject has a process of its own; overhead.py lets them take turns.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mindspore.dataset import GeneratorDataset
from mindspore.train import Callback, Model, SummaryCollector

from mindpulse.demo.loop import set_mode
from mindpulse.demo.task import build_optimizer
from mindpulse.mindspore import TransformerMonitor
from overhead_cells import Setting
from overhead_models import SCHEDULED_STEPS, task

NOTHING_ELSE = {
    "collect_graph": False,
    "collect_train_lineage": False,
    "collect_eval_lineage": False,
    "collect_input_data": False,
    "collect_dataset_graph": False,
}


def ours(measures: str) -> Callable[[str], Callback]:
    """Our monitor, measuring on every step."""
    return lambda folder: TransformerMonitor(folder, **Setting(measures, 1).options())


def collector(freq: int, chosen: dict[str, Any] | None) -> Callable[[str], Callback]:
    """MindSpore's collector; None: what it collects without being told, checkpoints included."""

    def make(folder: str) -> Callback:
        if chosen is None:
            return SummaryCollector(folder, collect_freq=freq)
        return SummaryCollector(
            folder,
            collect_freq=freq,
            collect_specified_data={**NOTHING_ELSE, **chosen},
            keep_default_action=False,
        )

    return make


SUBJECTS: dict[str, Callable[[str], Callback] | None] = {
    "plain": None,
    "ours: loss": ours("train_loss"),
    "ours: loss, weights": ours("train_loss+weight_norm"),
    "collector: loss": collector(1, {"collect_metric": True}),
    "collector: loss, weights": collector(1, {"collect_metric": True, "histogram_regular": ".*"}),
    "collector: default": collector(10, None),
    "collector: default, each step": collector(1, None),
}


class Clock(Callback):  # type: ignore[misc]
    """When each step ended, this callback being the last in the list."""

    def __init__(self) -> None:
        self.ended = [time.perf_counter()]

    def on_train_step_end(self, run_context: Any) -> None:
        """Waits for the loss and looks at the clock."""
        run_context.original_args()["net_outputs"].asnumpy()
        self.ended.append(time.perf_counter())

    @property
    def seconds(self) -> list[float]:
        """From the end of a step to the end of the next."""
        return [after - before for before, after in zip(self.ended, self.ended[1:], strict=False)]


def data(size: str, steps: int) -> tuple[Any, GeneratorDataset]:
    """The training and its batches, made beforehand."""
    made = task(size)
    arrays = [made.batches[index] for index in range(min(steps, 64))]

    def generate() -> Iterator[Any]:
        return (tuple(arrays[index % len(arrays)]) for index in range(steps))

    return made, GeneratorDataset(generate, list(made.batches.columns), shuffle=False)


def main() -> None:
    """Trains, prints."""
    subject, size, steps = SUBJECTS[sys.argv[1]], sys.argv[2], int(sys.argv[3])
    set_mode("graph")
    made, dataset = data(size, steps)
    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="mindpulse-bench-") as folder:
        callbacks = [] if subject is None else [subject(str(Path(folder) / "summary"))]
        model = Model(made.network, optimizer=build_optimizer(made, SCHEDULED_STEPS))
        model.train(1, dataset, callbacks=[*callbacks, clock], dataset_sink_mode=False)
    print(json.dumps(clock.seconds))


if __name__ == "__main__":
    main()
