"""What a detector told of a run, in one form for our rules and for those of others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.faults.index import FAULTY, HEALTHY, RecordedRun
from mindpulse.catalogue.layers import layer_number
from mindpulse.rules.rule import SEVERITIES

LOUD = SEVERITIES.index("warning")


@dataclass(frozen=True, slots=True)
class Alarm:
    """The beginning of an alert. One that goes on is told once.

    Attributes:
        step: when it was told.
        name: the rule.
        severity: as in `rules.rule.SEVERITIES`.
        category: as in `rules.rule.PARTS`; "" if the detector names none.
        layers: the layers that it names, each once.
        origin: the layer in which it says that the trouble began, None if it does not say.
        rows: rows that the densest series of the rule has from the label (or from the first step)
            up to this step, counting from 0.
        detail: the evidence, for people.
    """

    step: int
    name: str
    severity: str = "error"
    category: str = ""
    layers: tuple[int, ...] = ()
    rows: int = 0
    detail: str = ""
    origin: int | None = None

    @property
    def rank(self) -> int:
        """0 for info, 3 for critical."""
        return SEVERITIES.index(self.severity)

    @property
    def loud(self) -> bool:
        """A warning or worse: what wakes somebody."""
        return self.rank >= LOUD


@dataclass(frozen=True, slots=True)
class Case:
    """A run, and what one detector told of it.

    Attributes:
        alarms: in the order of steps.
        first_step, last_step: of what was recorded.
    """

    run: RecordedRun
    alarms: tuple[Alarm, ...]
    first_step: int
    last_step: int

    @property
    def label(self) -> int:
        """The first step that is not healthy: the label, or what follows the last step."""
        step = self.run.label_step
        return self.last_step + 1 if self.run.verdict == HEALTHY or step is None else step

    @property
    def healthy_steps(self) -> int:
        """Steps before the label; none in a relabelled run, which is left out."""
        if self.run.verdict not in (FAULTY, HEALTHY):
            return 0
        return max(0, min(self.label, self.last_step + 1) - self.first_step)

    @property
    def loud(self) -> tuple[Alarm, ...]:
        """The alarms that count: warnings and worse."""
        return tuple(alarm for alarm in self.alarms if alarm.loud)

    @property
    def false_alarms(self) -> tuple[Alarm, ...]:
        """Alarms at healthy steps."""
        if self.run.verdict not in (FAULTY, HEALTHY):
            return ()
        return tuple(alarm for alarm in self.loud if alarm.step < self.label)

    @property
    def detections(self) -> tuple[Alarm, ...]:
        """Alarms at or after the label of a faulty run."""
        if self.run.verdict != FAULTY:
            return ()
        return tuple(alarm for alarm in self.loud if alarm.step >= self.label)

    @property
    def heard(self) -> tuple[Alarm, ...]:
        """By severity, then by time: of a faulty run the detections, else all alarms that count."""
        chosen = self.detections if self.run.verdict == FAULTY else self.loud
        return tuple(sorted(chosen, key=lambda alarm: (-alarm.rank, alarm.step)))


def layer_of(label: str) -> int | None:
    """The layer that a column label names: a number, or a path with one in it.

    Example:
        >>> layer_of("3"), layer_of("decoder.layers.2.ffn.weight"), layer_of("head.weight")
        (3, 2, None)
    """
    return int(label) if label.isdecimal() else layer_number(label)


def rows_since(steps: NDArray[np.int64], since: int, step: int) -> int:
    """How many of the (sorted) steps came after the first that is not before `since`.

    Example:
        >>> rows_since(np.array([100, 110, 120, 130]), 105, 130)
        2
    """
    between = steps.searchsorted(step, "right") - steps.searchsorted(since, "left")
    return max(0, int(between) - 1)
