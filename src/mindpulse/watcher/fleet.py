"""Any number of runs in one process: which are awake, whose turn it is, which sleep.

Each run takes its turns in portions, so that a long history that is caught up with does not keep
the others waiting. A run that came to an end is closed and costs nothing until it is written again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mindpulse.errors import MindPulseError
from mindpulse.store.reader import Changes
from mindpulse.watcher.events import Event
from mindpulse.watcher.places import Place
from mindpulse.watcher.presence import BEAT_S, Presence
from mindpulse.watcher.roster import Absent, Session, Watched, size_bytes
from mindpulse.watcher.waiting import Waiter

APPEAR_S = 0.2
# So often everything is looked at: what the kernel does not tell is seen then.
RESCAN_S = 5.0
# So often a run is tried again that could not be watched.
RETRY_S = 30.0
# So many histories are caught up with at a time: each is held in memory meanwhile.
MOST_STARTING = 32


@dataclass
class Fleet:
    """All runs of one watcher.

    Args:
        places: folders of runs, or above runs.
        begin: makes the session of a run.
        waiter: waits for changes of all runs.
        stop: ends the watch, after one last look.
        clock: the time in seconds since the epoch.
        once: judge what is there and end.
        tell: takes a sentence about one of several runs that cannot be watched.
        rules_changed: tells that all runs have to be judged by other rules.
    """

    places: Sequence[Place]
    begin: Callable[[Path], Session]
    waiter: Waiter
    stop: threading.Event
    clock: Callable[[], float]
    once: bool = False
    tell: Callable[[str], None] = lambda sentence: None
    rules_changed: Callable[[], bool] = lambda: False
    _awake: dict[Path, Watched] = field(default_factory=dict)
    _absent: dict[Path, Absent] = field(default_factory=dict)
    _done: set[Path] = field(default_factory=set)
    _followed: set[Path] = field(default_factory=set)
    _scanned_at: float = float("-inf")
    _looked_at: float = float("-inf")
    _last: bool = False
    _crowded: bool = False

    def watch(self) -> Iterator[tuple[Path, Event]]:
        """What happens in the runs, until `stop` is set."""
        try:
            while True:
                if not self._last and (self.once or self.stop.is_set()):
                    self._last, self._scanned_at = True, float("-inf")
                self._scan()
                if self.rules_changed():
                    self._renew()
                yield from self._round()
                if self._crowded and self._starting() < MOST_STARTING // 2:
                    self._scanned_at = float("-inf")
                elif self._last and not self._awake:
                    return
                self._take(self._wait())
        finally:
            for watched in self._awake.values():
                watched.presence.close()

    def _renew(self) -> None:
        """Begins all runs anew; what was said is not said again."""
        for watched in self._awake.values():
            watched.session = self.begin(watched.run)
            watched.changed, watched.turn = None, None

    # Which runs.

    def _scan(self) -> None:
        now = self.clock()
        if abs(now - self._scanned_at) < self._pause_s():
            return
        self._scanned_at, self._crowded = now, False
        for place in self.places:
            runs = place.runs()
            new = {*place.folders(), *runs} - self._followed
            for folder in new:
                self._followed.add(folder)
                self.waiter.follow(folder)
            if new:  # something may have appeared in them before they were followed
                self._scanned_at = float("-inf")
            for run in runs:
                if run in self._awake or run in self._done:
                    continue
                if self._starting() >= MOST_STARTING:
                    self._crowded = True
                elif self._is_up(run, now):
                    self._wake(run, now)
            if runs and place.path not in runs:
                self._close(place.path)
        if now - self._looked_at >= RESCAN_S and not self._last:
            self._looked_at = now
            for watched in self._awake.values():
                watched.changed = None

    def _starting(self) -> int:
        """Runs whose history is still being caught up with."""
        return sum(not watched.looked for watched in self._awake.values())

    def _pause_s(self) -> float:
        return RESCAN_S if self._awake else APPEAR_S

    def _is_up(self, run: Path, now: float) -> bool:
        absent = self._absent.get(run)
        if absent is None:
            return True
        if now < absent.until:
            return False
        absent.until = now + RETRY_S
        return absent.size_bytes is None or absent.size_bytes != size_bytes(run)

    def _wake(self, run: Path, now: float) -> None:
        try:
            presence = Presence(run, now)
            try:
                session = self.begin(run)
            except BaseException:
                presence.close()
                raise
        except MindPulseError as error:
            self._leave_out(run, error)
            return
        self._absent.pop(run, None)
        self._awake[run] = Watched(run, session, presence)

    def _close(self, run: Path) -> None:
        watched = self._awake.pop(run, None)
        if watched:
            watched.presence.close()

    # Whose turn.

    def _round(self) -> Iterator[tuple[Path, Event]]:
        """One portion of each run that has something to do."""
        now = self.clock()
        for watched in list(self._awake.values()):
            watched.presence.beat(now)
            try:
                for event in self._portion(watched):
                    yield watched.run, event
            except MindPulseError as error:
                self._close(watched.run)
                self._leave_out(watched.run, error)

    def _leave_out(self, run: Path, error: MindPulseError) -> None:
        """One of several runs is tried again later; of a run by itself it is an error."""
        if [run] == [place.path for place in self.places]:
            raise error
        if run not in self._absent:
            self.tell(str(error))
        self._absent[run] = Absent(None, self.clock() + RETRY_S)

    def _portion(self, watched: Watched) -> Iterable[Event]:
        if watched.turn is None:
            if self._last:
                watched.changed = None
            if not watched.busy:
                return ()
            changed, watched.changed = watched.changed, {}
            watched.turn = watched.session.turn(changed, self._last)
            watched.finished = self._last
        events = next(watched.turn, None)
        if events is not None:
            return events
        watched.turn, watched.looked = None, True
        if watched.finished:
            self._done.add(watched.run)
            self._close(watched.run)
        elif watched.session.asleep(at_once=len(self._awake) > MOST_STARTING // 2):
            self._sleep(watched)
        return ()

    def _sleep(self, watched: Watched) -> None:
        self._absent[watched.run] = Absent(size_bytes(watched.run), self.clock())
        self._close(watched.run)

    # Waiting.

    def _wait(self) -> Changes:
        if any(watched.busy for watched in self._awake.values()):
            return self.waiter.peek()
        return self.waiter.wait(BEAT_S / 2 if self._awake else APPEAR_S)

    def _take(self, changes: Changes) -> None:
        if changes is None:
            for watched in self._awake.values():
                watched.changed = None
            return
        for folder, names in changes.items():
            near = (folder, folder.parent, folder.parent.parent)
            run = next((each for each in near if each in self._awake), None)
            if run is not None:
                self._awake[run].notice(folder, names)
            asleep = next((each for each in near if each in self._absent), None)
            if asleep is not None:
                self._absent[asleep].until = float("-inf")
            if run in (None, folder):  # something new that may be a run, or a part of one
                self._scanned_at = float("-inf")
