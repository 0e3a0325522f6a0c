"""The watcher: rows -> judge -> alerts -> requests, as a generator that its caller drives.

    for event in watch("summary", load_rules()):
        print(event)

It shares nothing with the training but the run folder. It may be killed and started again at any
time: it judges the run anew from its first row, and says and asks only what was not yet said.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindpulse.alerts import AlertEvent
from mindpulse.alerts.journal import Journal
from mindpulse.alerts.judge import Judge
from mindpulse.control import Answer, ControlLog, Rejected
from mindpulse.errors import UsageError
from mindpulse.rules.expression import FIRED
from mindpulse.rules.rule import Action, Rule
from mindpulse.store.reader import Chunk, RunTail
from mindpulse.watcher.aftercare import Aftercare, ranks_together
from mindpulse.watcher.events import ActionEvent, Event
from mindpulse.watcher.ledger import Ledger
from mindpulse.watcher.policy import Held, Limits, may_ask
from mindpulse.watcher.presence import BEAT_S, Presence
from mindpulse.watcher.waiting import Polling, Waiter, waiter_for

APPEAR_S = 0.2
STEP_TIME_ROWS = 20
PORTION_STEPS = 1000
PASSING = ("held.outstanding", "held.settling")  # reasons that go by themselves: not worth a word


def watch(
    run_dir: Path | str,
    rules: Sequence[Rule],
    *,
    act: frozenset[str] | None = None,
    stop: threading.Event | None = None,
    clock: Callable[[], float] = time.time,
    waiter: Callable[[Path, threading.Event], Waiter] = waiter_for,
    once: bool = False,
    limits: Limits | None = None,
) -> Iterator[Event]:
    """Watches a run until `stop` is set, and yields what happens.

    Args:
        run_dir: the run folder; it may appear later.
        rules: what to judge by.
        act: verbs that may be asked for; None only gives advice, none at all not even that.
        stop: ends the watch, after one last look at what is there.
        waiter: makes what waits for new rows.
        once: judge what is there and end.
        limits: bounds on requests.

    Raises:
        UsageError: with `once`, there is no such folder; or another watcher is at work.
        StoreError: the run folder cannot be written.
    """
    folder, stop = Path(run_dir), stop or threading.Event()
    if not _appears(folder, stop, once):
        return
    with Presence(folder, clock()) as presence:
        waiting = waiter(folder, stop)
        try:
            session = _Session(folder, rules, act, clock, limits or Limits())
            while True:
                last = once or stop.is_set()
                for events in session.turn(final=last):
                    presence.beat(clock())
                    yield from events
                if last:
                    return
                waiting.wait(BEAT_S / 2)
        finally:
            waiting.close()


def _appears(folder: Path, stop: threading.Event, once: bool) -> bool:
    if once and not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; give the summary_dir of a training")
    waiting = Polling(stop, APPEAR_S)
    while not folder.is_dir():
        if stop.is_set():
            return False
        waiting.wait(APPEAR_S)
    return True


class _Session:
    """What the watcher knows between two looks at the folder."""

    def __init__(
        self,
        folder: Path,
        rules: Sequence[Rule],
        act: frozenset[str] | None,
        clock: Callable[[], float],
        limits: Limits,
    ) -> None:
        self._tail = RunTail(folder)
        self._judge = Judge(rules)
        self._journal = Journal(folder, rules)
        self._control = ControlLog(folder, clock=clock)
        self._ledger = Ledger()
        self._act = act
        self._limits = limits
        self._clock = clock
        self._aftercare = Aftercare(self._control, self._ledger, self._judge, act, limits, clock)
        self._first = True
        self._told: dict[str, str] = {}

    def turn(self, final: bool) -> Iterator[Iterable[Event]]:
        """One look: control log, rows, alerts, requests; in portions, so that a long run to catch
        up with does not keep the sign of our presence from being renewed."""
        yield self._read_control()
        for chunks in portions([c for c in self._tail.poll() if isinstance(c, Chunk)]):
            yield self._journal.add(self._judge.feed(chunks))
        if final:
            yield self._journal.add(self._judge.finish())
        for rule, event in self._judge.firing():
            yield self._consider(rule, event)
        yield self._aftercare.attend(self._slowest_step_time())

    def _read_control(self) -> Iterator[Event]:
        found = self._control.poll()
        self._ledger.add(found)
        history, self._first = self._first, False
        if not history:
            yield from (
                self._heard(m)
                for m in found
                if isinstance(m, Rejected) or (isinstance(m, Answer) and m.status != "ready")
            )

    def _heard(self, message: Answer | Rejected) -> ActionEvent:
        if isinstance(message, Rejected):
            return ActionEvent("rejected", detail=message.why)
        asked = self._ledger.requests.get(message.seq)
        return ActionEvent(
            "answer",
            rule=asked.rule if asked else "",
            alert=asked.alert if asked else "",
            verb=asked.verb if asked else "",
            args=dict(asked.args) if asked else {},
            seq=message.seq,
            step=message.step,
            answer=message,
            detail=message.detail,
        )

    # Asking.

    def _consider(self, rule: Rule, event: AlertEvent) -> Iterator[ActionEvent]:
        """Asks for the rule's action if that is allowed now; says once why not."""
        action = rule.action
        if action is None:
            return
        if self._act is None:
            yield from self._say_once("advice", action, event)
            return
        if not self._act:
            return  # off: neither asked for nor advised
        now = rule.expression.evaluate(self._judge.view(event.rank))
        if now.state != FIRED and (
            self._ledger.asked_for(event.id)
            or self._ledger.moved_since(event.since_step, event.attempt)
        ):
            return  # quiet, though not for long enough to be resolved: what was done was enough
        held = self._held(action, event, self._act)
        if held is None:
            yield self._ask(action, event, now.evidence or event.evidence)
        elif held.key not in PASSING:
            yield from self._say_once("held", action, event, held)

    def _held(self, action: Action, event: AlertEvent, allowed: frozenset[str]) -> Held | None:
        if action.request not in allowed:
            return Held("held.verb", {"verb": action.request})
        held = may_ask(
            action, event, self._ledger, self._judge.last_step(), self._limits, self._clock()
        )
        if held or action.when is None:
            return held
        verdict = action.when.evaluate(self._judge.view(event.rank))
        if verdict.state == FIRED:
            return None
        return Held("held.when", {"detail": verdict.reason or action.when.text})

    def _ask(self, action: Action, event: AlertEvent, evidence: Mapping[str, float]) -> ActionEvent:
        step = self._judge.last_step() + self._limits.ahead(self._step_time(event.rank))
        asked = self._control.request(
            action.request,
            self._limits.args(action, event),
            step=step,
            expires_step=step + self._limits.patience_steps,
            attempt=event.attempt,
            rule=event.rule,
            reason=f"{event.rule} is firing since step {event.since_step}",
            evidence=evidence,
            alert=event.id,
            ranks=ranks_together(self._judge),
        )
        self._ledger.add([asked])
        args = dict(asked.args)
        return ActionEvent("request", event.rule, event.id, asked.verb, args, asked.seq, step)

    def _say_once(
        self, kind: str, action: Action, event: AlertEvent, held: Held | None = None
    ) -> Iterator[ActionEvent]:
        said = held.key if held else kind
        if self._told.get(event.id) != said:
            self._told[event.id] = said
            args = dict(action.args)
            yield ActionEvent(kind, event.rule, event.id, action.request, args, held=held)

    def _slowest_step_time(self) -> float:
        return max((self._step_time(rank) for rank in self._judge.window.ranks), default=0.0)

    def _step_time(self, rank: int) -> float:
        """Seconds per step, the median of the newest; 0.0 if it is not recorded."""
        track = self._judge.window.tracks(rank).get("step_time_s")
        if track is None or not len(track.rows):
            return 0.0
        times = track.rows.values[-STEP_TIME_ROWS:, 0]
        finite = times[np.isfinite(times)]
        return float(np.median(finite)) if len(finite) else 0.0


def portions(chunks: Sequence[Chunk]) -> Iterator[list[Chunk]]:
    """The same rows in the same order of attempts, a limited number of steps at a time."""
    for attempt in dict.fromkeys(chunk.attempt for chunk in chunks):
        mine = [chunk for chunk in chunks if chunk.attempt == attempt]
        steps = np.unique(np.concatenate([chunk.rows.steps for chunk in mine]))
        for parts in zip(*(_parts(chunk, steps) for chunk in mine), strict=True):
            yield [part for part in parts if len(part.rows)]


def _parts(chunk: Chunk, steps: NDArray[np.int64]) -> Iterator[Chunk]:
    """The rows of a chunk for each thousand of the steps, in their order."""
    rows, number = chunk.rows, steps.searchsorted(chunk.rows.steps) // PORTION_STEPS
    if np.any(number[1:] < number[:-1]):
        order = np.argsort(number, kind="stable")
        rows, number = rows[order], number[order]
    count = -(-len(steps) // PORTION_STEPS)
    ends = number.searchsorted(np.arange(count), "right")
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        yield replace(chunk, rows=rows[begin:end])
