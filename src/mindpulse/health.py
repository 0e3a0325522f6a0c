"""The health of a run as a number from 0 to 100, with its parts. Not calibrated yet.

Each part begins at 100 and loses points for the gravest alert of each of its rules: all of them
while the alert is firing at the end of the run, a share once it was resolved. The loss also loses
points when it has not fallen, or ends far above a level that it had. A part without a signal is
unknown and left out of the mean; a run without any known part has no score. The whole is the
weighted mean of the known parts, but at most 25 points above the worst: a sound throughput does
not outweigh a NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from mindpulse.alerts import RESOLVED, AlertEvent
from mindpulse.alerts.journal import read_alerts
from mindpulse.alerts.judge import Judge
from mindpulse.errors import UsageError
from mindpulse.messages import text
from mindpulse.rules.rule import PARTS, SEVERITIES, Rule
from mindpulse.series import Rows, Series
from mindpulse.store.reader import Chunk
from mindpulse.store.run import Run

LOST = {"info": 2.0, "warning": 20.0, "error": 45.0, "critical": 90.0}
RESOLVED_SHARE = 0.4
STALE_LOSS = 25.0
LOST_GROUND = 0.25  # share of what the loss had fallen that it may rise again
ABOVE_WORST = 25.0
# A series with fewer rows does not make a part known, though an alert on it counts.
FEWEST_ROWS = 10
LOSS = "train_loss"
TREND_ROWS = 200_000  # as many rows of the loss tell its trend
WEIGHTS = {
    "attention": 0.15,
    "gradient": 0.2,
    "memory": 0.1,
    "hardware": 0.05,
    "loss": 0.25,
    "numerics": 0.25,
    "throughput": 0.1,
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why points were lost, or why a part is unknown: a text of the catalogue and its values."""

    key: str
    values: Mapping[str, str | int] = field(default_factory=dict)

    def text(self, lang: str = "en") -> str:
        """The sentence in a language."""
        return text(f"health.{self.key}", lang, **self.values)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the score.

    Attributes:
        score: 0 to 100, None if nothing is known.
        state: "ok", "unknown", or the gravest severity that was met.
        reasons: why points were lost, or why it is unknown.
        concern: what no rule says: how the loss went over the whole run; None where it went well.
    """

    score: float | None
    state: str
    reasons: tuple[Reason, ...] = ()
    concern: Reason | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a run.

    Attributes:
        score: 0 to 100, None if no part is known.
        parts: by name, see `rules.rule.PARTS`.
        calibrated: whether the score is a measured probability; it is not yet.
        unknown: sentences on what could not be judged.
    """

    score: float | None
    parts: dict[str, Part]
    calibrated: bool = False
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """The rules replayed over a whole run; the dear part of a score and of a report.

    Attributes:
        events: what a watcher with these rules would have said, by attempt and step.
        unknown: why a rule could not be judged, by its name.
        known_parts: parts of the score that at least one judged rule speaks about.
    """

    events: tuple[AlertEvent, ...]
    unknown: dict[str, str]
    known_parts: frozenset[str]


def replay(run: Run, rules: Sequence[Rule]) -> list[AlertEvent]:
    """What a watcher with these rules would have said over the whole run, by attempt and step."""
    return list(judge_run(run, rules).events)


def score(run: Run, rules: Sequence[Rule]) -> Health:
    """The health of a run: the rules replayed over it, with the alerts that a watcher wrote."""
    return score_of(run, judge_run(run, rules))


def score_of(run: Run, judged: Judgement) -> Health:
    """The same where the run was judged already."""
    told = {(event.id, event.state): event for event in read_alerts(run.path)}
    told.update({(event.id, event.state): event for event in judged.events})
    parts = {name: _part(name, told.values(), name in judged.known_parts) for name in PARTS}
    parts["loss"] = _with_trend(parts["loss"], _loss(run))
    lines = tuple(f"{name}: {reason}" for name, reason in sorted(judged.unknown.items()))
    return Health(_whole(parts), parts, unknown=lines)


def judge_run(run: Run, rules: Sequence[Rule]) -> Judgement:
    """Replays the rules over all that was recorded, every step in order."""
    judge = Judge(rules)
    tags = sorted({tag for rule in rules for tag in rule.needs} & set(run.specs()))
    events: list[AlertEvent] = []
    rows = dict.fromkeys(tags, 0)
    for attempt in run.attempts:
        chunks = [c for rank in run.ranks for c in _chunks(run, tags, rank, attempt)]
        events += judge.feed(chunks)
        for chunk in chunks:
            rows[chunk.spec.tag] = max(rows[chunk.spec.tag], len(chunk.rows))
    events += judge.finish()
    unknown = {**_too_few(rules, rows), **judge.unknown()}
    known = frozenset(rule.part for rule in rules if rule.name not in unknown)
    return Judgement(tuple(events), unknown, known)


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


