"""The training side of MindPulse: drains the ring, hands rows to the recorder, obeys requests."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.control import Agenda, Answer, ControlLog, Message
from mindpulse.mindspore.actions import Actions
from mindpulse.mindspore.environment import fingerprint, rank_of_process
from mindpulse.mindspore.guard import Guard
from mindpulse.mindspore.harvest import STEP_TIME, TRAIN_LOSS, Harvest, WallTimes
from mindpulse.mindspore.planting import Options, Planted, plant_all
from mindpulse.mindspore.snapshots import Snapshots
from mindpulse.mindspore.structure import Place
from mindpulse.recorder import Recorder
from mindpulse.series import Rows

log = logging.getLogger("mindpulse")
DRAIN_INTERVAL_S = 1.0
CONTROL_INTERVAL_S = 0.2
MAX_FAILURES = 10  # after so many a monitor takes itself out: it must not cost time for nothing


class Monitor:
    """Watches one training; `attach` and `TransformerMonitor` make it.

    A monitor that cannot start (the folder cannot be written, nothing can be planted) says so in
    `problem`, logs it once, and does nothing: the training runs as if it were not there.

    Attributes:
        probes: the places found in the model, planted or not, with the reason.
        problem: why this monitor does nothing (any more); "" for one that works.
        directory: folder of this rank's files; None where there is a problem.
    """

    def __init__(
        self,
        net: Any,
        optimizer: Any,
        *,
        summary_dir: str | os.PathLike[str],
        flush_interval: float,
        options: Options,
        train_cell: Any = None,
        rank: int | None = None,
        first_step: int = 1,
        mirror: str | Iterable[str] = (),
    ) -> None:
        self.problem = ""
        self.directory: Any = None
        self.probes: list[Place] = []
        self.steps_seen = 0
        self._last_error = ""
        self._planted: Planted | None = None
        self._recorder: Recorder | None = None
        self._guard = Guard(self._failed)
        self._first_step = first_step
        self._mirror = mirror
        self._closed = False
        start = partial(
            self._start, net, optimizer, summary_dir, flush_interval, options, train_cell, rank
        )
        if not self._guard("starting MindPulse", start):
            self._give_up()

    def _start(
        self,
        net: Any,
        optimizer: Any,
        summary_dir: str | os.PathLike[str],
        flush_interval: float,
        options: Options,
        train_cell: Any,
        rank: int | None,
    ) -> None:
        rank = rank_of_process() if rank is None else rank
        self._recorder = Recorder(
            os.fspath(summary_dir),
            rank=rank,
            flush_interval=flush_interval,
            fingerprint=fingerprint(),
            mirror=self._mirror,
        )
        self.directory = self._recorder.directory
        planted = plant_all(net, optimizer, train_cell, self._first_step, options, self._guard)
        self._planted = planted
        planted.thinning.step = self._next_step
        planted.ring.read()  # compiles what a drain runs, before the first step
        self.probes = planted.places
        self._harvest = Harvest(planted, self._first_step)
        self._snapshots = Snapshots(planted.attention, options.snapshot_every, self._recorder)
        self._capacity = options.capacity
        attempt = self._recorder.attempt
        self._actions = Actions(rank, attempt, planted.learning_rate)
        self._agenda = Agenda(rank, attempt)
        self._control = ControlLog(summary_dir)
        self._inbox: deque[Message] = deque()
        self._outbox: deque[Answer] = deque()
        self._recorder.every(CONTROL_INTERVAL_S, self._exchange)
        self._losses: list[tuple[int, Any]] = []
        self._clocks: deque[float] = deque(maxlen=options.capacity)
        self._drained_at = self._ended_at = time.monotonic()
        self._times: list[tuple[int, float, float]] = []
        self._checked_variants = False
        self._recorder.note("start", step=self._first_step)  # what this attempt supersedes
        self._note_probes()

    def step(self, loss: Any = None) -> bool:
        """Marks the end of an optimizer step; call it once after each.

        Args:
            loss: the loss of the step, a Tensor or a number. A Tensor is kept, not read: nothing
                waits for the device here. Not needed where a training cell was given.

        Returns:
            True once a stop was asked for: leave the loop, then `close()`.
        """
        if self.problem or self._closed:
            return False
        self._guard("the monitor's step", lambda: self._step(loss))
        if self._guard.failures >= MAX_FAILURES:
            self._give_up()
        return self._actions.stop_asked

    def drain(self) -> None:
        """Hands everything measured so far to the recorder, now."""
        if not self.problem and not self._closed:
            self._guard("reading the ring", self._drain)

    def flush(self) -> bool:
        """Drains, and returns once the rows are with the operating system; False after 30 s."""
        self.drain()
        return self._recorder.flush() if self._recorder is not None else False

    def close(self) -> None:
        """Drains, takes every probe out of the model, writes what is left. May be called twice."""
        if self._closed:
            return
        self.drain()
        if self._planted is not None and not self.problem:
            self._guard("the last snapshot", lambda: self._snapshots.take(self._harvest))
            self._guard("removing the probes", self._planted.remove)
            self._guard("telling which probes never ran", self._tell_silent_probes)
        self._closed = True
        if self._recorder is not None:
            self._recorder.close()
            self._guard("answering requests", self._exchange)

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- one step -----------------------------------------------------------------------------

    def _next_step(self) -> int:
        return self._first_step + self.steps_seen

    def _step(self, loss: Any) -> None:
        now = time.monotonic()
        step = self._next_step()
        self.steps_seen += 1
        wall_time = time.time()
        self._clocks.append(wall_time)
        self._times.append((step, wall_time, now - self._ended_at))
        self._ended_at = now
        if loss is not None:
            self._losses.append((step, loss))
        if self._must_drain(step, now):
            self._drain()
        self._thin()
        self._obey(step + 1)

    def _must_drain(self, step: int, now: float) -> bool:
        waiting = step - self._harvest.next_step + 1
        return waiting >= self._capacity // 2 or now - self._drained_at >= DRAIN_INTERVAL_S

    def _thin(self) -> None:
        """Chooses the variant of the next step where no training cell does it for us."""
        planted = self._planted
        if planted is None or planted.chooses_itself or not planted.thinning.thins:
            return
        planted.thinning.choose()

    def _obey(self, next_step: int) -> None:
        while self._inbox:
            self._agenda.add([self._inbox.popleft()])
        if not self._agenda:
            return
        ready, expired = self._agenda.due(next_step)
        now = time.time()
        for request in ready:
            self._outbox.append(self._actions.carry_out(request, next_step, now))
        for request in expired:
            why = f"step {next_step} is past expires_step {request.expires_step}"
            self._outbox.append(self._actions.answer(request, next_step, now, "expired", why))

    # -- draining -----------------------------------------------------------------------------

    def _drain(self) -> None:
        assert self._planted is not None
        assert self._recorder is not None
        self._drained_at = time.monotonic()
        reading = self._planted.ring.read()
        lost_before = self._harvest.lost
        wall_times = self._wall_times(reading.counter)
        for spec, rows in self._harvest.take(reading, wall_times):
            if len(rows):
                self._recorder.write(spec, rows)
        if self._harvest.lost > lost_before:
            self._recorder.note("steps_lost", count=self._harvest.lost - lost_before)
        shift = reading.counter - self._next_step() if self._optimizer_ran(reading.counter) else 0
        self._write_losses(shift, wall_times)
        self._write_times(shift)
        self._find_fixed_variant(reading.counter)
        self._snapshots.offer(self._harvest)

    def _optimizer_ran(self, counter: int) -> bool:
        """False, and told once, where steps went by and the optimizer's probe saw none of them."""
        if counter > self._first_step or self.steps_seen < 2:
            return True
        for place in self.probes:
            if place.kind == "optimizer" and place.state == "planted":
                place.state = "never ran"
                place.reason = "planted, but never ran: attach before the step is first compiled"
                log.warning("the optimizer's probe was %s", place.reason)
                self._note_probe(place)
        return False

    def _wall_times(self, counter: int) -> WallTimes:
        """Wall times of ring steps: the last finished one ended when `step` was last called."""
        clocks = np.array(self._clocks or [time.time()])

        def of(steps: NDArray[np.int64]) -> NDArray[np.float64]:
            back = np.clip(counter - 1 - steps, 0, len(clocks) - 1)
            found: NDArray[np.float64] = clocks[len(clocks) - 1 - back]
            return found

        return of

    def _write_losses(self, shift: int, wall_times: WallTimes) -> None:
        """Losses given to `step`; `shift`: how far optimizer steps are off the calls of `step`."""
        assert self._recorder is not None
        if not self._losses:
            return
        numbers = [float(x.asnumpy() if hasattr(x, "asnumpy") else x) for _, x in self._losses]
        steps = np.array([step + shift for step, _ in self._losses], np.int64)
        self._losses.clear()
        self._recorder.write(TRAIN_LOSS, Rows(steps, wall_times(steps), np.array(numbers)[:, None]))

    def _write_times(self, shift: int) -> None:
        assert self._recorder is not None
        if not self._times:
            return
        steps, walls, seconds = (np.array(column) for column in zip(*self._times, strict=True))
        self._times.clear()
        rows = Rows(steps.astype(np.int64) + shift, walls, seconds[:, None])
        self._recorder.write(STEP_TIME, rows)

    def _find_fixed_variant(self, counter: int) -> None:
        """A jit function keeps the probes it was compiled with: swapping is then in vain."""
        planted = self._planted
        if planted is None or self._checked_variants or planted.chooses_itself:
            return
        unsampled = self._first_step + 1
        if counter <= unsampled or not planted.attention or planted.thinning.every(unsampled):
            return
        self._checked_variants = True
        if self._harvest.unasked:
            planted.thinning.fixed = True
            planted.thinning.set(True)

    # -- what runs in the recorder's thread -----------------------------------------------------

    def _exchange(self) -> None:
        self._inbox.extend(self._control.poll())
        while self._outbox:
            self._control.answer(self._outbox[0])
            self._outbox.popleft()

    # -- telling ------------------------------------------------------------------------------

    def _note_probes(self) -> None:
        for place in self.probes:
            self._note_probe(place)

    def _note_probe(self, place: Place) -> None:
        if self._recorder is not None:
            self._recorder.note(
                "probe", path=place.path, what=place.kind, state=place.state, reason=place.reason
            )

    def _tell_silent_probes(self) -> None:
        assert self._planted is not None
        for probe in self._planted.attention:
            if probe.slot not in self._harvest.shapes and self.steps_seen:
                probe.place.state = "never ran"
                probe.place.reason = "planted, but the step never came by here"
                log.warning("probe %s was planted, but never ran", probe.place.path)
                self._note_probe(probe.place)

    def _failed(self, what: str, text: str) -> None:
        self._last_error = text
        if self._recorder is not None:
            self._recorder.note("monitor_error", what=what, error=text)

    def _give_up(self) -> None:
        self.problem = self._last_error
        log.error("MindPulse does not watch this training: %s", self.problem)
        if self._planted is not None:
            self._guard("removing the probes", self._planted.remove)
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None
