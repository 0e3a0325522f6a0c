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
from pathlib import Path

import numpy as np

from mindpulse.alerts import AlertEvent
from mindpulse.alerts.journal import Journal
from mindpulse.alerts.judge import Judge
from mindpulse.control import Answer, ControlLog, Rejected
from mindpulse.errors import UsageError
from mindpulse.rules.expression import FIRED
from mindpulse.rules.rule import Action, Rule
from mindpulse.store.reader import Changes, Chunk, RunTail
from mindpulse.watcher.aftercare import Aftercare, ranks_together
from mindpulse.watcher.beside import Beside
from mindpulse.watcher.devices import Devices
from mindpulse.watcher.events import ActionEvent, Event
from mindpulse.watcher.fleet import Fleet
from mindpulse.watcher.hot_rules import Fixed, RuleSource
from mindpulse.watcher.ledger import Ledger
from mindpulse.watcher.liveness import Liveness, held_in
from mindpulse.watcher.places import Place
from mindpulse.watcher.policy import Held, Limits, may_ask
from mindpulse.watcher.portions import portions
from mindpulse.watcher.profiles import Profiles
from mindpulse.watcher.ranks import COMPARED, STEP_TIME, Ranks, first_of_rank
from mindpulse.watcher.sampler import Sampler
from mindpulse.watcher.waiting import Waiter, waiter_for

STEP_TIME_ROWS = 20
# Of each series, so that a row that is written twice is judged once.
REMEMBERED_ROWS = 1024
# An alert that waits for rows of another series is told without them then.
LONGEST_HELD_S = 1.0
PASSING = ("held.outstanding", "held.settling")  # reasons that go by themselves: not worth a word


def watch(
    run_dir: Path | str,
    rules: Sequence[Rule] | RuleSource,
    *,
    act: frozenset[str] | None = None,
    stop: threading.Event | None = None,
    clock: Callable[[], float] = time.time,
    waiter: Callable[[Sequence[Path], threading.Event], Waiter] = waiter_for,
    once: bool = False,
    limits: Limits | None = None,
) -> Iterator[Event]:
    """Watches a run until `stop` is set, and yields what happens.

    Args:
        run_dir: the run folder, or one below which runs are; it may appear later.
        rules: what to judge by, or where they come from and may change.
        act: verbs that may be asked for; None only gives advice, none at all not even that.
        stop: ends the watch, after one last look at what is there.
        waiter: makes what waits for new rows.
        once: judge what is there and end.
        limits: bounds on requests.

    Raises:
        UsageError: with `once`, there is no such folder; or another watcher is at work.
        StoreError: the run folder cannot be written.
    """
    told = watch_runs(
        [run_dir], rules, act=act, stop=stop, clock=clock, waiter=waiter, once=once, limits=limits
    )
    return (event for _, event in told)


def watch_runs(
    places: Sequence[Path | str],
    rules: Sequence[Rule] | RuleSource,
    *,
    act: frozenset[str] | None = None,
    stop: threading.Event | None = None,
    clock: Callable[[], float] = time.time,
    waiter: Callable[[Sequence[Path], threading.Event], Waiter] = waiter_for,
    once: bool = False,
    limits: Limits | None = None,
    tell: Callable[[str], None] = lambda sentence: None,
    sampler: Sampler | None = None,
) -> Iterator[tuple[Path, Event]]:
    """Watches any number of runs, and yields what happens with the folder of its run.

    Args:
        places: run folders, and folders below which runs are or will be.
        tell: takes a sentence about a run that cannot be watched, or a profile that cannot be read.
        sampler: asks the devices; what they tell becomes series of the runs. Closed by its owner.

    The other arguments, and what is raised, are those of `watch`.
    """
    stop = stop or threading.Event()
    named = [Place(Path(place)) for place in places]
    for place in named:
        if once and not place.path.is_dir():
            raise UsageError(f"{place.path}: no such folder; give the summary_dir of a training")
    source = rules if isinstance(rules, RuleSource) else Fixed(rules)

    def begin(run: Path) -> _Session:
        return _Session(run, source.rules, act, clock, limits or Limits(), once, tell, sampler)

    waiting = waiter([place.path for place in named], stop)
    try:
        fleet = Fleet(named, begin, waiting, stop, clock, once, tell, source.changed)
        yield from fleet.watch()
    finally:
        waiting.close()