def _part(name: str, events: Iterable[AlertEvent], known: bool) -> Part:
    latest: dict[tuple[str, str], AlertEvent] = {}
    for event in events:
        if event.part == name and latest.get((event.rule, event.id), event).state != RESOLVED:
            latest[event.rule, event.id] = event
    lost: dict[str, float] = {}
    for event in latest.values():
        lost[event.rule] = max(_loses(event), lost.get(event.rule, 0.0))
    if not latest:
        return Part(100.0, "ok") if known else Part(None, "unknown", (Reason("no_signal"),))
    severities = [event.severity for event in latest.values()]
    return Part(
        max(0.0, 100.0 - sum(lost.values())),
        max(severities, key=SEVERITIES.index),
        tuple(_reason(event) for event in latest.values()),
    )


def _loses(event: AlertEvent) -> float:
    return LOST[event.severity] * (RESOLVED_SHARE if event.state == RESOLVED else 1.0)


def _reason(event: AlertEvent) -> Reason:
    values: dict[str, str | int] = {"rule": event.rule, "since": event.since_step}
    if event.state == RESOLVED:
        return Reason("alert_over", {**values, "step": event.step})
    return Reason("alert", values)


def _loss(run: Run) -> Rows | None:
    """The finite rows of the loss, of the first rank that has one: a pipeline's is not rank 0."""
    if LOSS not in run.specs():
        return None
    for rank in run.ranks:
        with suppress(UsageError):
            return thinned(run.blocks(LOSS, rank))
    return None


def thinned(pieces: Iterable[Series], most: int = TREND_ROWS) -> Rows:
    """The finite rows of a scalar series; every second, fourth, ... where there are too many.

    The medians of so many rows are those of all of them, and memory does not grow with the run.
    """
    kept = [Rows.empty(1)]
    seen, stride = 0, 1
    for piece in pieces:
        rows = Rows(piece.steps, piece.wall_times, piece.rows.values[:, :1])
        rows = rows[np.isfinite(rows.values[:, 0])]
        kept.append(rows[np.arange(-seen % stride, len(rows), stride)])
        seen += len(rows)
        while seen // stride > most:
            kept = [Rows.concat(kept)]
            kept = [kept[0][np.arange(0, len(kept[0]), 2)]]
            stride *= 2
    return Rows.concat(kept)


def _with_trend(part: Part, losses: Rows | None) -> Part:
    """The loss part, less where the whole run did not bring the loss down, or not for good."""
    if part.score is None or losses is None or not _tell_a_trend(losses):
        return part
    concern = _trend(losses)
    if concern is None:
        return part
    state = "warning" if part.state in ("ok", "info") else part.state
    reasons = (*part.reasons, concern)
    less = max(0.0, part.score - STALE_LOSS)
    return replace(part, score=less, state=state, reasons=reasons, concern=concern)


def _tell_a_trend(losses: Rows) -> bool:
    """Enough rows; fewer do where each stands for many steps, as other tools log means of them."""
    if len(losses) < 10:
        return False
    return len(losses) >= 50 or int(losses.steps[-1] - losses.steps[0]) >= 1000


def _trend(losses: Rows) -> Reason | None:
    """What is wrong with the whole curve: medians of its tenths against that of the last fifth."""
    tenth = len(losses) // 10
    values = losses.values[:, 0]
    levels = np.median(values[: 10 * tenth].reshape(10, tenth), axis=1)
    last = values[-2 * tenth :]
    begin, end, best = float(levels[0]), float(np.median(last)), float(levels.min())
    if end >= begin - 0.01 * abs(begin):
        return Reason("loss_not_fallen", {"begin": f"{begin:.4g}", "end": f"{end:.4g}"})
    noise = float(np.median(np.abs(last - end)))
    if end - best > max(LOST_GROUND * (begin - best), 3 * noise):
        middle = int(losses.steps[int(levels.argmin()) * tenth + tenth // 2])
        values_told: dict[str, str | int] = {"best": f"{best:.4g}", "step": middle}
        return Reason("loss_lost_ground", {**values_told, "end": f"{end:.4g}"})
    return None


def _whole(parts: dict[str, Part]) -> float | None:
    known = {name: part.score for name, part in parts.items() if part.score is not None}
    if not known:
        return None
    weight = sum(WEIGHTS[name] for name in known)
    mean = sum(WEIGHTS[name] * value for name, value in known.items()) / weight
    return round(min(mean, min(known.values()) + ABOVE_WORST), 1)
