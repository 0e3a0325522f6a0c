"""The rules replayed over a whole run; the dear part of a score and of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from mindpulse.alerts import AlertEvent
from mindpulse.alerts.judge import Judge
from mindpulse.errors import UsageError
from mindpulse.health.fitted import fingerprint
from mindpulse.rules.rule import Rule
from mindpulse.store.reader import Chunk
from mindpulse.store.run import Run
from mindpulse.watcher.ranks import COMPARED, compared

# A series with fewer rows does not make a part known, though an alert on it counts.
FEWEST_ROWS = 10


@dataclass(frozen=True, slots=True)
class Judgement:
    """The rules replayed over a whole run; the dear part of a score and of a report.

    Attributes:
        events: what a watcher with these rules would have said, by attempt and step.
        unknown: why a rule could not be judged, by its name.
        known_parts: parts of the score that at least one judged rule speaks about.
        rules: names of all rules.
        fingerprint: of the rules, see `fitted.fingerprint`.
    """

    events: tuple[AlertEvent, ...]
    unknown: dict[str, str]
    known_parts: frozenset[str]
    rules: frozenset[str] = frozenset()
    fingerprint: str = ""


def replay(run: Run, rules: Sequence[Rule]) -> list[AlertEvent]:
    """What a watcher with these rules would have said over the whole run, by attempt and step."""
    events = judge_run(run, rules).events
    return sorted(events, key=lambda event: (event.attempt, event.step))


def judge_run(run: Run, rules: Sequence[Rule]) -> Judgement:
    """Replays the rules over all that was recorded, every step in order; compares the ranks."""
    judge = Judge(rules)
    tags = sorted({tag for rule in rules for tag in rule.needs} & set(run.specs()))
    events: list[AlertEvent] = []
    rows = dict.fromkeys(tags, 0)
    for attempt in run.attempts:
        chunks = [c for rank in run.ranks for c in _chunks(run, tags, rank, attempt)]
        events += judge.feed(chunks)
        for chunk in chunks:
            rows[chunk.spec.tag] = max(rows[chunk.spec.tag], len(chunk.rows))
    events += [*judge.finish(), *compared(_shared_chunks(run))]
    unknown = {**_too_few(rules, rows), **judge.unknown()}
    known = frozenset(rule.part for rule in rules if rule.name not in unknown)
    names = frozenset(rule.name for rule in rules)
    return Judgement(tuple(events), unknown, known, names, fingerprint(rules))


def _shared_chunks(run: Run) -> list[Chunk]:
    """What the ranks are compared by; nothing where there is only one."""
    if len(run.ranks) < 2:
        return []
    tags, places = sorted(COMPARED & set(run.specs())), product(run.attempts, run.ranks)
    return [chunk for attempt, rank in places for chunk in _chunks(run, tags, rank, attempt)]


def _too_few(rules: Sequence[Rule], rows: Mapping[str, int]) -> dict[str, str]:
    """The rules that have seen so little that their silence means nothing."""
    found: dict[str, str] = {}
    for rule in rules:
        most = max((rows.get(tag, 0) for tag in rule.needs), default=0)
        if most < FEWEST_ROWS:
            found[rule.name] = f"only {most} rows were recorded"
    return found


def _chunks(run: Run, tags: Sequence[str], rank: int, attempt: int) -> Iterable[Chunk]:
    for tag in tags:
        try:
            series = run.series(tag, rank=rank, attempt=attempt)
        except UsageError:
            continue  # this attempt or rank did not write that series
        if len(series):
            yield Chunk(rank, attempt, series.spec, series.rows)
