"""The demo's BERT as a subject of the healing benchmark: its faults that acting may cure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from mindspore import Tensor

from mindpulse.demo.bert import bert_task
from mindpulse.demo.encoder import EncoderConfig
from mindpulse.demo.faults import FAULTS
from mindpulse.demo.loop import functional_step, set_mode
from mindpulse.demo.task import build_optimizer
from mindpulse.mindspore import attach

CURABLE = ("lr-explosion", "attention-collapse", "nan-batch")
SIZE, SMALL = EncoderConfig(layers=2, hidden=64, heads=4), EncoderConfig(1, 32, 2)
SHORT_STEPS = 100  # with fewer than so many the model is the small one: it is for a quick look
STRIKE = 0.4  # share of the steps after which a fault strikes
HELD_OUT = 100_000  # number of the first batch that no training sees
EVALUATION_BATCHES = 4


class DemoSession:
    """One training, step by step."""

    def __init__(self, case: str, seed: int, folder: Path, steps: int) -> None:
        set_mode("jit")
        self.task = bert_task(seed, SIZE if steps >= SHORT_STEPS else SMALL)
        optimizer = build_optimizer(self.task, steps)
        at = int(STRIKE * steps) + 1
        self.fault = FAULTS[case](self.task, optimizer, at) if case in FAULTS else None
        # One interval for all: then there is one variant of the step to compile.
        self.monitor = attach(
            self.task.network, optimizer, summary_dir=folder, interval=1, snapshot_every=0
        )
        self._step = self.monitor.jit(functional_step(self.task.network, optimizer))
        self._done = 0
        self.stopped = False

    def step(self) -> float:
        """Trains one step; returns its loss."""
        self._done += 1
        if self.fault is not None and self._done == self.fault.step:
            self.fault.strike()
        loss = self._step(*map(Tensor, self.task.batches[self._done - 1]))
        self.stopped = self.monitor.step(loss)
        return float(loss.asnumpy())

    def final_loss(self) -> float:
        """Mean loss of batches that no training saw."""
        self.monitor.close()
        found = [
            float(self.task.network(*map(Tensor, self.task.batches[HELD_OUT + i])).asnumpy())
            for i in range(EVALUATION_BATCHES)
        ]
        return float(np.mean(found))


class DemoSubject:
    """See `healing.Subject`."""

    faults = CURABLE
    controls = ("healthy",)

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def begin(self, case: str, seed: int, folder: Path) -> DemoSession:
        """A training that is ready for its first step."""
        return DemoSession(case, seed, folder, self.steps)


def subject(steps: int) -> DemoSubject:
    """The subject of the benchmark."""
    return DemoSubject(steps)
