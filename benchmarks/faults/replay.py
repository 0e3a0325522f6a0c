"""A recorded run through the judge, as `mindpulse watch` would have judged it live.

The judge looks at every step in order and at nothing later, so the outcome is that of the live
watcher; a test of the package holds it to that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.faults.alarms import Alarm, Case, layer_of, rows_since
from benchmarks.faults.baselines import BASELINES, Baseline
from benchmarks.faults.baselines.curves import Curves, curve_of
from benchmarks.faults.index import RecordedRun
from mindpulse.alerts import FIRING, AlertEvent
from mindpulse.alerts.judge import Judge
from mindpulse.errors import UsageError
from mindpulse.rules.load import load_rules
from mindpulse.rules.rule import Rule
from mindpulse.store.reader import Chunk, RunTail
from mindpulse.watcher.ranks import compared
from mindpulse.window import Window

OURS = "mindpulse"
MOST_PROCESSES = 2
_LABELS = re.compile(r"(?:^| )(layer|cell|param)=(\S+)")


@dataclass(frozen=True, slots=True)
class Heard:
    """What every detector told of one run.

    Attributes:
        cases: by the detector's name.
        unknown: why a rule of ours could not be judged at the end, by its name.
    """

    run: RecordedRun
    cases: Mapping[str, Case]
    unknown: Mapping[str, str]


def read_chunks(folder: Path) -> list[Chunk]:
    """All rows of a run folder, in the order of attempts.

    Raises:
        UsageError: there are none.
    """
    chunks = [found for found in RunTail(folder).poll() if isinstance(found, Chunk)]
    if not chunks:
        raise UsageError(f"{folder}: no rows; the recording is missing or was not unpacked whole")
    return chunks


def judge_events(
    chunks: Sequence[Chunk], rules: Sequence[Rule]
) -> tuple[list[AlertEvent], dict[str, str]]:
    """What became of the alerts, in the order of steps, and why rules are unknown at the end."""
    judge = Judge(rules)
    events = judge.feed(chunks) + judge.finish() + compared(chunks)
    return sorted(events, key=lambda event: event.step), judge.unknown()


def curves_by_rank(chunks: Iterable[Chunk]) -> dict[int, Curves]:
    """The series of each rank as they stand at the end: later attempts supersede earlier steps."""
    window = Window({})
    for chunk in chunks:
        window.extend(chunk)
    return {
        rank: {tag: curve_of(track.spec, track.rows) for tag, track in window.tracks(rank).items()}
        for rank in window.ranks
    }


def alarms_of(
    events: Iterable[AlertEvent], rules: Sequence[Rule], ranks: Mapping[int, Curves], since: int
) -> tuple[Alarm, ...]:
    """The beginnings of alerts as alarms; `since`: from which step on their rows are counted."""
    series = {rule.name: tuple(rule.expression.series) for rule in rules}

    def alarm(event: AlertEvent) -> Alarm:
        # An alert about the ranks as a whole is no rank's own.
        curves = ranks.get(event.rank) or next(iter(ranks.values()))
        return Alarm(
            step=event.step,
            name=event.rule,
            severity=event.severity,
            category=event.part,
            layers=named_layers(event.columns),
            rows=rows_since(densest(curves, series.get(event.rule, ())), since, event.step),
            detail=", ".join(f"{term} = {value:.4g}" for term, value in event.evidence.items()),
            origin=next(iter(named_layers([event.origin])), None),
        )

    return tuple(alarm(event) for event in events if event.state == FIRING and is_told(event))


def is_told(event: AlertEvent) -> bool:
    """False for an alert that is only kept, because another one of the same cause was told."""
    return event.delivered


def named_layers(columns: Iterable[str]) -> tuple[int, ...]:
    """The layers in column names such as "layer=3 head=1" and "param=layers.2.ffn.weight".

    Example:
        >>> named_layers(["layer=3 head=0", "layer=3 head=1", "param=embedding.table"])
        (3,)
    """
    labels = (match[2] for name in columns for match in _LABELS.finditer(name))
    found = (layer_of(label) for label in labels)
    return tuple(dict.fromkeys(layer for layer in found if layer is not None))


def densest(curves: Curves, tags: Iterable[str]) -> NDArray[np.int64]:
    """The steps of that of the series that has most rows; of all series if there is none."""
    chosen = [curves[tag].steps for tag in tags if tag in curves]
    return max(chosen or [curve.steps for curve in curves.values()], key=len)


def listen(
    run: RecordedRun, folder: Path, rules: Sequence[Rule], baselines: Sequence[Baseline] = BASELINES
) -> Heard:
    """Puts a run before our rules and before the baselines.

    Args:
        folder: where the index lies.

    Raises:
        UsageError: the recording is not there.
    """
    chunks = read_chunks(folder / run.run)
    ranks = curves_by_rank(chunks)
    every = [curve.steps for curves in ranks.values() for curve in curves.values()]
    first, last = min(int(s[0]) for s in every), max(int(s[-1]) for s in every)
    since = first if run.label_step is None else run.label_step
    events, unknown = judge_events(chunks, rules)
    told = {OURS: alarms_of(events, rules, ranks, since)}
    for baseline in baselines:
        alarms = [alarm for curves in ranks.values() for alarm in baseline.alarms(curves, since)]
        told[baseline.name] = tuple(sorted(alarms, key=lambda alarm: alarm.step))
    cases = {name: Case(run, alarms, first, last) for name, alarms in told.items()}
    return Heard(run, cases, unknown)


def listen_to_all(
    runs: Sequence[RecordedRun],
    folder: Path,
    rules_file: Path | None = None,
    processes: int = MOST_PROCESSES,
    baselines: bool = True,
) -> list[Heard]:
    """`listen` to many runs, in processes of their own if there are two or more.

    Raises:
        RuleError: the rule file is wrong.
        UsageError: a recording is not there.
    """
    rules = load_rules(rules_file)  # a mistake is told once, not by each process
    chosen = BASELINES if baselines else ()
    if processes < 2 or len(runs) < 8:
        return [listen(run, folder, rules, chosen) for run in runs]
    task = partial(_task, folder=folder, rules_file=rules_file, baselines=baselines)
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        return list(pool.map(task, runs, chunksize=4))


_RULES: dict[Path | None, tuple[Rule, ...]] = {}


def _task(run: RecordedRun, folder: Path, rules_file: Path | None, baselines: bool) -> Heard:
    """In a process of its own; rules are compiled functions and cannot be sent there."""
    if rules_file not in _RULES:
        _RULES[rules_file] = load_rules(rules_file)
    return listen(run, folder, _RULES[rules_file], BASELINES if baselines else ())
