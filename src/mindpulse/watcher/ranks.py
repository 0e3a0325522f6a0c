"""Ranks compared with each other: replicas that are out of step, ranks that keep others waiting.

`ranks-out-of-step`: the norms of weights, gradients and moments of data-parallel replicas are equal
by nature, and so are learning rate and loss scale. Shards of one model have other columns, or
differ from the beginning: only ranks that were in step can fall out of it. `straggler`: the step
time of a rank is a third above the median of the ranks for long (a relative score below 0.75, as
NVIDIA's resiliency extension has it). Judged by rows alone, so a replay says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from mindpulse.alerts.life import FIRING, RESOLVED, AlertEvent
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.reader import Chunk
from mindpulse.watcher.portions import portions

OUT_OF_STEP, STRAGGLER = "ranks-out-of-step", "straggler"
STEP_TIME = "step_time_s"
EQUAL = (
    "weight_norm", "grad_norm", "grad_norm_param", "adam_m_norm", "adam_v_norm",
    "learning_rate", "loss_scale",
)  # fmt: skip
COMPARED = frozenset({*EQUAL, STEP_TIME})
# Norms are recorded as float32; the order in which a device sums may change the last digits.
TOLERANCE = 1e-4
SLOWER = 1 / 0.75
SLOW_ROWS = 20
# Rows that a rank has to be in step first; that it has to be out, or slow; in again; and of good
# rows that make it forget bad ones: an all-reduce that fails now and then is out at single rows.
PATIENCE = {OUT_OF_STEP: (20, 3, 20, 50), STRAGGLER: (0, 50, 20, 1)}
SEVERITY = {OUT_OF_STEP: "error", STRAGGLER: "warning"}
# Steps for which the rows of other ranks are waited for.
MOST_PENDING = 1024

Flags = NDArray[np.bool_]


@dataclass(slots=True)
class _Rank:
    """One rank in one comparison.

    Attributes:
        good, bad: rows that were so: good ones without a break, bad ones since the last long one.
        known: it was good for long enough to be judged.
        since: the step at which the bad rows begin.
    """

    rows: Rows
    good: int = 0
    bad: int = 0
    known: bool = False
    since: int = -1
    event: AlertEvent | None = None


@dataclass(slots=True)
class _Comparison:
    """One series of ranks that have the same columns.

    Attributes:
        begun: a rank came for the second time, so all that there are have come once.
    """

    spec: SeriesSpec
    attempt: int
    begun: bool = False
    ranks: dict[int, _Rank] = field(default_factory=dict)
    # The newest rows that were compared, for windows that look back.
    past: NDArray[np.float64] | None = None


class Ranks:
    """Compares the ranks of a run as their rows come.

    Example:
        >>> from mindpulse.testing import chunk
        >>> times = {0: 1.0, 1: 1.0, 2: 1.5}
        >>> ranks = Ranks()
        >>> ranks.feed(chunk("step_time_s", [t] * 100, rank=r) for r, t in times.items())
        []
        >>> [(event.rule, event.rank, event.step) for event in ranks.finish()]
        [('straggler', 2, 69)]
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, tuple[tuple[str, ...], ...]], _Comparison] = {}

    def feed(self, chunks: Iterable[Chunk]) -> list[AlertEvent]:
        """Takes in rows and returns what became of the alerts, by step."""
        events: list[AlertEvent] = []
        touched: dict[int, _Comparison] = {}
        for chunk in chunks:
            if chunk.spec.tag not in COMPARED or not len(chunk.rows):
                continue
            key = (chunk.spec.tag, chunk.spec.columns)
            of = self._found.get(key)
            if of is None or chunk.attempt > of.attempt:
                events += _ended(of, chunk) if of else []
                of = self._found[key] = _Comparison(chunk.spec, chunk.attempt)
            if chunk.attempt == of.attempt:
                _take(of, chunk)
                touched[id(of)] = of
        for of in touched.values():
            if of.begun:
                events += _compare(of)
        return sorted(events, key=lambda event: (event.step, event.rank))

    def finish(self) -> list[AlertEvent]:
        """Compares what there is: no rank will come any more."""
        events = [event for of in self._found.values() for event in _compare(of)]
        return sorted(events, key=lambda event: (event.step, event.rank))


