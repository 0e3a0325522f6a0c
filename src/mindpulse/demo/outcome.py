"""What came of a demo: the figures, the report, and the words at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mindpulse import __version__, open_run
from mindpulse.report.collect import collect
from mindpulse.report.data import Alert, ReportData
from mindpulse.report.html import write_html
from mindpulse.report.words import Words
from mindpulse.rules.load import load_rules

LAST_STEPS = 20  # the final loss is the mean over so many


@dataclass(frozen=True)
class Trained:
    """What the training itself knows.

    Attributes:
        title: what was trained.
        losses: of each step, in nats.
        duration_s: from the first step's compilation to the last step.
        reference: name and value of a loss to compare with.
        figures: more figures by name.
        fault, fault_step: what was injected before which step; "" and 0 for nothing.
        act: whether the watcher was allowed to act.
    """

    title: str
    steps: int
    losses: Sequence[float]
    duration_s: float
    reference: tuple[str, float]
    figures: dict[str, float] = field(default_factory=dict)
    fault: str = ""
    fault_step: int = 0
    act: bool = False

    @property
    def final_loss(self) -> float:
        """Mean loss of the last steps; NaN if one of them is."""
        return float(np.mean(self.losses[-LAST_STEPS:])) if self.losses else float("nan")


@dataclass(frozen=True)
class Outcome:
    """A training, the report on it, and where that is."""

    trained: Trained
    data: ReportData
    directory: Path
    report: Path

    @property
    def findings(self) -> list[Alert]:
        """The alerts above "info", also those that are over."""
        return [alert for alert in self.data.alerts if alert.level > 0]

    @property
    def is_sound(self) -> bool:
        """No finding but about the speed: a machine that has other work is no faulty training."""
        return all(alert.part == "throughput" for alert in self.findings)


def write_report(trained: Trained, directory: Path) -> Outcome:
    """Reads the run folder and writes `report.html` into it."""
    data = collect(open_run(directory), load_rules())
    report = directory / "report.html"
    report.write_text(write_html(data, Words("en"), time.time(), __version__), encoding="utf-8")
    return Outcome(trained, data, directory, report)


def as_object(outcome: Outcome) -> dict[str, Any]:
    """The outcome as plain values."""
    trained, data = outcome.trained, outcome.data
    name, value = trained.reference
    return {
        "title": trained.title,
        "steps": len(trained.losses),
        "duration_s": trained.duration_s,
        "final_loss": trained.final_loss,
        "reference": {"name": name, "value": value},
        "figures": trained.figures,
        "fault": {"name": trained.fault, "step": trained.fault_step} if trained.fault else None,
        "score": data.health.score,
        "score_at_best": data.health.at_best,
        "score_calibrated": data.health.calibrated,
        "findings": [
            {"rule": alert.rule, "severity": alert.severity, "since_step": alert.since_step}
            for alert in outcome.findings
        ],
        "actions": [
            {"verb": action.verb, "status": action.status, "step": action.done_step}
            for action in data.actions
        ],
        "directory": str(outcome.directory),
        "report": str(outcome.report),
    }


def summary(outcome: Outcome, program: str, again: str) -> Iterator[str]:
    """The closing words, line by line.

    Args:
        program: how `mindpulse` is called here.
        again: the command that ran this demo.
    """
    trained, data = outcome.trained, outcome.data
    yield ""
    yield f"Trained {trained.title}"
    yield f"  {len(trained.losses)} of {trained.steps} steps in {trained.duration_s:.0f} s"
    yield from _losses(trained)
    score = "unknown" if data.health.score is None else f"{data.health.score:.0f} of 100"
    note = Words("en").score_note(data.health)
    yield f"  health score: {score}" + (f" ({note})" if note else "")
    if trained.fault:
        yield f"  fault put in: {trained.fault} at step {trained.fault_step}"
    yield from _alerts(outcome)
    yield from _actions(data)
    yield ""
    yield f"Run folder:     {outcome.directory}"
    yield f"Health report:  {outcome.report}"
    yield ""
    yield from _next(outcome, program, again)


def _losses(trained: Trained) -> Iterator[str]:
    name, value = trained.reference
    yield f"  loss: {trained.final_loss:.3f} nats (mean of the last {LAST_STEPS} steps)"
    below = value - trained.final_loss
    if np.isfinite(below):
        side = "below" if below >= 0 else "above"
        yield f"  {name}: {value:.3f} nats; the loss is {abs(below):.3f} nats {side} it"
    for label, figure in trained.figures.items():
        yield f"  {label}: {figure:.3f}"


def _alerts(outcome: Outcome) -> Iterator[str]:
    if not outcome.findings:
        yield '  alerts above "info": none'
    for alert in outcome.findings:
        until = "still on" if alert.end_step is None else f"over at step {alert.end_step}"
        words = Words("en").message(alert)
        yield f"  {alert.severity}: {alert.rule} since step {alert.since_step}, {until}: {words}"


def _actions(data: ReportData) -> Iterator[str]:
    for action in data.actions:
        at = "" if action.done_step is None else f" at step {action.done_step}"
        yield f"  action {action.seq} ({action.rule}): {action.verb} {action.status}{at}"


def _next(outcome: Outcome, program: str, again: str) -> Iterator[str]:
    yield "What to try next:"
    yield f"  {program} query {outcome.directory} --tag train_loss --limit 5"
    yield f"  {program} analyze {outcome.directory}"
    if not outcome.trained.fault:
        yield f"  {again} --fault lr-explosion        # see a fault being named"
        yield f"  {again} --fault lr-explosion --act  # ... and acted on"
    elif not outcome.trained.act:
        yield f"  {again} --act  # let the watcher do what it advised"
    else:
        yield f"  {program} report {outcome.directory} --format md --output -"
