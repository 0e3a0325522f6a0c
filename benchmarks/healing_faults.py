"""The recipes of the fault benchmark as a subject of the healing benchmark.

Curable are those that a person would cure by what can be asked for: a rate that is too high, or
weights that were damaged once. A wrong mask or wrong data is none of these.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.faults.recipes import RECIPES
from benchmarks.faults.script import held_out
from benchmarks.faults.settings import VARIANTS
from benchmarks.faults.train import FINAL_BATCHES, Training

VARIANT = "decoder"
CURABLE = (
    "lr-jump/medium", "lr-jump/high", "lr-too-high/medium", "no-clip/high", "oscillating/high",
    "attention-collapse/high", "exploding/high", "nan-batch/medium", "inf-weight/medium",
)  # fmt: skip


class FaultSession:
    """One training, step by step."""

    def __init__(self, training: Training, case: str, seed: int, folder: Path, steps: int) -> None:
        name, _, severity = case.partition("/")
        self._training, self._done = training, 0
        self._script = RECIPES[name].script(VARIANT, severity, seed, steps)
        self.monitor = training.monitors[0]
        rate = self.monitor._planted.learning_rate
        rate.scale(1.0 / rate.scaled_by)  # what the run before did to it
        training.folder = folder
        training._reset(self._script)
        self.monitor.restart(folder)
        self.stopped = False

    def step(self) -> float:
        """Trains one step; returns its loss."""
        self._done += 1
        loss = self._training._step(self._script, self._done)
        self.stopped = self.monitor._stop_asked
        return loss

    def final_loss(self) -> float:
        """Clean held-out loss at the end."""
        self.monitor.restart(self._training.idle)  # completes the run
        return self._training.evaluate(held_out(VARIANTS[VARIANT].kind), {}, FINAL_BATCHES)


class FaultSubject:
    """See `healing.Subject`."""

    faults = CURABLE

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.controls = tuple(
            recipe.name
            for recipe in RECIPES.values()
            if recipe.kind == "healthy" and VARIANT in recipe.variants
        )
        self._training = Training(VARIANTS[VARIANT], Path(tempfile.mkdtemp()))

    def begin(self, case: str, seed: int, folder: Path) -> FaultSession:
        """A training that is ready for its first step."""
        return FaultSession(self._training, case, seed, folder, self.steps)


def subject(steps: int) -> FaultSubject:
    """The subject of the benchmark."""
    return FaultSubject(steps)
