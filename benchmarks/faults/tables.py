"""The scores as tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.common import table
from benchmarks.faults.alarms import Case
from benchmarks.faults.index import FAULTY, HEALTHY, RELABELLED
from benchmarks.faults.intervals import Figure, median, rate
from benchmarks.faults.scores import (
    IN_TIME_ROWS,
    PER_STEPS,
    Scores,
    delay,
    layer_rank,
    said_class,
    true_class,
)

SEVERITIES = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class Target:
    """A figure that has to be reached, and to be better than that of every other detector.

    Attributes:
        larger: whether larger is better.
    """

    what: str
    wanted: float
    larger: bool
    of: Callable[[Scores], Figure]

    def reached(self, value: float) -> bool:
        """NaN reaches nothing."""
        return value >= self.wanted if self.larger else value <= self.wanted

    def better(self, ours: float, other: float) -> bool:
        """Ours is better, or the best that can be, or the other tells nothing."""
        if math.isnan(other):
            return True
        best = 1.0 if self.larger else 0.0
        return ours == best or (ours > other if self.larger else ours < other)


TARGETS = (
    Target("recall", 0.95, True, lambda s: s.recall),
    Target("precision", 0.95, True, lambda s: s.precision),
    Target("false alarms / 10,000 healthy steps", 1.0, False, lambda s: s.false_alarms),
    Target("median delay, sampled steps", 10.0, False, lambda s: s.delay_rows),
    Target("macro-F1 of the category", 0.85, True, lambda s: s.macro_f1),
)


def number(value: float, digits: int = 2) -> str:
    """Example:
    >>> number(0.956), number(float("nan")), number(float("inf"))
    ('0.96', '-', 'never')
    """
    if math.isnan(value):
        return "-"
    return "never" if math.isinf(value) else f"{value:.{digits}f}"


def whole(value: float) -> str:
    """Without needless digits."""
    return number(value, 0 if float(value).is_integer() else 1)


def interval(figure: Figure) -> str:
    """The two ends."""
    return f"{number(figure.low)} to {number(figure.high)}"


def detectors(scored: Mapping[str, Scores]) -> str:
    """Every detector in a row."""
    head = (
        "detector",
        "recall",
        "in time",
        "precision",
        "F1",
        "of alarms",
        "false / 10k",
        "delay",
        "sampled",
        "macro-F1",
        "layer 1",
        "layer 3",
        "AP",
    )
    rows = [
        (
            name,
            number(s.recall.value),
            number(s.recall_in_time.value),
            number(s.precision.value),
            number(s.f1.value),
            number(s.alarm_precision.value),
            number(s.false_alarms.value, 1),
            whole(s.delay_steps.value),
            whole(s.delay_rows.value),
            number(s.macro_f1.value),
            number(s.layer_1.value),
            number(s.layer_3.value),
            number(s.average_precision.value),
        )
        for name, s in scored.items()
    ]
    return table(head, rows)


def with_intervals(s: Scores) -> str:
    """Each figure of one detector with its interval."""
    figures = {
        "recall": s.recall,
        f"recall within {IN_TIME_ROWS} sampled steps": s.recall_in_time,
        "precision": s.precision,
        "F1 of runs": s.f1,
        "precision of alarms": s.alarm_precision,
        "false alarms / 10,000 healthy steps": s.false_alarms,
        "median delay, steps": s.delay_steps,
        "median delay, sampled steps": s.delay_rows,
        "macro-F1 of the category": s.macro_f1,
        "layer, first": s.layer_1,
        "layer, first three": s.layer_3,
        "event-time average precision": s.average_precision,
    }
    rows = [
        (name, number(f.value), interval(f), f"{f.count} of {f.total}" if f.total else "")
        for name, f in figures.items()
    ]
    return table(("figure", "value", "95 %", "count"), rows)


def targets(scored: Mapping[str, Scores], ours: str) -> list[dict[str, object]]:
    """Each target: whether it is reached, and which other detectors are not worse."""
    told = []
    for target in TARGETS:
        value = target.of(scored[ours]).value
        others = {name: target.of(s).value for name, s in scored.items() if name != ours}
        ahead = [name for name, other in others.items() if not target.better(value, other)]
        met = target.reached(value)
        told.append(
            {
                "target": target.what,
                "wanted": target.wanted,
                "value": value,
                "met": met,
                "not_beaten": ahead,
            }
        )
    return told


def target_table(told: Iterable[Mapping[str, object]]) -> str:
    """The targets, met or missed."""
    signs = {target.what: ">=" if target.larger else "<=" for target in TARGETS}
    rows = [
        (
            row["target"],
            f"{signs[str(row['target'])]} {row['wanted']}",
            number(float(str(row["value"]))),
            "met" if row["met"] else "MISSED",
            ", ".join(map(str, row["not_beaten"])) or "all beaten",  # type: ignore[call-overload]
        )
        for row in told
    ]
    return table(("target", "wanted", "value", "", "not beaten"), rows)


def kinds(cases: Sequence[Case]) -> str:
    """The faults by recipe."""
    head = ("fault", "runs", *SEVERITIES, "in time", "delay", "sampled", "category", "layer 1")
    rows = []
    for recipe, group in by_recipe(cases, FAULTY).items():
        layered = [case for case in group if case.run.layer is not None]
        rows.append(
            (
                recipe,
                len(group),
                *(_found([c for c in group if c.run.severity == s]) for s in SEVERITIES),
                _of(sum(delay(case)[1] <= IN_TIME_ROWS for case in group), len(group)),
                whole(median([delay(case)[0] for case in group])),
                whole(median([delay(case)[1] for case in group])),
                _of(sum(said_class(case) == true_class(case) for case in group), len(group)),
                _of(sum(layer_rank(case) <= 1 for case in layered), len(layered)),
            )
        )
    return table(head, rows)


def healthy_kinds(cases: Sequence[Case]) -> str:
    """The healthy runs, the healthy parts of the others, and the relabelled, by recipe."""
    head = ("healthy", "runs", "steps", "false alarms", "/ 10k", "by")
    groups = [(name, group) for name, group in by_recipe(cases, HEALTHY).items()]
    groups.append(("before the label", [case for case in cases if case.run.verdict == FAULTY]))
    rows = []
    for name, group in groups:
        false = [alarm for case in group for alarm in case.false_alarms]
        steps = sum(case.healthy_steps for case in group)
        rung = Counter(alarm.name for alarm in false)
        told = ", ".join(f"{rule} {count}" for rule, count in rung.most_common())
        per = number(rate(len(false), steps, PER_STEPS).value, 1)
        rows.append((name, len(group), steps, len(false), per, told))
    for name, group in by_recipe(cases, RELABELLED).items():
        rung = Counter(alarm.name for case in group for alarm in case.loud)
        told = ", ".join(f"{rule} {count}" for rule, count in rung.most_common())
        rows.append((f"{name} (relabelled)", len(group), "", "", "", told))
    return table(head, rows)


def rule_table(cases: Sequence[Case], names: Sequence[str]) -> str:
    """What each rule does: runs that it found, found first, found alone; its false alarms."""
    faulty = [case for case in cases if case.run.verdict == FAULTY]
    rows = []
    for name in names:
        found = [c for c in faulty if any(a.name == name for a in c.detections)]
        alone = [c for c in found if {a.name for a in c.detections} == {name}]
        first = [c for c in found if c.detections[0].name == name]
        false = sum(a.name == name for case in cases for a in case.false_alarms)
        quiet = sum(a.name == name and not a.loud for case in cases for a in case.alarms)
        rows.append((name, len(found), len(first), len(alone), false, quiet))
    rows.sort(key=lambda row: (-row[4], -row[1], row[0]))
    return table(("rule", "runs found", "first", "alone", "false alarms", "info"), rows)


def by_recipe(cases: Iterable[Case], verdict: str) -> dict[str, list[Case]]:
    """The cases with a verdict, by recipe in order of the alphabet."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        if case.run.verdict == verdict:
            found.setdefault(case.run.recipe, []).append(case)
    return dict(sorted(found.items()))


def _found(group: Sequence[Case]) -> str:
    return _of(sum(bool(case.detections) for case in group), len(group))


def _of(count: int, total: int) -> str:
    return f"{count}/{total}" if total else ""
