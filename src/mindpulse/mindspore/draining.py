"""A drain: one copy from the device, and everything that the host kept since the last one."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindpulse.catalogue import MEASURES
from mindpulse.mindspore.harvest import Harvest, WallTimes
from mindpulse.mindspore.memory import MemoryReader
from mindpulse.mindspore.planting import Planted
from mindpulse.recorder import Recorder
from mindpulse.series import Rows

PRECISION_NOTE = "precision"
PRECISION_OF = ("attention", "norm", "ffn")
MOST_PENDING = 4096  # calls of a step that is not finished


@dataclass(slots=True)
class Call:
    """What the host knows of one call of `step`.

    Attributes:
        number: of the call, counted like steps.
        ended: seconds since the epoch.
        seconds: since the call before it.
        wait_s: of that, spent on waiting for data; None where nobody told.
        samples, tokens: in the batch; None where nobody told.
        loss, overflow, loss_scale: a Tensor or a number, not read yet; None where not given.
    """

    number: int
    ended: float
    seconds: float
    wait_s: float | None = None
    samples: int | None = None
    tokens: int | None = None
    loss: Any = None
    overflow: Any = None
    loss_scale: Any = None


class Drain:
    """Brings what was measured to the recorder.

    A call of `step` is an optimizer step, unless gradients are accumulated over several calls: then
    the counter on the device tells how many calls make a step.

    Args:
        planted: the probes.
        recorder: takes the rows.
        first_step: the first step of this attempt.

    Attributes:
        calls_per_step: how many calls of `step` make an optimizer step.
        steps_per_call: how many optimizer steps a call made lately; above 1 with a data sink.
        calls_until: calls of `step` whose optimizer step is finished.
        counter: the step in progress at the last drain.
        waiting: calls of `step` since the last drain.
        read_s: how long the last copy took: it waits for a device that still computes.
    """

    def __init__(self, planted: Planted, recorder: Recorder, first_step: int) -> None:
        self.harvest = Harvest(planted, first_step)
        self.calls_per_step = 1
        self.steps_per_call = 1
        self.counter = first_step
        self.calls_until = 0
        self.waiting = 0
        self.read_s = 0.0
        self._planted = planted
        self._recorder = recorder
        self._first_step = first_step
        self._pending: list[Call] = []
        self._calls = 0
        self._steps = 0
        self._ends: deque[float] = deque(maxlen=planted.ring.capacity)
        self._memory = MemoryReader() if _wants("memory", planted) else None
        self._memory_step = first_step - 1
        self._bits: dict[int, int] = {}

    def add(self, call: Call) -> None:
        """Takes in one call of `step`."""
        self._calls += 1
        self.waiting += 1
        self._pending.append(call)
        self._ends.append(call.ended)

    def next_step(self) -> int:
        """The step that the next call of `step` ends, as far as the host can know."""
        since = self._calls - self.calls_until
        return self.counter + since // self.calls_per_step

    def __call__(self) -> None:
        """Reads the ring and hands over what is new."""
        self.waiting = 0
        before = time.monotonic()
        reading = self._planted.ring.read()
        self.read_s = time.monotonic() - before
        lost_before = self.harvest.lost
        wall_times = self._wall_times(reading.counter)
        for spec, rows in self.harvest.take(reading, wall_times):
            if len(rows):
                self._recorder.write(spec, rows)
        if self.harvest.lost > lost_before:
            self._recorder.note("steps_lost", count=self.harvest.lost - lost_before)
        self._tell_precision()
        self._write_calls(reading.counter, wall_times)
        if self._ends:
            self.take_memory(max(self._first_step, reading.counter - 1))

    def _tell_precision(self) -> None:
        """Notes in which precision the model computes where, once it is known and if it changes.

        Shapes are those of the step before: they may change at each step, which is worth no note.
        """
        sites = [s for s in self._planted.sites if s.bits and s.place.kind in PRECISION_OF]
        bits = {id(site): site.bits for site in sites}
        if bits == self._bits:
            return
        self._bits = bits
        found: dict[str, Any] = {}
        for site in sites:
            told: Any = site.bits
            if site.shape is not None:
                told = {"bits": site.bits, "shape": [site.batch, *site.shape]}
            found.setdefault(site.place.kind, {})[site.label] = told
        self._recorder.note(PRECISION_NOTE, **found)

    def take_memory(self, step: int) -> None:
        """Writes what the memory holds now as rows of a step, once for each step."""
        if self._memory is None or step <= self._memory_step:
            return
        self._memory_step = step
        for tag, value in self._memory.read().items():
            if tag in self._planted.intervals:
                self._recorder.write(MEASURES[tag].spec(), Rows.one(step, time.time(), value))

    def _wall_times(self, counter: int) -> WallTimes:
        """Wall times of ring steps: the last finished one ended when `step` was last called."""
        ends = np.array(self._ends or [time.time()])
        per_step = self.calls_per_step

        def of(steps: NDArray[np.int64]) -> NDArray[np.float64]:
            back = np.clip((counter - 1 - steps) * per_step, 0, len(ends) - 1)
            found: NDArray[np.float64] = ends[len(ends) - 1 - back]
            return found

        return of

    def _write_calls(self, counter: int, wall_times: WallTimes) -> None:
        """What the host knows, as rows of the optimizer steps that the calls made."""
        first, advanced = self.counter, counter - self.counter
        if counter == self._first_step:  # no optimizer is seen: a call is a step
            first += self.calls_until
            advanced = len(self._pending)
        if not self._pending or not advanced:
            self._keep_few()
            return
        self._count(advanced)
        self.steps_per_call = max(1, round(advanced / len(self._pending)))
        used = min(len(self._pending), advanced * self.calls_per_step)
        calls, self._pending = self._pending[:used], self._pending[used:]
        self.calls_until = self._calls - len(self._pending)
        self.counter = counter
        steps = first + _steps_of(len(calls), advanced)
        self._write_losses(calls, steps)
        share = min(1.0, len(calls) / advanced)  # below 1 where a call runs several steps
        seconds = _sums(steps, [share * call.seconds for call in calls])
        ends = [call.ended for call in calls]
        times = dict(zip(steps.tolist(), ends, strict=True))  # the last call ends the step
        self._write("step_time_s", seconds, times)
        waits = [call.wait_s for call in calls]
        self._write("data_wait_s", _sums(steps, waits), times)
        for tag, counts in (
            ("samples_per_s", [call.samples for call in calls]),
            ("tokens_per_s", [call.tokens for call in calls]),
        ):
            rates = {
                step: count / seconds[step]
                for step, count in _sums(steps, counts).items()
                if seconds[step] > 0
            }
            self._write(tag, rates, times)

    def _keep_few(self) -> None:
        """Forgets the oldest calls where the optimizer is not called for very long."""
        lost = len(self._pending) - MOST_PENDING
        if lost > 0:
            del self._pending[:lost]
            self.calls_until += lost
            self._recorder.note("calls_lost", count=lost)

    def _count(self, advanced: int) -> None:
        """How many calls make a step: as many as fit into what was counted so far.

        Steps = floor(calls / calls per step), so each drain gives an upper bound.
        """
        self._steps += advanced
        most = max(1, self._calls // self._steps)
        steady = self._calls < (self._steps + 1) * self.calls_per_step
        self.calls_per_step = min(self.calls_per_step, most) if steady else most

    def _write_losses(self, calls: list[Call], steps: NDArray[np.int64]) -> None:
        probed = any(site.ran and site.place.kind == "loss" for site in self._planted.sites)
        for tag in ("overflow", "loss_scale") if probed else ("loss", "overflow", "loss_scale"):
            given = [(step, getattr(c, tag), c) for step, c in zip(steps, calls, strict=True)]
            rows = [(int(step), number(x), c.ended) for step, x, c in given if x is not None]
            if rows:
                name = "train_loss" if tag == "loss" else tag
                found: dict[int, list[float]] = {}
                for step, value, _ in rows:
                    found.setdefault(step, []).append(value)
                means = {step: sum(values) / len(values) for step, values in found.items()}
                self._write(name, means, {step: ended for step, _, ended in rows})

    def _write(self, tag: str, values: dict[int, float], times: dict[int, float]) -> None:
        if tag not in self._planted.intervals or not values:
            return
        steps = np.array(list(values), np.int64)
        due = self._planted.density.due_rows(tag, steps)
        ends = np.array([times[step] for step in values])
        rows = Rows(steps, ends, np.array(list(values.values()))[:, None])
        if due.any():
            self._recorder.write(MEASURES[tag].spec(), rows[due])


def number(x: Any) -> float:
    """A loss or a flag as a number; waits for the device where it is a Tensor."""
    value = x.asnumpy() if hasattr(x, "asnumpy") else x
    return float(np.asarray(value, np.float64).mean())


def _steps_of(calls: int, steps: int) -> NDArray[np.int64]:
    """The last of `steps` steps that each call has a part in, 0-based (calls,).

    Example:
        >>> _steps_of(6, 3).tolist(), _steps_of(2, 6).tolist()
        ([0, 0, 1, 1, 2, 2], [2, 5])
    """
    return -(-np.arange(1, calls + 1) * steps // calls) - 1


def _sums(steps: NDArray[np.int64], values: list[Any]) -> dict[int, float]:
    """Sum for each step; steps of which a value is missing are left out."""
    found: dict[int, float] = {}
    missing: set[int] = set()
    for step, value in zip(steps.tolist(), values, strict=True):
        if value is None:
            missing.add(step)
        else:
            found[step] = found.get(step, 0.0) + value
    return {step: total for step, total in found.items() if step not in missing}


def _wants(family: str, planted: Planted) -> bool:
    return any(MEASURES[t].family == family for t in planted.intervals if t in MEASURES)
