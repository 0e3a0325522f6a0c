"""What a report says, as plain values: the same for HTML, Markdown and JSON, in any language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.health import Health
from mindpulse.report.scalar import Scalar

SEVERITIES = ("info", "warning", "error", "critical")
LEAD = "train_loss"
SECONDARY = ("grad_norm", "learning_rate", "step_time_s")
MAX_OWN = 12  # curves of series that a user records; the rest is left to `query`


def drawn_tags(tags: Iterable[str]) -> list[str]:
    """Of the scalar series those that get a curve, in order of their place in a report."""
    known = list(tags)
    ours = [name for name in (LEAD, *SECONDARY) if name in known]
    return ours + [name for name in known if name not in ours][:MAX_OWN]


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert from its first step to its last.

    Attributes:
        since_step: the first step on which the condition held.
        end_step: the step on which it was resolved; None while it fires.
        columns: where, for example ("layer=3 head=1",); () for a scalar series.
        message: words of a user's own rule, by language; {} for a rule that ships.
    """

    rule: str
    severity: str
    part: str
    since_step: int
    end_step: int | None
    rank: int
    columns: tuple[str, ...]
    evidence: Mapping[str, Any]
    message: Mapping[str, str]

    @property
    def level(self) -> int:
        """0 for info up to 3 for critical."""
        return SEVERITIES.index(self.severity)


@dataclass(frozen=True, slots=True)
class Action:
    """A request of the watcher and what the training made of it.

    Attributes:
        asked_step: the step at which the training was asked to act.
        done_step: the step at which it answered; None without an answer.
        status: "done", "refused", "expired", "failed", or "open" without an answer.
    """

    seq: int
    verb: str
    args: Mapping[str, Any]
    rule: str
    asked_step: int | None
    done_step: int | None
    status: str
    detail: str


@dataclass(frozen=True, slots=True, eq=False)
class Heat:
    """Values over steps for several rows, binned so that no extreme is lost.

    Attributes:
        rows: names of the rows, top first.
        first_step, last_step: the span of the columns, both included.
        values: (rows, columns) float64, NaN where no row was recorded.
        not_finite: (rows, columns) True where a NaN or infinity was recorded.
        steps_per_column: how many steps one column stands for.
        keep: "max" or "min", what a cell shows of its steps.
        bounds: ends of the colour scale where the measure has some; None to fit it.
    """

    tag: str
    rows: tuple[str, ...]
    first_step: int
    last_step: int
    values: NDArray[np.float64]
    not_finite: NDArray[np.bool_]
    steps_per_column: float
    keep: str = "max"
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class AttentionMap:
    """Attention probabilities of one head at one step: (query, key)."""

    layer: str
    head: int
    step: int
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class StepTime:
    """How long a step took.

    Attributes:
        median_s, high_s: seconds; 99 % of the steps took no longer than `high_s`.
        last_rows: how many rows these are of, from the last one back; None where it is all.
    """

    median_s: float
    high_s: float
    last_rows: int | None = None


@dataclass(frozen=True, slots=True)
class FileSummary:
    """The files of the run, counted."""

    total: int
    valid: int
    damaged: int
    foreign: int
    rows: int
    damaged_rows: int
    torn_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class ReportData:
    """All that a report shows.

    Attributes:
        series: the scalar series of `rank` by tag, none of them empty.
        step_time: None where no step was timed.
        troubles: what the monitor reported about itself.
        problems: what could not be read.
    """

    run_id: str
    path: str
    rank: int
    ranks: tuple[int, ...]
    attempts: tuple[int, ...]
    tags: Mapping[str, str]
    files: FileSummary
    series: Mapping[str, Scalar]
    health: Health
    step_time: StepTime | None = None
    alerts: tuple[Alert, ...] = ()
    actions: tuple[Action, ...] = ()
    heats: tuple[Heat, ...] = ()
    maps: tuple[AttentionMap, ...] = ()
    troubles: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[int, int] | None:
        """First and last step that any series has; None in an empty run."""
        if not self.series:
            return None
        found = self.series.values()
        return min(s.first_step for s in found), max(s.last_step for s in found)

    @property
    def wall_times(self) -> tuple[float, float] | None:
        """Time of the first and of the last row, seconds since the epoch; None if none has one."""
        known = [s.times for s in self.series.values()]
        times = np.concatenate(known) if known else np.empty(0)
        return (float(times.min()), float(times.max())) if len(times) else None

    @property
    def duration_s(self) -> float | None:
        """Seconds between the first and the last row; None if no row has a time."""
        times = self.wall_times
        return times[1] - times[0] if times else None
