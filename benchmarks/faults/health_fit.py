"""The constants of the health score, fitted to recorded runs: see `mindpulse.health.fitted`.

Penalised maximum likelihood under bounds (L-BFGS-B), so that no alert can raise the score. What it
minimises, over runs n and constants c:

    sum_n w_n log(1 + exp(-+ log-odds_n)) + sum_c (c - expected_c)^2 / (2 spread_c^2)

The weights w let healthy and faulty runs have the shares `PRIOR` and 1 - `PRIOR`. The penalty holds
constants that few runs speak about near what one would expect, and keeps findings that were never
seen in a healthy run from being taken as proof: the rules were tuned on the same runs, and ring
less in these healthy ones than in others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.faults.index import HEALTHY, RELABELLED, RecordedRun
from mindpulse import open_run
from mindpulse.health import judge_run
from mindpulse.health.evidence import Evidence
from mindpulse.health.fitted import Fit
from mindpulse.health.scoring import all_events, evidence_of
from mindpulse.health.trend import concern_about
from mindpulse.rules.rule import PARTS, SEVERITIES, Rule

PRIOR = 0.5
FOLDS = 5
LOSS = PARTS.index("loss")
P = len(PARTS)
# name -> expected value, spread, least, most; the steps lead from one severity to the next.
CONSTANTS = {
    "steps": ([0.0, 2.0, 1.0, 1.5], 1.0, 0.0, 9.0),
    "resolved": ([0.8], 0.2, 0.0, 1.0),
    "further": ([0.3], 0.3, 0.0, 1.0),
    "stale_loss": ([1.0], 1.0, 0.0, 9.0),
    "log_weight": ([0.0] * P, 0.5, -2.0, 2.0),
    # One for all parts: most runs know the same ones, so which of them tells is not to be seen.
    "quiet": ([0.0], 1.0, 0.0, 9.0),
}

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Judged:
    """One run as it goes into the fit."""

    run: RecordedRun
    evidence: dict[str, Evidence]

    @property
    def healthy(self) -> bool:
        """Whether it is one; a relabelled run is neither healthy nor faulty."""
        return self.run.verdict == HEALTHY

    @property
    def scored(self) -> bool:
        """Whether enough is known for a score."""
        return any(one.known or one.found for one in self.evidence.values())


def judge_all(runs: Sequence[RecordedRun], folder: Path, rules: Sequence[Rule]) -> list[Judged]:
    """The evidence in each recording, by the very steps that a score takes."""
    return [Judged(run, _evidence(folder / run.run, rules)) for run in runs]


def _evidence(path: Path, rules: Sequence[Rule]) -> dict[str, Evidence]:
    run = open_run(path)
    judged = judge_run(run, rules)
    return evidence_of(all_events(run, judged), judged, concern_about(run) is not None)


def for_the_fit(judged: Sequence[Judged]) -> list[Judged]:
    """Those that are healthy or faulty and have a score."""
    return [one for one in judged if one.run.verdict != RELABELLED and one.scored]


@dataclass(frozen=True, slots=True)
class Table:
    """Evidence of N runs as arrays; levels are 0 for no alert, 1 for info up to 4 for critical.

    Attributes:
        firing, over: (N, P, R) the gravest level of each rule, of alerts that fire and are over.
        known: (N, P) 1 where the part is known.
        stale: (N,) 1 where the loss did not come down for good.
        healthy: (N,).
    """

    firing: NDArray[np.intp]
    over: NDArray[np.intp]
    known: Floats
    stale: Floats
    healthy: NDArray[np.bool_]


def table_of(judged: Sequence[Judged]) -> Table:
    """The evidence of runs as arrays."""
    names = sorted({f.rule for one in judged for e in one.evidence.values() for f in e.found})
    shape = (len(judged), P, max(1, len(names)))
    firing, over = np.zeros(shape, np.intp), np.zeros(shape, np.intp)
    known, stale = np.zeros(shape[:2]), np.zeros(len(judged))
    for n, one in enumerate(judged):
        for p, part in enumerate(PARTS):
            evidence = one.evidence[part]
            known[n, p] = evidence.known
            stale[n] += evidence.stale_loss
            for found in evidence.found:
                levels, rule = over if found.over else firing, names.index(found.rule)
                level = 1 + SEVERITIES.index(found.severity)
                levels[n, p, rule] = max(level, levels[n, p, rule])
    return Table(firing, over, known, stale, np.array([one.healthy for one in judged], np.bool_))


def log_odds(values: Floats, table: Table) -> Floats:
    """(N,) log-odds of each run under constants in the order of `CONSTANTS`."""
    found = _named(values)
    lost = np.concatenate([[0.0], np.cumsum(found["steps"])])
    rules = np.maximum(lost[table.firing], found["resolved"] * lost[table.over])
    worst = rules.max(axis=2)
    cost = worst + found["further"] * (rules.sum(axis=2) - worst)
    cost *= np.exp(found["log_weight"])
    cost[:, LOSS] += found["stale_loss"] * table.stale
    start = np.log(PRIOR / (1.0 - PRIOR))
    gain = found["quiet"][0] * table.known.sum(axis=1)
    return np.asarray(start + gain - cost.sum(axis=1))


def fit(judged: Sequence[Judged], rules: str) -> Fit:
    """The constants that fit best.

    Args:
        rules: the fingerprint of the rules that judged.

    Raises:
        ValueError: there is no healthy run, or no faulty one.
    """
    table = table_of(judged)
    count = len(judged), int(table.healthy.sum())
    if count[1] in (0, count[0]):
        raise ValueError(f"{count[1]} healthy runs of {count[0]}: want some of both kinds")
    share = np.where(table.healthy, PRIOR / count[1], (1 - PRIOR) / (count[0] - count[1]))
    weights = count[0] * share
    expected, spread, least, most = _columns()

    def objective(values: Floats) -> float:
        odds = log_odds(values, table)
        loss = np.logaddexp(0.0, np.where(table.healthy, -odds, odds))
        penalty = np.square((values - expected) / spread).sum() / 2
        return float((weights * loss).sum() + penalty)

    found = minimize(
        objective, expected, method="L-BFGS-B", bounds=list(zip(least, most, strict=True))
    )
    return _as_fit(np.round(found.x, 6), rules, judged)


def _columns() -> tuple[Floats, Floats, Floats, Floats]:
    rows = [
        (value, spread, least, most)
        for values, spread, least, most in CONSTANTS.values()
        for value in values
    ]
    return tuple(np.array(column) for column in zip(*rows, strict=True))  # type: ignore[return-value]


def _named(values: Floats) -> dict[str, Floats]:
    ends = np.cumsum([len(expected) for expected, *_ in CONSTANTS.values()])
    return dict(zip(CONSTANTS, np.split(values, ends[:-1]), strict=True))


def _as_fit(values: Floats, rules: str, judged: Sequence[Judged]) -> Fit:
    found = _named(values)
    healthy = sum(one.healthy for one in judged)
    return Fit(
        rules=rules,
        prior=PRIOR,
        runs=len(judged),
        healthy=healthy,
        faulty=len(judged) - healthy,
        recipes=len({one.run.recipe for one in judged}),
        lost=dict(zip(SEVERITIES, np.cumsum(found["steps"]).tolist(), strict=True)),
        resolved=float(found["resolved"][0]),
        further=float(found["further"][0]),
        stale_loss=float(found["stale_loss"][0]),
        weight=dict(zip(PARTS, np.exp(found["log_weight"]).tolist(), strict=True)),
        quiet={name: float(found["quiet"][0]) * seen for name, seen in _known(judged).items()},
    )


def _known(judged: Sequence[Judged]) -> dict[str, bool]:
    """Whether any recording tells of a part."""
    return {name: any(one.evidence[name].known for one in judged) for name in PARTS}


def forecasts(fitted: Fit, judged: Sequence[Judged]) -> Floats:
    """(N,) the probability that each run is healthy."""
    return np.array([fitted.probability(one.evidence) for one in judged])


def folds(judged: Sequence[Judged]) -> Iterator[tuple[list[int], list[int]]]:
    """Runs to fit to and runs to judge; all runs of a recipe are on one side.

    Healthy recipes and faults go to the folds in turn, in the order of the hashes of their names.
    """
    place: dict[str, int] = {}
    for kind in (True, False):
        names = {one.run.recipe for one in judged if one.healthy is kind} - set(place)
        ordered = sorted(names, key=lambda name: sha256(name.encode()).hexdigest())
        place.update({name: at % FOLDS for at, name in enumerate(ordered)})
    for fold in range(FOLDS):
        held = [n for n, one in enumerate(judged) if place[one.run.recipe] == fold]
        if held:
            yield [n for n in range(len(judged)) if n not in set(held)], held


def cross_validated(judged: Sequence[Judged]) -> Floats:
    """(N,) forecasts for each run by constants that were fitted without any run of its recipe."""
    told = np.full(len(judged), np.nan)
    for kept, held in folds(judged):
        found = fit([judged[n] for n in kept], "")
        told[held] = forecasts(found, [judged[n] for n in held])
    return told
