"""Would the rules tell? Faults are put into a copy of recorded series, and all of it is judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mindpulse.alerts import FIRING, AlertEvent
from mindpulse.alerts.judge import Judge
from mindpulse.errors import UsageError
from mindpulse.rules.rule import Rule
from mindpulse.series import Rows, Series
from mindpulse.store.reader import Chunk
from mindpulse.watcher.faults import FAULTS, SEVERITIES, Fault
from mindpulse.watcher.rhythm import Rhythm

# Rules look back hundreds of rows; more than this before the fault changes nothing.
STEPS_BEFORE, STEPS_AFTER = 5000, 2000
SHARE_BEFORE = 0.6


@dataclass(frozen=True, slots=True)
class Fired:
    """A rule that tells of a fault, and after how many steps."""

    rule: str
    after_steps: int


@dataclass(frozen=True, slots=True)
class Tried:
    """One fault in one severity.

    Attributes:
        strength: how much of it, see `Fault.unit`.
        series: those that were changed; () if the run has none of them.
        fired: what tells of it, the first one first.
    """

    fault: str
    severity: str
    strength: float
    unit: str
    series: tuple[str, ...]
    fired: tuple[Fired, ...] = ()


@dataclass(frozen=True, slots=True)
class SelfTest:
    """What came out.

    Attributes:
        step: the step at which each fault begins.
        tried: each fault in each severity.
        before: rules that fire in the run as it is, around this step.
        unknown: why a rule can never tell here, by its name.
        stalled_after_s: after how long a silence `stalled-run` would tell.
    """

    step: int
    tried: tuple[Tried, ...]
    before: tuple[str, ...]
    unknown: Mapping[str, str]
    stalled_after_s: float


def selftest(
    recorded: Mapping[str, Series], rules: Sequence[Rule], step: int | None = None
) -> SelfTest:
    """Puts every fault in every severity into the series, and judges the result.

    Args:
        recorded: series of one rank, by tag.
        step: where faults begin; after six tenths of the steps if not given.

    Raises:
        UsageError: nothing was recorded, or the step is outside of what was.
    """
    at = _place(recorded, step)
    kept = {tag: _around(series, at) for tag, series in recorded.items()}
    kept = {tag: series for tag, series in kept.items() if len(series)}
    usual, unknown = _judged(kept, rules)
    known = {(event.rule, event.step) for event in usual}
    tried = tuple(
        _try(fault, severity, strength, kept, rules, at, known)
        for fault in FAULTS
        for severity, strength in zip(SEVERITIES, fault.strengths, strict=True)
    )
    return SelfTest(
        at,
        tried,
        tuple(sorted({event.rule for event in usual})),
        unknown,
        _limit_s(recorded),
    )


def _place(recorded: Mapping[str, Series], step: int | None) -> int:
    ends = [(int(s.steps[0]), int(s.steps[-1])) for s in recorded.values() if len(s)]
    if not ends:
        raise UsageError("nothing was recorded that a rule reads: there is nothing to test with")
    first, last = min(begin for begin, _ in ends), max(end for _, end in ends)
    at = first + round(SHARE_BEFORE * (last - first)) if step is None else step
    if not first < at <= last:
        raise UsageError(f"step {at}: faults can begin at steps {first + 1} to {last}")
    return at


def _around(series: Series, step: int) -> Series:
    first, last = series.steps.searchsorted([step - STEPS_BEFORE, step + STEPS_AFTER])
    return Series(series.spec, series.rows[int(first) : int(last)])


def _try(
    fault: Fault,
    severity: str,
    strength: float,
    kept: Mapping[str, Series],
    rules: Sequence[Rule],
    step: int,
    known: set[tuple[str, int]],
) -> Tried:
    changed = {
        tag: Series(series.spec, fault.put_in(tag, series.rows, step, strength))
        for tag, series in kept.items()
        if tag in fault.changes
    }
    fired: dict[str, int] = {}
    if changed:
        for event in _judged({**kept, **changed}, rules)[0]:
            if event.step >= step and (event.rule, event.step) not in known:
                fired.setdefault(event.rule, event.step - step)
    order = sorted(fired.items(), key=lambda item: (item[1], item[0]))
    told = tuple(Fired(rule, after) for rule, after in order)
    return Tried(fault.name, severity, strength, fault.unit, tuple(sorted(changed)), told)


def _judged(
    series: Mapping[str, Series], rules: Sequence[Rule]
) -> tuple[list[AlertEvent], dict[str, str]]:
    """The alerts that begin, and the rules that stayed unknown."""
    judge = Judge(rules)
    events = judge.feed(_chunks(series)) + judge.finish()
    return [event for event in events if event.state == FIRING], judge.unknown()


def _chunks(series: Mapping[str, Series]) -> Iterator[Chunk]:
    for each in series.values():
        yield Chunk(0, 1, each.spec, each.rows)


def _limit_s(recorded: Mapping[str, Series]) -> float:
    rhythm = Rhythm()
    densest: Rows = max((series.rows for series in recorded.values()), key=len)
    rhythm.add(np.sort(densest.wall_times))
    return rhythm.limit_s()
