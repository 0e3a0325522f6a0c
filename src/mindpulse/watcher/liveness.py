"""Does a run still write? Judged by the clock of the watcher, not by an expression over rows.

`stalled-run`: no rank writes, and none has said that it came to an end. `rank-stopped`: one rank
does not write while others go on, or its process is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from mindpulse.alerts.life import FIRING, RESOLVED, AlertEvent
from mindpulse.store.folder import attempt_name, rank_name
from mindpulse.store.holding import held_elsewhere
from mindpulse.store.notes import END_NOTE
from mindpulse.store.reader import Chunk, Note
from mindpulse.watcher.beside import BESIDE
from mindpulse.watcher.rhythm import Rhythm

STALLED, STOPPED = "stalled-run", "rank-stopped"
# (severity, part) of each
KINDS = {STALLED: ("error", "throughput"), STOPPED: ("error", "hardware")}
# A run that was silent for so long when the watcher came has been given up by its owner.
GIVEN_UP_S = 3600.0
# What ended, or has been silent for so long, is looked at only when it writes again.
ASLEEP_S = 60.0
ASKED_EVERY_S = 5.0

Held = Callable[[int, int], bool | None]
"""Whether a process holds the folder of (rank, attempt); None if nobody can tell."""


@dataclass(slots=True)
class _Rank:
    """What is known of one rank.

    Attributes:
        heard: when it wrote last, by the clock of the watcher.
        owned: a process was seen that holds its folder.
        ended: it said that it came to an end.
        asked, gone: when the folder was asked for last, and what came of it.
    """

    attempt: int = 0
    last_step: int = -1
    heard: float = 0.0
    owned: bool = False
    ended: bool = False
    asked: float = 0.0
    gone: bool = False
    rhythm: Rhythm = field(default_factory=Rhythm)


class Liveness:
    """The ranks of one run, and the alerts about their silence.

    Args:
        firing: alerts that an earlier watcher left open.
        held: see `Held`.
        now: when the watch begins, in seconds since the epoch.
    """

    def __init__(self, firing: Iterable[AlertEvent], held: Held, now: float) -> None:
        self._held = held
        self._began = now
        self._ranks: dict[int, _Rank] = {}
        self._open = {(e.rule, e.rank): e for e in firing if e.rule in KINDS}
        self._caught_up = False
        self._given_up = False

    def saw(self, found: Iterable[Chunk | Note], now: float) -> None:
        """Takes in rows and notes as they are read."""
        times: dict[int, list[Chunk]] = {}
        for each in found:
            if isinstance(each, Chunk) and each.spec.tag in BESIDE:
                continue
            rank = self._rank(each.rank, each.attempt)
            if rank is None:
                continue
            if isinstance(each, Note):
                rank.ended = rank.ended or each.kind == END_NOTE
            else:
                times.setdefault(each.rank, []).append(each)
        for number, chunks in times.items():
            self._saw_rows(self._ranks[number], chunks, now)

    def look(self, now: float) -> list[AlertEvent]:
        """What became of the alerts, after all that is there was seen."""
        if not self._ranks:
            return []
        if not self._caught_up:
            self._caught_up = True
            self._given_up = self.silent_s(now) > GIVEN_UP_S and not self._open
        silent = {} if self._given_up else self._silent(now)
        events = [*self._stopped(silent, now), *self._stalled(silent, now)]
        for event in events:
            if event.state == FIRING:
                self._open[event.rule, event.rank] = event
            else:
                self._open.pop((event.rule, event.rank), None)
        return events

    def silent_s(self, now: float) -> float:
        """For how long no rank has written, 0.0 before the first row."""
        heard = [rank.heard for rank in self._ranks.values() if rank.heard]
        return now - max(heard) if heard else 0.0

    def asleep(self, now: float, at_once: bool = False) -> bool:
        """All ranks came to an end, or nobody expects anything any more.

        Args:
            at_once: also of a run that was looked at only now.
        """
        newest, looked_s = self._newest(), np.inf if at_once else now - self._began
        if not newest or min(self.silent_s(now), looked_s) < ASLEEP_S:
            return False
        ended = all(rank.ended for rank in newest.values())
        return ended or self._given_up or self.silent_s(now) > GIVEN_UP_S

    @property
    def ended(self) -> bool:
        """All ranks of the newest attempt have said that they came to an end."""
        newest = self._newest()
        return bool(newest) and all(rank.ended for rank in newest.values())

    # What is seen.

    def _rank(self, number: int, attempt: int) -> _Rank | None:
        rank = self._ranks.setdefault(number, _Rank())
        if attempt < rank.attempt:
            return None
        if attempt > rank.attempt:
            rank.attempt, rank.last_step = attempt, -1
            rank.ended = rank.owned = rank.gone = False
            rank.rhythm.begin()
        return rank

    def _saw_rows(self, rank: _Rank, chunks: list[Chunk], now: float) -> None:
        densest = max(chunks, key=lambda chunk: len(chunk.rows))
        rank.rhythm.add(densest.rows.wall_times)
        rank.last_step = max(rank.last_step, *(int(c.rows.steps.max()) for c in chunks))
        newest = max(float(chunk.rows.wall_times[-1]) for chunk in chunks)
        # Before all was read, rows may be old; afterwards the clock of the other machine may
        # differ from ours.
        heard = now if self._caught_up or not np.isfinite(newest) else min(now, newest)
        rank.heard = max(rank.heard, heard)
        self._given_up = False
        rank.gone, rank.asked = False, now
        if not rank.owned:
            rank.owned = self._held(chunks[0].rank, rank.attempt) is True

    def _newest(self) -> dict[int, _Rank]:
        """The ranks of the newest attempt."""
        attempt = max((rank.attempt for rank in self._ranks.values()), default=0)
        return {n: rank for n, rank in self._ranks.items() if rank.attempt == attempt}

    # What follows.

    def _silent(self, now: float) -> dict[int, float]:
        """For each rank that says nothing for too long: how long it might have."""
        found: dict[int, float] = {}
        for number, rank in self._newest().items():
            if rank.ended or not rank.heard:
                continue
            limit = rank.rhythm.limit_s(self._is_gone(number, rank, now))
            if now - rank.heard > limit:
                found[number] = limit
        return found

    def _is_gone(self, number: int, rank: _Rank, now: float) -> bool:
        if rank.owned and now - rank.asked >= ASKED_EVERY_S:
            rank.asked = now
            rank.gone = self._held(number, rank.attempt) is False
        return rank.gone

    def _stopped(self, silent: Mapping[int, float], now: float) -> list[AlertEvent]:
        newest = self._newest()
        going = [r for n, r in newest.items() if n not in silent and not r.ended]
        furthest = max((rank.last_step for rank in going), default=-1)
        events = self._over(STOPPED, lambda event: event.rank in silent, now)
        for number, limit in silent.items():
            rank = newest[number]
            left_behind = bool(going) and (rank.gone or furthest > rank.last_step)
            if left_behind and (STOPPED, number) not in self._open:
                events.append(self._event(STOPPED, number, limit, now))
        return events

    def _stalled(self, silent: Mapping[int, float], now: float) -> list[AlertEvent]:
        expected = [number for number, rank in self._newest().items() if not rank.ended]
        stalled = bool(silent) and all(number in silent for number in expected)
        if not stalled:
            return self._over(STALLED, lambda event: False, now)
        if any(rule == STALLED for rule, _ in self._open):
            return []
        behind = min(silent, key=lambda number: (self._ranks[number].last_step, number))
        event = self._event(STALLED, behind, silent[behind], now)
        causes = [other.id for (rule, _), other in self._open.items() if rule == STOPPED]
        return [replace(event, inhibited_by=causes[0]) if causes else event]

    def _over(self, rule: str, lasts: Callable[[AlertEvent], bool], now: float) -> list[AlertEvent]:
        return [
            replace(event, state=RESOLVED, step=max(event.step, self._step(event)), wall_time=now)
            for (name, _), event in self._open.items()
            if name == rule and not lasts(event)
        ]

    def _step(self, event: AlertEvent) -> int:
        rank = self._ranks.get(event.rank)
        return rank.last_step if rank else event.step

    def _event(self, rule: str, number: int, limit: float, now: float) -> AlertEvent:
        rank, (severity, part) = self._ranks[number], KINDS[rule]
        evidence = {
            "silent_s": round(now - rank.heard, 1),
            "limit_s": round(limit, 1),
            "usual_pause_s": round(rank.rhythm.typical_s(), 3),
            "process_gone": float(rank.gone),
        }
        return AlertEvent(
            id=f"{rule}/a{rank.attempt}/r{number}/s{rank.last_step}",
            rule=rule,
            state=FIRING,
            severity=severity,
            part=part,
            step=rank.last_step,
            since_step=rank.last_step,
            wall_time=now,
            rank=number,
            attempt=rank.attempt,
            evidence=evidence,
        )


def held_in(run_dir: Path) -> Held:
    """Asks the system who holds the folders of a run."""

    def held(rank: int, attempt: int) -> bool | None:
        return held_elsewhere(run_dir / attempt_name(attempt) / rank_name(rank))

    return held
