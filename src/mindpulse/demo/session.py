"""One demo from its beginning to its end: folder, watcher, training, report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from mindspore import nn

from mindpulse.demo.bert import bert_task
from mindpulse.demo.display import Display, open_display
from mindpulse.demo.faults import FAULTS, Fault
from mindpulse.demo.loop import set_mode, train_functional, train_model
from mindpulse.demo.outcome import Outcome, Trained, write_report
from mindpulse.demo.pulse import Pulse
from mindpulse.demo.signals import interruptible
from mindpulse.demo.task import Task, build_optimizer
from mindpulse.demo.vit import vit_task
from mindpulse.demo.watching import Watcher
from mindpulse.mindspore import TransformerMonitor, attach

TASKS = {"bert": bert_task, "vit": vit_task}


@dataclass(frozen=True)
class Plan:
    """What to train, and what to do to it.

    Attributes:
        fault: name of the fault, "" for none.
        fault_step: it strikes before this step.
        act: whether the watcher may act.
    """

    kind: str
    mode: str
    steps: int
    seed: int
    directory: Path
    fault: str = ""
    fault_step: int = 0
    act: bool = False


class Reporter:
    """Observes the steps: lets the fault strike, keeps the losses, moves the display."""

    def __init__(self, display: Display, pulse: Pulse, fault: Fault | None) -> None:
        self.losses: list[float] = []
        self._display = display
        self._pulse = pulse
        self._fault = fault

    def before_step(self, step: int) -> None:
        """Lets the fault strike when its step has come."""
        if self._fault is not None and step == self._fault.step:
            self._display.say(f"fault: {self._fault.name} strikes at step {step}")
            self._fault.strike()

    def after_step(self, step: int, loss: float) -> None:
        """Keeps the loss and shows it."""
        self.losses.append(loss)
        self._display.advance(step, loss, self._pulse.text)


def carry_out(plan: Plan, stream: TextIO) -> Outcome:
    """Trains under the eyes of a watcher, shows it on `stream`, and writes the report.

    Raises:
        StoreError: the run folder cannot be written.
    """
    set_mode(plan.mode)
    task = TASKS[plan.kind](plan.seed)
    optimizer = build_optimizer(task, plan.steps)
    fault = FAULTS[plan.fault](task, optimizer, plan.fault_step) if plan.fault else None
    plan.directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        stack.enter_context(interruptible())
        display = stack.enter_context(open_display(stream, plan.steps))
        display.say(f"Training {task.title}, {plan.steps} steps, mode {plan.mode}")
        stack.enter_context(Watcher(plan.directory, plan.act, display.say))
        pulse = stack.enter_context(Pulse(plan.directory))
        reporter = Reporter(display, pulse, fault)
        began = time.monotonic()
        train(plan, task, optimizer, reporter)
        duration_s = time.monotonic() - began
    trained = Trained(
        title=task.title,
        steps=plan.steps,
        losses=reporter.losses,
        duration_s=duration_s,
        reference=task.reference,
        figures=task.evaluate(),
        fault=plan.fault,
        fault_step=plan.fault_step,
        act=plan.act,
    )
    return write_report(trained, plan.directory)


def train(plan: Plan, task: Task, optimizer: nn.Optimizer, reporter: Reporter) -> None:
    """Trains with a monitor, which is closed whatever happens."""
    if plan.mode == "graph":
        with callback(plan.directory) as monitor:
            train_model(task, optimizer, plan.steps, reporter, [monitor])
        return
    with attach(task.network, optimizer, summary_dir=plan.directory) as monitor:
        train_functional(
            task, optimizer, plan.steps, reporter, monitor.step, jit=plan.mode == "jit"
        )


@contextmanager
def callback(directory: Path) -> Iterator[TransformerMonitor]:
    """The monitor for `Model.train`, which does not end its callbacks when it fails."""
    monitor = TransformerMonitor(summary_dir=directory)
    try:
        yield monitor
    finally:
        if monitor.monitor is not None:
            monitor.monitor.close()