class _Session:
    """What the watcher knows between two looks at the folder."""

    def __init__(
        self,
        folder: Path,
        rules: Sequence[Rule],
        act: frozenset[str] | None,
        clock: Callable[[], float],
        limits: Limits,
        once: bool = False,
        tell: Callable[[str], None] = lambda sentence: None,
        sampler: Sampler | None = None,
    ) -> None:
        needed = {tag for rule in rules for tag in rule.needs} | COMPARED
        self._tail = RunTail(folder, needed, REMEMBERED_ROWS)
        self._judge = Judge(rules)
        self._ranks = Ranks()
        self._journal = Journal(folder, rules, clock)
        self._liveness = Liveness(self._journal.firing(), held_in(folder), clock())
        self._control = ControlLog(folder, clock=clock)
        self._ledger = Ledger()
        self._act = act
        self._clock = clock
        self._limits = limits
        self._once = once
        self._aftercare = Aftercare(self._control, self._ledger, self._judge, act, limits, clock)
        self._beside = Beside(folder, tell)
        self._devices = Devices(sampler, self._beside)
        self._profiles = Profiles(folder, self._beside, tell, at_once=once, clock=clock)
        self._first = True
        self._held_since: float | None = None
        self._told: dict[str, str] = {}

    def turn(self, changed: Changes, final: bool) -> Iterator[Iterable[Event]]:
        """One look: control log, rows, alerts, requests; in portions, so that a long run to catch
        up with does not keep others waiting, nor the sign of our presence from being renewed."""
        yield self._read_control()
        self._measure(changed is None)
        for found in self._tail.portions(changed):
            self._liveness.saw(found, self._clock())
            self._devices.saw(found)
            for chunks in portions([each for each in found if isinstance(each, Chunk)]):
                yield self._say([*self._judge.feed(chunks), *self._compared(chunks)])
        if final:
            last = first_of_rank(self._ranks.finish(), self._journal.firing())
            yield self._say([*self._judge.finish(), *last])
        if not self._once:
            yield self._say(self._by_the_clock())
        yield self._journal.after_silence()
        for rule, event in self._judge.firing():
            if not (event.inhibited_by or self._journal.is_silenced(event.id)):
                yield self._consider(rule, event)
        yield self._aftercare.attend(self._slowest_step_time())

    def _measure(self, everything: bool) -> None:
        """Writes what the watcher itself measures; it is read back and judged like all rows."""
        if everything:
            self._profiles.look()
        self._devices.look()
        self._beside.flush()

    def asleep(self, at_once: bool) -> bool:
        """Nothing more is expected of this run; `at_once`: there are many others."""
        busy = self._judge.holding or self._profiles.awaited
        return self._liveness.asleep(self._clock(), at_once) and not busy

    def _compared(self, chunks: Sequence[Chunk]) -> list[AlertEvent]:
        return first_of_rank(self._ranks.feed(chunks), self._journal.firing())

    def _by_the_clock(self) -> list[AlertEvent]:
        """What time alone brings: silence, and the end of waiting for rows of other series."""
        now = self._clock()
        events = self._liveness.look(now)
        if not self._judge.holding:
            self._held_since = None
        elif self._held_since is None:
            self._held_since = now
        elif now - self._held_since > LONGEST_HELD_S:
            events += self._judge.release()
        return events

    def _say(self, events: Iterable[AlertEvent]) -> list[AlertEvent]:
        """Into the journal go all; told are those that somebody is to hear."""
        return [event for event in self._journal.add(events) if event.delivered]

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
        track = self._judge.window.tracks(rank).get(STEP_TIME)
        if track is None or not len(track.rows):
            return 0.0
        times = track.rows.values[-STEP_TIME_ROWS:, 0]
        finite = times[np.isfinite(times)]
        return float(np.median(finite)) if len(finite) else 0.0
