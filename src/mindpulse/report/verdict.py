"""The one answer that the first screen gives: is this run healthy?"""

from __future__ import annotations

from dataclasses import dataclass

from mindpulse.health import Reason
from mindpulse.report.data import Alert, ReportData

CAUSE_STEPS = 30


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of the run, and the alerts above "info" that led to it, gravest first.

    Before all of them stands the one that began first, where it began shortly before the gravest:
    what comes first is nearest to the cause.

    Attributes:
        state: "healthy", "recovered" (there were problems, all are over), "attention" (warnings
            only, or a loss that did not come down for good), "unhealthy" (an error or worse) or
            "unknown" (too little data to judge).
        concerns: what is wrong although no rule is firing.
    """

    state: str
    alerts: tuple[Alert, ...]
    concerns: tuple[Reason, ...] = ()

    @property
    def firing(self) -> int:
        """How many of the alerts are still open at the end."""
        return sum(alert.end_step is None for alert in self.alerts)


def judge(data: ReportData) -> Verdict:
    """The verdict on a run: by its alerts, and "unknown" where nothing could be judged."""
    grave = [alert for alert in data.alerts if alert.level > 0]
    grave.sort(key=lambda a: (a.end_step is not None, -a.level, a.since_step))
    _put_cause_first(grave)
    concerns = tuple(part.concern for part in data.health.parts.values() if part.concern)
    judged = data.steps is not None and data.health.score is not None
    state = _state(grave) if grave else "healthy" if judged else "unknown"
    if concerns and state in ("healthy", "recovered"):
        state = "attention"
    return Verdict(state, tuple(grave), concerns)


def _put_cause_first(grave: list[Alert]) -> None:
    if not grave:
        return
    worst = grave[0].since_step
    before = [a for a in grave if worst - CAUSE_STEPS <= a.since_step < worst]
    if before:
        cause = min(before, key=lambda a: (a.since_step, -a.level))
        grave.remove(cause)
        grave.insert(0, cause)


def _state(grave: list[Alert]) -> str:
    still = [alert for alert in grave if alert.end_step is None]
    if not still:
        return "recovered"
    return "unhealthy" if max(alert.level for alert in still) >= 2 else "attention"
