"""One logger in one process: prints the median cost of a call as JSON, in microseconds.

    python training_thread_worker.py LOGGER SCALARS STEPS FOLDER

Started by training_thread.py with the Python that has the logger. Values are made ready outside the
clock, in the form that the logger's own documentation asks for.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

PAUSE_S = 0.010
WARM_UP_STEPS = 20


def unchanged(values: dict[str, float]) -> Any:
    """For loggers that take Python floats."""
    return values


@dataclass(frozen=True)
class Subject:
    """A logger that has been opened: `log(step, prepare(values))` is measured without `prepare`."""

    log: Callable[[int, Any], object]
    close: Callable[[], object]
    prepare: Callable[[dict[str, float]], Any] = unchanged


def open_nothing(folder: str) -> Subject:
    """What the clock and the call by themselves cost after a pause."""
    return Subject(lambda step, values: None, lambda: None)


def open_mindpulse(folder: str) -> Subject:
    """One call a step with all scalars."""
    from mindpulse.recorder import Recorder

    recorder = Recorder(folder)
    return Subject(recorder.add_scalars, recorder.close)


def open_mindspore(folder: str) -> Subject:
    """A call for each scalar and one for the step; it takes tensors."""
    import numpy as np
    from mindspore import SummaryRecord, Tensor

    record = SummaryRecord(folder)

    def prepare(values: dict[str, float]) -> dict[str, Tensor]:
        return {tag: Tensor(np.float32(value)) for tag, value in values.items()}

    def log(step: int, tensors: dict[str, Tensor]) -> None:
        for tag, tensor in tensors.items():
            record.add_value("scalar", tag, tensor)
        record.record(step)

    return Subject(log, record.close, prepare)


def open_tensorboardx(folder: str) -> Subject:
    """A call for each scalar."""
    from tensorboardX import SummaryWriter

    writer = SummaryWriter(folder)

    def log(step: int, values: dict[str, float]) -> None:
        for tag, value in values.items():
            writer.add_scalar(tag, value, step)

    return Subject(log, writer.close)


def open_trackio(folder: str) -> Subject:
    """One call a step with all scalars; $TRACKIO_DIR says where, nothing leaves the machine."""
    import trackio

    trackio.init(project="benchmark", name="run")
    return Subject(lambda step, values: trackio.log(values, step=step), trackio.finish)


def open_swanlab(folder: str) -> Subject:
    """One call a step with all scalars, offline."""
    import swanlab

    swanlab.init(project="benchmark", mode="offline", logdir=folder)
    return Subject(lambda step, values: swanlab.log(values, step=step), swanlab.finish)


OPENERS: dict[str, Callable[[str], Subject]] = {
    "nothing": open_nothing,
    "mindpulse": open_mindpulse,
    "mindspore": open_mindspore,
    "tensorboardX": open_tensorboardx,
    "trackio": open_trackio,
    "swanlab": open_swanlab,
}


def time_calls(subject: Subject, scalars: int, steps: int) -> dict[str, float]:
    """Wall and thread CPU time of `steps` calls, in microseconds."""
    wall, cpu = [], []
    for step in range(1, WARM_UP_STEPS + steps + 1):
        values = {f"group{i % 7}/metric_{i}": 1.0 / (step + i) for i in range(scalars)}
        prepared = subject.prepare(values)
        time.sleep(PAUSE_S)
        began, began_cpu = time.perf_counter_ns(), time.thread_time_ns()
        subject.log(step, prepared)
        ended_cpu, ended = time.thread_time_ns(), time.perf_counter_ns()
        if step > WARM_UP_STEPS:
            wall.append((ended - began) / 1000)
            cpu.append((ended_cpu - began_cpu) / 1000)
    p95 = quantiles(wall, n=20)[-1]
    return {"wall_us": median(wall), "cpu_us": median(cpu), "p95_wall_us": p95}


def main() -> None:
    """Opens the logger, times it, closes it, prints."""
    name, scalars, steps, folder = sys.argv[1:5]
    subject = OPENERS[name](folder)
    figures = time_calls(subject, int(scalars), int(steps))
    subject.close()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
