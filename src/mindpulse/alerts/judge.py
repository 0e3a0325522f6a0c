"""Rows in, alerts out: every rule looks at every step of every rank, in order.

A rule is judged at a step when all its series have reached it, so that the outcome does not depend
on how the rows were cut into chunks: a replay of a finished run tells what the watcher told live.
Where many steps are there at once they are swept first, and only those that matter are judged.
Alerts of one cause are told as one, see `grouping`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf

import numpy as np

from mindpulse.alerts.ahead import Ahead
from mindpulse.alerts.grouping import Grouping
from mindpulse.alerts.life import (
    FIRING,
    INACTIVE,
    AlertEvent,
    AlertState,
    Finding,
    advance,
    restart,
)
from mindpulse.rules.expression import FIRED, Verdict
from mindpulse.rules.functions import Steps
from mindpulse.rules.rule import Rule
from mindpulse.rules.sweep import Says, sweep
from mindpulse.window import ChunkLike, Track, View, Window, needs_of

STALLED_STEPS = 1000
FEWEST_SWEPT = 6  # steps
MOST_SWEPT = 1 << 18  # steps x columns


@dataclass(slots=True)
class _Seat:
    """One rule at one rank: how far it has judged, and how its alert stands."""

    rule: Rule
    rank: int
    judged: int = -1
    state: AlertState = field(default_factory=AlertState)
    known: set[str] = field(default_factory=set)


class Judge:
    """Judges rows as they come.

    Args:
        rules: what to judge by.
        every_step: judge each step alone, as a watcher does that is never behind. The outcome is
            the same, a long run takes minutes instead of seconds.

    Example:
        >>> from mindpulse.rules.load import load_rules
        >>> from mindpulse.testing import chunk
        >>> judge = Judge(load_rules())
        >>> [event.rule for event in judge.feed([chunk("grad_norm", [1.0, 80.0])])]
        ['gradient-explosion']
    """

    def __init__(self, rules: Sequence[Rule], *, every_step: bool = False) -> None:
        self.rules = tuple(rules)
        self._every_step = every_step
        self.window = Window(needs_of(rule.needs for rule in rules))
        self._seats: dict[int, list[_Seat]] = {}
        self._grouping = Grouping(self.rules)

    def feed(self, chunks: Iterable[ChunkLike]) -> list[AlertEvent]:
        """Takes in rows and returns what became of the alerts, by step.

        An alert of a group may be held until the other rules of the group have looked at its step.
        """
        told: list[AlertEvent] = []
        touched: set[int] = set()
        # The lowest step first: an attempt begins there, whichever series is read first.
        full = [chunk for chunk in chunks if len(chunk.rows)]
        for chunk in sorted(full, key=lambda each: (each.attempt, int(each.rows.steps[0]))):
            if self.window.begins_attempt(chunk):
                told += self._end_attempt(chunk)
            self.window.extend(chunk)
            touched.add(chunk.rank)
        events = [event for rank in sorted(touched) for event in self._judge(rank)]
        return told + self._grouping.add(events, self._settled)

    def finish(self) -> list[AlertEvent]:
        """Judges the steps that not all series of a rule have reached: nothing more will come."""
        events = [event for rank in self._seats for event in self._judge(rank, wait=False)]
        return self._grouping.add(events, lambda rule, rank: inf)

    @property
    def holding(self) -> bool:
        """Alerts wait for rows of other series."""
        return self._grouping.holding

    def release(self) -> list[AlertEvent]:
        """The alerts that wait for rows of other series, told as they are."""
        return self._grouping.release()

    def firing(self) -> list[tuple[Rule, AlertEvent]]:
        """The alerts that are firing and were told or kept, with their rules."""
        seats = [seat for seats in self._seats.values() for seat in seats if seat.state.event]
        told = [(s.rule, self._grouping.told(s.state.event)) for s in seats if s.state.event]
        return [(rule, event) for rule, event in told if event]

    def unknown(self) -> dict[str, str]:
        """Why a rule could not be judged lately, by the name of the rule."""
        reasons: dict[str, str] = {}
        for rule in self.rules:
            seats = [s for seats in self._seats.values() for s in seats if s.rule is rule]
            why = [reason for seat in seats if (reason := self._why_unknown(seat))]
            if why or not seats:
                reasons[rule.name] = why[0] if why else "nothing was recorded yet"
        return reasons

    def view(self, rank: int) -> View:
        """What a rule sees at the newest step of a rank."""
        return self.window.view(self.last_step(rank), rank)

    def last_step(self, rank: int | None = None) -> int:
        """The newest step of a rank, or of all; -1 if there is none."""
        ranks = self.window.ranks if rank is None else [rank]
        return max((self.window.last_step(number) for number in ranks), default=-1)

    # Judging one rank.

    def _judge(self, rank: int, wait: bool = True) -> list[AlertEvent]:
        seats = self._seats.setdefault(rank, [_Seat(rule, rank) for rule in self.rules])
        events = [event for seat in seats for event in self._judge_seat(seat, wait)]
        self.window.forget(rank, self._done(seats))
        return sorted(events, key=lambda event: event.step)

    def _judge_seat(self, seat: _Seat, wait: bool) -> list[AlertEvent]:
        tracks = self._current_tracks(seat)
        if not tracks:
            return []
        steps = self._steps(seat, tracks, wait)
        size = max(1, MOST_SWEPT // max(track.spec.width for track in tracks))
        events: list[AlertEvent] = []
        for begin in range(0, len(steps), size):
            for step in self._that_matter(seat, steps[begin : begin + size]):
                events += self._judge_step(seat, tracks, step)
        return events

    def _that_matter(self, seat: _Seat, steps: Steps) -> Iterator[int]:
        """The steps at which the alert may change, as it stands after the one told before."""
        if self._every_step or len(steps) < FEWEST_SWEPT:
            yield from steps.tolist()
            return
        read = partial(self.window.kept, rank=seat.rank)
        spec = partial(self.window.spec, rank=seat.rank)
        said = sweep(seat.rule.expression, read, steps, spec)
        if seat.state.phase == INACTIVE and not seat.state.reason and (said == Says.QUIET).all():
            seat.judged = int(steps[-1])  # nothing changes, as mostly
            return
        ahead, at = Ahead.of(seat.rule, steps, said), 0
        while at < len(steps):
            at = ahead.next_to_judge(at, seat.state)
            yield int(steps[at])
            at += 1

    def _judge_step(self, seat: _Seat, tracks: list[Track], step: int) -> list[AlertEvent]:
        view = self.window.view(step, seat.rank)
        verdict = seat.rule.expression.evaluate(view)
        rings = verdict.state == FIRED and seat.state.phase != FIRING
        finding = Finding(
            seat.rule,
            seat.rank,
            self.window.attempt(seat.rank),
            verdict,
            _column_names(verdict, tracks),
            seat.rule.severity_at(view) if rings and seat.rule.worse else "",
        )
        seat.state, told = advance(seat.state, finding, step, _wall_time(tracks, step))
        seat.judged = step
        return told

    def _current_tracks(self, seat: _Seat) -> list[Track]:
        """The series of the rule that the newest attempt writes; a late one rewinds the seat."""
        attempt = self.window.attempt(seat.rank)
        found = self.window.tracks(seat.rank)
        tracks = [found[t] for t in seat.rule.expression.series if t in found]
        tracks = [track for track in tracks if track.attempt == attempt and len(track.rows)]
        for track in tracks:
            tag = track.spec.tag
            if tag not in seat.known:
                seat.known.add(tag)
                if seat.state.phase != FIRING and track.first_step <= seat.judged:
                    seat.judged = track.first_step - 1
                    seat.state = AlertState(silent_until=seat.state.silent_until)
        return tracks

    def _steps(self, seat: _Seat, tracks: list[Track], wait: bool) -> Steps:
        newest = max(track.last_step for track in tracks)
        alive = [t.last_step for t in tracks if t.last_step >= newest - STALLED_STEPS]
        end = min(alive) if wait else newest
        parts = [track.steps_between(seat.judged, end) for track in tracks]
        return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))

    def _done(self, seats: list[_Seat]) -> dict[str, int]:
        done: dict[str, int] = {}
        for seat in seats:
            # What its action reads besides is read at the newest step: nothing waits for that.
            for tag in seat.rule.expression.series:
                done[tag] = min(seat.judged, done.get(tag, seat.judged))
        return done

    def _end_attempt(self, chunk: ChunkLike) -> list[AlertEvent]:
        """What the attempt before the one of this chunk still had to say."""

        def settled(rule: str, rank: int) -> float:
            return inf if rank == chunk.rank else self._settled(rule, rank)

        told = self._grouping.add(self._judge(chunk.rank), settled)
        return told + self._grouping.add(self._restart(chunk), settled)

    def _settled(self, rule: str, rank: int) -> float:
        """Up to which step a rule has seen all that will come."""
        attempt, newest = self.window.attempt(rank), self.last_step(rank)
        found = self.window.tracks(rank)
        seat = next(seat for seat in self._seats[rank] if seat.rule.name == rule)
        tracks = [found[tag] for tag in seat.rule.expression.series if tag in found]
        alive = [
            track.settled_step
            for track in tracks
            if track.attempt == attempt and track.last_step >= newest - STALLED_STEPS
        ]
        return min(alive, default=inf)

    def _restart(self, chunk: ChunkLike) -> list[AlertEvent]:
        step, now = int(chunk.rows.steps[0]), float(chunk.rows.wall_times[0])
        events: list[AlertEvent] = []
        for seat in self._seats.get(chunk.rank, []):
            seat.state, told = restart(seat.state, step, now)
            seat.judged = min(seat.judged, step - 1)
            seat.known.clear()
            events += told
        return events

    def _why_unknown(self, seat: _Seat) -> str:
        tracks = self.window.tracks(seat.rank)
        missing = [t for t in seat.rule.expression.series if t not in tracks]
        if missing and (seat.state.reason or seat.judged < 0):
            return f"nobody writes {', '.join(missing)}"
        behind = self.last_step(seat.rank) - seat.judged
        if behind > STALLED_STEPS:
            return f"no rows for the last {behind} steps"
        return seat.state.reason


def _column_names(verdict: Verdict, tracks: Sequence[Track]) -> tuple[str, ...]:
    """Names of the verdict's columns in the first series that has as many."""
    if not verdict.columns:
        return ()
    for track in tracks:
        if track.spec.columns and track.spec.width > verdict.columns[-1]:
            return tuple(track.spec.column_name(column) for column in verdict.columns)
    return ()


def _wall_time(tracks: Sequence[Track], step: int) -> float:
    return max(track.wall_time(step) for track in tracks)