def compared(chunks: Sequence[Chunk]) -> list[AlertEvent]:
    """All that is to be said about the ranks of a recorded run, attempt by attempt."""
    ranks, told = Ranks(), list[AlertEvent]()
    for attempt in dict.fromkeys(chunk.attempt for chunk in chunks):
        for portion in portions([chunk for chunk in chunks if chunk.attempt == attempt]):
            told += ranks.feed(portion)
        told += ranks.finish()
    return first_of_rank(told, ())


def _ended(of: _Comparison, chunk: Chunk) -> list[AlertEvent]:
    """A new attempt begins: what was firing is over."""
    step, now = int(chunk.rows.steps[0]), float(chunk.rows.wall_times[0])
    return [_over(rank.event, step, now) for rank in of.ranks.values() if rank.event]


def _take(of: _Comparison, chunk: Chunk) -> None:
    rank = of.ranks.get(chunk.rank)
    of.begun = of.begun or rank is not None
    if rank is None:
        rank = of.ranks[chunk.rank] = _Rank(Rows.empty(chunk.spec.width, chunk.spec.dtype))
    last = rank.rows.steps[-1] if len(rank.rows) else np.iinfo(np.int64).min
    new = chunk.rows[chunk.rows.steps > last]
    rank.rows = Rows.concat([rank.rows, new])[-MOST_PENDING:] if len(new) else rank.rows


def _compare(of: _Comparison) -> list[AlertEvent]:
    """Judges the steps that all ranks have reached, and forgets them."""
    if len(of.ranks) < 2 or not all(len(rank.rows) for rank in of.ranks.values()):
        return []
    numbers = sorted(of.ranks)
    held = [of.ranks[number].rows for number in numbers]
    steps = reduce(np.intersect1d, [rows.steps for rows in held])
    if not len(steps):
        return []
    picked = [rows[np.isin(rows.steps, steps)] for rows in held]
    values = np.stack([rows.values for rows in picked], axis=1).astype(np.float64)
    for number in numbers:
        rank = of.ranks[number]
        rank.rows = rank.rows[int(rank.rows.steps.searchsorted(steps[-1], "right")) :]
    rule = STRAGGLER if of.spec.tag == STEP_TIME else OUT_OF_STEP
    bad, usual = _slow(of, values) if rule == STRAGGLER else _apart(values)
    events: list[AlertEvent] = []
    for place, number in enumerate(numbers):
        look = _Look(of, rule, number, steps, picked[place], usual)
        events += _follow(of.ranks[number], bad[:, place], look)
    return events


def _apart(values: NDArray[np.float64]) -> tuple[Flags, NDArray[np.float64]]:
    """(S, R) which ranks differ from the others, and (S, W) what the others have.

    Of two ranks nobody can tell which is wrong: the second is named.
    """
    values = np.where(np.isnan(values), np.inf, values)  # what no number is equals its like
    with np.errstate(all="ignore"):
        usual = np.median(values, axis=1) if values.shape[1] > 2 else values[:, 0]
        distance = np.abs(values - usual[:, None])
        near = (values == usual[:, None]) | (distance < TOLERANCE * np.abs(usual)[:, None])
    return ~near.all(axis=2), usual


