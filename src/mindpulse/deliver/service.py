"""All receivers of a file at work beside a watcher, which none of them can hold up."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType

from mindpulse.alerts import AlertEvent
from mindpulse.deliver.message import run_name
from mindpulse.deliver.settings import Target
from mindpulse.deliver.tally import Tally
from mindpulse.deliver.words import line
from mindpulse.deliver.worker import Worker
from mindpulse.watcher import Event

CLOSE_S = 10.0
logger = logging.getLogger("mindpulse")


class Deliveries:
    """A context in which the alerts of some runs are carried to their receivers.

    Each receiver has a thread and reads the runs' `alerts.jsonl` itself; `deliver` only wakes it.
    At the end each gets a bounded time for what is pending; what is left waits in the run folder
    for the next start.

    Args:
        run_dirs: the runs; a folder may appear later.
        report: is told of failures, losses and recoveries; by default the log "mindpulse".
        close_s: how long the end may take, seconds.

    Example:
        >>> with Deliveries([], ["./summary"]) as deliveries:
        ...     pass
        >>> deliveries.tallies
        []
    """

    def __init__(
        self,
        targets: Iterable[Target],
        run_dirs: Sequence[Path | str] = (),
        *,
        report: Callable[[str], None] = logger.warning,
        close_s: float = CLOSE_S,
    ) -> None:
        self._workers = [Worker(target, report) for target in targets]
        self._close_s = close_s
        self._runs: set[Path] = set()
        self.tallies: list[Tally] = []
        for run_dir in run_dirs:
            self.add(run_dir)

    def __enter__(self) -> Deliveries:
        for worker in self._workers:
            worker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def add(self, run_dir: Path | str) -> None:
        """Also carries the alerts of this run. What is in its journal now is the past."""
        self._begin(Path(run_dir))

    def deliver(self, event: Event, run_dir: Path | str | None = None) -> None:
        """An event of the watcher: an alert is in the journal already, an action is passed on.

        Args:
            run_dir: the run; one that was not known begins with this event.
        """
        is_alert = isinstance(event, AlertEvent)
        if run_dir is not None and Path(run_dir) not in self._runs:
            self._begin(Path(run_dir), event if isinstance(event, AlertEvent) else None)
        for worker in self._workers:
            if is_alert:
                worker.wake()
            elif worker.settings.actions:
                worker.note(self._words(event, run_dir, worker.settings.lang))

    def _begin(self, run_dir: Path, first: AlertEvent | None = None) -> None:
        if run_dir not in self._runs:
            self._runs.add(run_dir)
            for worker in self._workers:
                worker.add(run_dir, first)

    def _words(self, event: Event, run_dir: Path | str | None, lang: str) -> str:
        several = run_dir is not None and len(self._runs) > 1
        return (f"{run_name(Path(run_dir))}: " if several and run_dir else "") + line(event, lang)

    def close(self) -> list[Tally]:
        """Delivers what is pending, in bounded time, and says what became of everything."""
        if not self.tallies:
            until = time.monotonic() + self._close_s
            for worker in self._workers:
                worker.close(until)
            self.tallies = [worker.join() for worker in self._workers]
        return self.tallies
