"""Why a rule did not ring: how often its condition held, and what its terms were."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mindpulse.rules.expression import FIRED, QUIET, UNKNOWN, Run
from mindpulse.rules.rule import Rule
from mindpulse.rules.sweep import Says, sweep
from mindpulse.store.reader import Chunk
from mindpulse.window import Window

SAID = {Says.QUIET: QUIET, Says.FIRED: FIRED, Says.UNKNOWN: UNKNOWN}


@dataclass(frozen=True, slots=True)
class RuleStory:
    """How a rule fared from some step on, at the rank where it held most.

    Attributes:
        held, quiet, unknown: at how many of the steps.
        longest: steps of the longest stretch over which it held without a break, in any columns.
        needed: how many steps it has to hold.
        since: the first step at which it held, None if it never did.
        reason: why it was unknown when it last was.
    """

    rule: str
    severity: str
    held: int
    quiet: int
    unknown: int
    longest: int
    needed: int
    since: int | None
    reason: str

    def __str__(self) -> str:
        total = self.held + self.quiet + self.unknown
        if not total:
            return f"{self.rule}: nobody writes its series"
        if self.held:
            found = f"held at {self.held} of {total} steps from {self.since} on"
            return (
                f"{self.rule} ({self.severity}): {found}, {self.longest} in a row of {self.needed}"
            )
        if self.unknown:
            return f"{self.rule}: unknown at {self.unknown} of {total} steps, {self.reason}"
        return f"{self.rule}: quiet at {total} steps"


def whole_window(chunks: Iterable[Chunk]) -> Window:
    """All rows, none forgotten."""
    window = Window({})
    for chunk in chunks:
        window.extend(chunk)
    return window


def stories(window: Window, rules: Sequence[Rule], since: int) -> list[RuleStory]:
    """How each rule fared at and after step `since`; those that held most come first."""
    told = [
        max((_story(window, rule, rank, since) for rank in window.ranks), key=lambda s: s.held)
        for rule in rules
    ]
    return sorted(told, key=lambda story: (-story.held, story.unknown, story.rule))


def _story(window: Window, rule: Rule, rank: int, since: int) -> RuleStory:
    tracks = window.tracks(rank)
    rows = [tracks[tag].rows.steps for tag in rule.expression.series if tag in tracks]
    steps = np.unique(np.concatenate(rows)) if rows else np.empty(0, np.int64)
    steps = steps[steps >= since]
    said = []
    if len(steps):
        swept = sweep(rule.expression, lambda tag: window.kept(tag, rank), steps)
        said = [_said(window, rule, rank, *pair) for pair in zip(steps, swept, strict=True)]
    fired = [int(step) for step, state in zip(steps, said, strict=True) if state == FIRED]
    unknown = [int(step) for step, state in zip(steps, said, strict=True) if state == UNKNOWN]
    reason = ""
    if unknown:
        reason = rule.expression.evaluate(window.view(unknown[-1], rank)).reason
    return RuleStory(
        rule.name,
        rule.severity,
        len(fired),
        said.count(QUIET),
        len(unknown),
        _longest(steps.tolist(), said),
        rule.for_steps,
        fired[0] if fired else None,
        reason,
    )


def _said(window: Window, rule: Rule, rank: int, step: int, swept: int) -> str:
    if swept == Says.OPEN:
        return rule.expression.evaluate(window.view(int(step), rank)).state
    return SAID[Says(swept)]


def _longest(steps: list[int], said: list[str]) -> int:
    """Steps from the first to the last of the longest stretch that fired, unknown ones passed."""
    longest, since = 0, None
    for step, state in zip(steps, said, strict=True):
        if state == FIRED:
            since = step if since is None else since
            longest = max(longest, step - since + 1)
        elif state == QUIET:
            since = None
    return longest


def terms(window: Window, rule: Rule, step: int, rank: int = 0) -> list[tuple[str, float, float]]:
    """(term, smallest, largest value over its columns) of a rule at a step, in reading order."""
    run = Run(window.view(step, rank), rule.expression)
    with np.errstate(all="ignore"):
        rule.expression.node(run)
    found = {}
    for text, values in run.terms:
        finite = values[np.isfinite(values)]
        ends = (float(finite.min()), float(finite.max())) if len(finite) else (np.nan, np.nan)
        found[text] = (text, *ends)
    return list(found.values())
