"""One receiver at work, in a thread of its own that no receiver can make the watcher wait for."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mindpulse.alerts import AlertEvent
from mindpulse.deliver.courier import Courier
from mindpulse.deliver.settings import Target
from mindpulse.deliver.tally import Tally

AFTER_DEFECT_S = 1.0
UNWINDING_S = 0.1


class Worker:
    """A courier and its thread. None of the methods waits for the receiver, but `join`."""

    def __init__(
        self,
        target: Target,
        report: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = target.settings
        self._courier = Courier(target, report, clock)
        self._clock = clock
        self._changed = threading.Condition()
        self._woken = False
        self._hurried = False
        self._closing_until: float | None = None
        self._thread = threading.Thread(target=self._run, name=f"deliver-{self.settings.name}")
        self._thread.daemon = True

    def start(self) -> None:
        """Begins to work."""
        self._thread.start()

    def add(self, run_dir: Path, first: AlertEvent | None = None) -> None:
        """Also carries the alerts of this run, from `first` on, or from now on."""
        self._courier.open(run_dir, first)
        self.wake()

    def note(self, words: str) -> None:
        """Also tells this; it is kept in memory only."""
        self._courier.note(words)
        self.wake()

    def wake(self) -> None:
        """There is something new in a journal."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def close(self, until: float) -> None:
        """Delivers what is pending, at once, and ends at `until` by the clock at the latest."""
        with self._changed:
            self._closing_until = until
            self._changed.notify()

    def join(self) -> Tally:
        """Waits for the end that `close` allowed; a receiver that hangs is left hanging."""
        until = self._closing_until if self._closing_until is not None else self._clock()
        self._thread.join(max(0.0, until - self._clock()) + UNWINDING_S)
        self._courier.count_left()
        tally = replace(self._courier.tally)  # as it is now: a thread that hangs may go on later
        if self._thread.is_alive() and not tally.last_error:
            tally.last_error = "it has not answered yet"
        return tally

    def _run(self) -> None:
        while True:
            with self._changed:
                self._woken = False
            try:
                if not self._turn():
                    return
            except Exception as error:  # a defect costs this message only, never the thread
                frame = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{Path(frame.filename).name}:{frame.lineno}"
                self._courier.drop(f"{type(error).__name__} at {where}")
                if self._closing_until is not None:
                    return
                with self._changed:
                    self._changed.wait(AFTER_DEFECT_S)

    def _turn(self) -> bool:
        """One look, then an attempt if it is time for one, else a wait; False at the end."""
        closing = self._closing_until  # before the look: what came before the end is seen
        self._courier.look()
        if closing is not None and not self._hurried:
            self._hurried = True
            self._courier.hurry()
        due, now = self._courier.due(closing is not None), self._clock()
        if closing is not None and (due is None or max(due, now) >= closing):
            self._courier.end()
            return False
        if due is not None and due <= now:
            self._courier.attempt()
            return True
        with self._changed:
            if not self._woken and self._closing_until == closing:
                self._changed.wait(None if due is None else due - now)
        return True
