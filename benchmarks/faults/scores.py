"""How good a detector is on recorded runs; docs/fault-scores.md defines each figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.faults.alarms import Alarm, Case
from benchmarks.faults.index import FAULTY, HEALTHY, RELABELLED
from benchmarks.faults.intervals import (
    Figure,
    average_precision,
    bootstrap,
    f1_by_class,
    median,
    rate,
    share,
)

IN_TIME_ROWS = 10
EVENT_STEPS = 50
PER_STEPS = 10_000
NONE, UNNAMED = "none", "unnamed"


@dataclass(frozen=True, slots=True)
class Relabelled:
    """What became of faults that did no harm: runs, those with an alarm, alarms, steps."""

    runs: int
    with_alarm: int
    alarms: int
    steps: int


@dataclass(frozen=True, slots=True)
class Scores:
    """Figures of one detector over some runs.

    Attributes:
        faulty, healthy: how many runs.
        recall: faulty runs with an alarm at or after the label.
        recall_in_time: those whose first one came within 10 sampled steps.
        precision: of the runs that rang rightly or falsely, those that rang rightly.
        f1: harmonic mean of recall and precision.
        alarm_precision: of all alarms, those at or after the label of a faulty run.
        false_alarms: per 10,000 healthy steps.
        delay_steps, delay_rows: medians over all faulty runs, a missed one being infinitely late;
            in steps and in sampled steps.
        macro_f1: of the category; `category_f1` of each.
        layer_1, layer_3: faulty runs with a layer, where it is among the first one or three named.
        average_precision: event-time; `prevalence` is that of a detector that knows nothing.
    """

    faulty: int
    healthy: int
    recall: Figure
    recall_in_time: Figure
    precision: Figure
    f1: Figure
    alarm_precision: Figure
    false_alarms: Figure
    delay_steps: Figure
    delay_rows: Figure
    macro_f1: Figure
    category_f1: dict[str, float]
    layer_1: Figure
    layer_3: Figure
    average_precision: Figure
    prevalence: float
    relabelled: Relabelled


def score(cases: Sequence[Case], rounds: int = 1000) -> Scores:
    """Scores a detector.

    Args:
        cases: of one detector, a run each.
        rounds: of the bootstrap.
    """
    faulty = [case for case in cases if case.run.verdict == FAULTY]
    healthy = [case for case in cases if case.run.verdict == HEALTHY]
    found = [case for case in faulty if case.detections]
    false = [case for case in cases if case.false_alarms]
    false_count = sum(len(case.false_alarms) for case in cases)
    right_count = sum(len(case.detections) for case in faulty)
    pairs = [
        [(true_class(case), said_class(case)) for case in group] for group in (faulty, healthy)
    ]
    classes = sorted({truth for truth, _ in pairs[0]})
    cut = [[_table(windows(case)) for case in group] for group in (faulty, healthy)]
    rung = [[_rung(case) for case in group] for group in (faulty, healthy)]
    layered = [case for case in faulty if case.run.layer is not None]
    return Scores(
        faulty=len(faulty),
        healthy=len(healthy),
        recall=share(len(found), len(faulty)),
        recall_in_time=share(sum(delay(c)[1] <= IN_TIME_ROWS for c in faulty), len(faulty)),
        precision=share(len(found), len(found) + len(false)),
        f1=bootstrap(rung, _f1, rounds),
        alarm_precision=share(right_count, right_count + false_count),
        false_alarms=rate(false_count, sum(case.healthy_steps for case in cases), PER_STEPS),
        delay_steps=bootstrap([[delay(case)[0] for case in faulty]], median, rounds),
        delay_rows=bootstrap([[delay(case)[1] for case in faulty]], median, rounds),
        macro_f1=bootstrap(pairs, lambda drawn: _macro(drawn, classes), rounds),
        category_f1=f1_by_class(*_columns(pairs[0] + pairs[1]), classes),
        layer_1=share(sum(layer_rank(case) <= 1 for case in layered), len(layered)),
        layer_3=share(sum(layer_rank(case) <= 3 for case in layered), len(layered)),
        average_precision=bootstrap(cut, _precision_of_windows, rounds),
        prevalence=_prevalence([*cut[0], *cut[1]]),
        relabelled=_relabelled([case for case in cases if case.run.verdict == RELABELLED]),
    )


def delay(case: Case) -> tuple[float, float]:
    """Steps, and sampled steps, from the label to the first detection; infinite without one."""
    if not case.detections:
        return math.inf, math.inf
    first = case.detections[0]
    return float(first.step - case.label), float(first.rows)


def true_class(case: Case) -> str:
    """The category of a faulty run, "none" of a healthy one."""
    return str(case.run.category) if case.run.verdict == FAULTY else NONE


def said_class(case: Case) -> str:
    """The category of the first alarm of the highest severity, "none" without an alarm."""
    return (case.heard[0].category or UNNAMED) if case.heard else NONE


def layer_rank(case: Case) -> float:
    """At which place the detector names the right layer, 1 for the first; infinite if never.

    Alarms stand by severity, then by time; of one alarm the layer in which it says that the trouble
    began comes first. Layers that it names together share the last of their places: an alarm that
    names all layers has named none.
    """
    named: set[int] = set()
    for alarm in case.heard if case.run.verdict == FAULTY else ():
        origin = () if alarm.origin is None else (alarm.origin,)
        for together in (origin, alarm.layers):
            named.update(together)
            if case.run.layer in named:
                return len(named)
    return math.inf


def windows(case: Case) -> list[tuple[bool, float]]:
    """A run in stretches of 50 steps: whether the event begins there, and how loud it rang.

    The event is the stretch that begins with the label of a faulty run. What comes before it is
    cut backwards from there, a healthy run from its first step, remainders being left out; what
    comes after the event is left out too. Loudness: 0 for silence; else 1 for info to 4 for
    critical, less how far into the stretch the alarm came (0 to 1), of the loudest alarm.
    """
    if case.run.verdict not in (FAULTY, HEALTHY):
        return []
    length = case.label - case.first_step
    count = max(0, length) // EVENT_STEPS
    begin = case.first_step if case.run.verdict == HEALTHY else case.label - count * EVENT_STEPS
    starts = [begin + i * EVENT_STEPS for i in range(count)]
    found = [(False, _loudness(case.alarms, start)) for start in starts]
    if case.run.verdict == FAULTY:
        found.append((True, _loudness(case.alarms, case.label)))
    return found


def _loudness(alarms: Iterable[Alarm], start: int) -> float:
    inside = (alarm for alarm in alarms if 0 <= alarm.step - start < EVENT_STEPS)
    return max((a.rank + 1 - (a.step - start) / EVENT_STEPS for a in inside), default=0.0)


def _table(found: list[tuple[bool, float]]) -> NDArray[np.float64]:
    return np.array(found, np.float64).reshape(-1, 2)


def _precision_of_windows(drawn: list[NDArray[np.float64]]) -> float:
    table = np.concatenate(drawn) if drawn else _table([])
    return average_precision(table[:, 0] == 1, table[:, 1])


def _prevalence(tables: list[NDArray[np.float64]]) -> float:
    events = np.concatenate(tables)[:, 0] if tables else np.empty(0)
    return float(events.mean()) if len(events) else math.nan


def _rung(case: Case) -> tuple[int, int, int]:
    """Whether it is faulty, rang rightly, rang falsely."""
    return case.run.verdict == FAULTY, bool(case.detections), bool(case.false_alarms)


def _f1(drawn: list[tuple[int, int, int]]) -> float:
    """2 TP / (2 TP + FP + FN) of runs; NaN if there is nothing to find."""
    faulty, found, false = np.sum(np.array(drawn, np.int64).reshape(-1, 3), axis=0).tolist()
    return 2 * found / (found + false + faulty) if faulty else math.nan


def _macro(drawn: list[tuple[str, str]], classes: Sequence[str]) -> float:
    """Over the categories that the drawn faults have; NaN if none was drawn."""
    truth, said = _columns(drawn)
    present = [name for name in classes if name in truth]
    scores = f1_by_class(truth, said, present)
    return sum(scores.values()) / len(scores) if scores else math.nan


def _columns(pairs: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [truth for truth, _ in pairs], [said for _, said in pairs]


def _relabelled(cases: Sequence[Case]) -> Relabelled:
    return Relabelled(
        len(cases),
        sum(bool(case.loud) for case in cases),
        sum(len(case.loud) for case in cases),
        sum(case.last_step - case.first_step + 1 for case in cases),
    )