def _slow(of: _Comparison, values: NDArray[np.float64]) -> tuple[Flags, NDArray[np.float64]]:
    """The same for step times, by medians over the last rows; (S, 1) the median of the ranks."""
    times = values[:, :, 0]
    past = of.past if of.past is not None and of.past.shape[1] == times.shape[1] else times[:0]
    whole = np.concatenate([past, times])
    of.past = whole[-(SLOW_ROWS - 1) :]
    own = np.full(times.shape, np.nan)
    if len(whole) >= SLOW_ROWS:
        windows = sliding_window_view(whole, SLOW_ROWS, axis=0)
        known = np.median(windows, axis=2)[-len(times) :]
        own[len(own) - len(known) :] = known
    usual = np.median(own, axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        return own >= SLOWER * usual, usual


@dataclass(frozen=True, slots=True)
class _Look:
    """What was compared of one rank."""

    of: _Comparison
    rule: str
    number: int
    steps: NDArray[np.int64]
    rows: Rows
    usual: NDArray[np.float64]


def _follow(rank: _Rank, bad: Flags, look: _Look) -> list[AlertEvent]:
    """The life of the alert of one rank over the steps that were compared."""
    first, out, back, forget = PATIENCE[look.rule]
    if not bad.any() and rank.event is None:
        rank.good += len(bad)
        rank.bad = 0 if rank.good >= forget else rank.bad
        rank.known = rank.known or rank.good >= first
        return []
    events: list[AlertEvent] = []
    for at, is_bad in enumerate(bad.tolist()):
        if not is_bad:
            rank.good += 1
            rank.bad = 0 if rank.good >= forget else rank.bad
            rank.known = rank.known or rank.good >= first
            if rank.event and rank.good >= back:
                now = float(look.rows.wall_times[at])
                events.append(_over(rank.event, int(look.steps[at]), now))
                rank.event = None
            continue
        rank.since = rank.since if rank.bad else int(look.steps[at])
        rank.good, rank.bad = 0, rank.bad + 1
        if rank.bad >= out and rank.event is None and (rank.known or first == 0):
            rank.event = _begun(rank, look, at)
            events.append(rank.event)
    return events


def _begun(rank: _Rank, look: _Look, at: int) -> AlertEvent:
    spec, own = look.of.spec, look.rows.values[at].astype(np.float64)
    others = look.usual[at]
    column = 0
    if look.rule == OUT_OF_STEP:
        with np.errstate(all="ignore"):
            apart = np.abs(own - others) / np.abs(others)
        column = int(np.argmax(np.nan_to_num(apart, nan=np.inf, posinf=np.inf)))
    name = spec.column_name(column)
    evidence: Mapping[str, float] = {
        spec.tag: float(own[column]),
        f"{spec.tag} of the others": float(others[column]),
    }
    return AlertEvent(
        id=f"{look.rule}/{spec.tag}/a{look.of.attempt}/r{look.number}/s{int(look.steps[at])}",
        rule=look.rule,
        state=FIRING,
        severity=SEVERITY[look.rule],
        part="hardware",
        step=int(look.steps[at]),
        since_step=rank.since,
        wall_time=float(look.rows.wall_times[at]),
        rank=look.number,
        attempt=look.of.attempt,
        columns=(name,) if name else (),
        evidence=evidence,
        origin=name,
    )


def _over(event: AlertEvent, step: int, now: float) -> AlertEvent:
    return replace(event, state=RESOLVED, step=step, wall_time=now)


def first_of_rank(events: Sequence[AlertEvent], firing: Iterable[AlertEvent]) -> list[AlertEvent]:
    """One rank out of step shows in many series: the first is told, the others kept under it.

    Args:
        events: in the order in which they happened.
        firing: alerts that began before, with their marks.
    """
    under = {event.id: event.grouped_under for event in firing}
    heads = {(e.rule, e.rank): e.id for e in firing if not e.grouped_under}
    marked: list[AlertEvent] = []
    for event in events:
        key = (event.rule, event.rank)
        if event.state == FIRING:
            head = heads.setdefault(key, event.id)
            under[event.id] = head if head != event.id else ""
        elif heads.get(key) == event.id:
            del heads[key]
        marked.append(replace(event, grouped_under=under.get(event.id, "")))
    return marked
