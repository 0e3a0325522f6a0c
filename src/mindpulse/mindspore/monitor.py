"""The training side of MindPulse: plants, drains now and then, obeys requests, cleans up."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, TypeVar

from mindpulse.catalogue.selection import tags_of
from mindpulse.control import ControlLog, Message
from mindpulse.errors import UsageError
from mindpulse.mindspore.acting.duties import Duties
from mindpulse.mindspore.acting.means import actions_of
from mindpulse.mindspore.attached import ATTACHED_NOTE, attached
from mindpulse.mindspore.bytecode import keep_out
from mindpulse.mindspore.draining import Call, Drain
from mindpulse.mindspore.environment import fingerprint, rank_of_process
from mindpulse.mindspore.guard import Guard
from mindpulse.mindspore.planting import Options, Planted, known_measures, plant_all
from mindpulse.mindspore.probe_table import ProbeTable
from mindpulse.mindspore.snapshots import Snapshots
from mindpulse.mindspore.variants import jitted
from mindpulse.recorder import Recorder
from mindpulse.schedule import Budget, whole_steps
from mindpulse.store.switch import switched_off

log = logging.getLogger("mindpulse")
DRAIN_INTERVAL_S = 1.0
CONTROL_INTERVAL_S = 0.2
MAX_FAILURES = 30  # after so many a monitor takes itself out: it must not cost time for nothing
HOST_STEPS = 10  # between two looks at the memory, where a drain does not come earlier
EARLY_DRAINS = (2, 4, 8, 16)  # calls after which the ring is read, to see what really runs
Item = TypeVar("Item")


class Monitor:
    """Watches one training; `attach` and `TransformerMonitor` make it.

    A monitor that cannot start (the folder cannot be written, nothing can be planted), or that
    `MINDPULSE=off` in the environment switches off, says so in `problem`, logs it once, and does
    nothing: the training runs as if it were not there.

    Attributes:
        probes: the places found in the model, planted or not, with the reason; prints as a table.
        problem: why this monitor does nothing (any more); "" for one that works.
        directory: folder of this rank's files; None where there is a problem.
        steps_seen: how often `step` was called.
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
        self.probes = ProbeTable()
        self.steps_seen = 0
        self._last_error = ""
        self._planted: Planted | None = None
        self._recorder: Recorder | None = None
        self._guard = Guard(self._failed)
        self._first_step = first_step
        self._mirror = mirror
        self._closed = False
        self._stop_asked = False
        optimizers = list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer]
        start = partial(
            self._start, net, [x for x in optimizers if x is not None], summary_dir,
            flush_interval, options, train_cell, rank,
        )  # fmt: skip
        off = switched_off()
        if off:
            self.problem = f"recording is switched off by {off} in the environment"
            log.info("MindPulse does not watch this training: %s", self.problem)
        elif not self._guard("starting MindPulse", start):
            self._give_up()

    def _start(
        self,
        net: Any,
        optimizers: Sequence[Any],
        summary_dir: str | os.PathLike[str],
        flush_interval: float,
        options: Options,
        train_cell: Any,
        rank: int | None,
    ) -> None:
        self._rank = rank_of_process() if rank is None else rank
        self._flush_interval, self._options = flush_interval, options
        self._cells = [net, *optimizers, train_cell]
        keep_out()
        self._open(summary_dir)
        self._guard("noting how the training stands", lambda: self._note_attached(optimizers))
        planted = plant_all(
            net, optimizers, train_cell, self._first_step, options, self._guard, self._saw_batch
        )
        self._planted = planted
        planted.ring.read()  # compiles what a drain runs, before the first step
        self.probes = ProbeTable(planted.places)
        self._begin(summary_dir)
        log.info("MindPulse watches this training:\n%s", self.probes)

    def _open(self, summary_dir: str | os.PathLike[str]) -> None:
        self._recorder = Recorder(
            os.fspath(summary_dir),
            rank=self._rank,
            flush_interval=self._flush_interval,
            fingerprint=fingerprint(),
            mirror=self._mirror,
        )
        self.directory = self._recorder.directory

    def _begin(self, summary_dir: str | os.PathLike[str]) -> None:
        """Everything that belongs to one run; the probes stay when the next one begins."""
        planted, recorder, options = self._planted, self._recorder, self._options
        assert planted is not None
        assert recorder is not None
        self._drain_all: Drain = Drain(planted, recorder, self._first_step)
        planted.variants.step = self._drain_all.next_step
        self._snapshots = Snapshots(planted.sites, options.snapshot_every, recorder)
        self._budget = Budget(options.max_overhead) if options.max_overhead is not None else None
        self._actions = actions_of(
            self._cells, planted.learning_rate, self, recorder, self._rank, options,
            lambda: self._drain_all.steps_per_call,
        )  # fmt: skip
        self._duties = Duties(self._actions, ControlLog(summary_dir), self._boundary)
        self._read_counter = (self._first_step, 0)  # the counter on the device, after which call
        recorder.every(CONTROL_INTERVAL_S, self._duties.exchange)
        recorder.step_now = self._drain_all.next_step
        self._drained_at = self._ended_at = time.monotonic()
        self._host_s = 0.0
        self._wait_s: float | None = None
        self._batch: tuple[int | None, int | None] = (None, None)
        self._checked = False
        self._told: set[int] = set()
        self.steps_seen, self._stop_asked = 0, False
        recorder.note("start", step=self._first_step)  # what this attempt supersedes
        for place in self.probes:
            self._note_probe(place)

    # -- what the training loop calls ---------------------------------------------------------

    def step(
        self,
        loss: Any = None,
        *,
        overflow: Any = None,
        loss_scale: Any = None,
        samples: int | None = None,
        tokens: int | None = None,
    ) -> bool:
        """Marks the end of an optimizer step; call it once after each.

        Tensors are kept, not read: nothing waits for the device here.

        Args:
            loss: the loss of the step, a Tensor or a number. Not needed where a training cell was
                given.
            overflow: whether the optimizer was not called because gradients overflowed; for loops
                of one's own with a loss scaler.
            loss_scale: the loss scale of the step.
            samples, tokens: in the batch, for the throughput; where the step's inputs are seen (a
                training cell, `jit`) they are counted.

        Returns:
            True once a stop was asked for: leave the loop, then `close()`.
        """
        if self.problem or self._closed:
            return self._stop_asked
        self._guard(
            "the monitor's step", lambda: self._step(loss, overflow, loss_scale, samples, tokens)
        )
        if self._guard.failures >= MAX_FAILURES:
            self._give_up()
        return self._stop_asked

    def jit(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A step function as a graph, like `ms.jit`, in which dear measures are thinned.

        Args:
            function: the step as plain Python, or already under `ms.jit`.

        Example:
            >>> # train_step = monitor.jit(train_step)
        """
        planted = self._planted
        if planted is None or self.problem:
            import mindspore as ms

            return ms.jit(function)  # type: ignore[no-any-return]
        planted.chooses_itself = True
        return jitted(function, planted.variants, self._guard, planted.remove, self._saw_batch)

    def timed(self, batches: Iterable[Item]) -> Iterator[Item]:
        """The same batches, while the time spent on waiting for them is measured (data_wait_s)."""
        iterator = iter(batches)
        while True:
            before = time.monotonic()
            try:
                batch = next(iterator)
            except StopIteration:
                return
            self.waited(time.monotonic() - before)
            yield batch

    def waited(self, seconds: float) -> None:
        """Tells how long the next step waited for its data."""
        self._wait_s = seconds

    def paused(self) -> AbstractContextManager[None]:
        """The model without any probe as long as the block runs: for evaluation in one's own loop.

        Example:
            >>> # with monitor.paused():
            >>> #     accuracy = evaluate(net)
        """
        if self._planted is None or self.problem or self._closed:
            return nullcontext()
        return self._planted.variants.pause()

    def set_interval(self, name: str, steps: int) -> None:
        """Measures a family or a tag each `steps` steps from the next step on.

        Nothing is compiled anew: the step's variants stay what they are.

        Raises:
            UsageError: it is not measured in this run, or the number is not a whole one from 1 up.
        """
        tags = tags_of(name, known_measures())
        if self._planted is not None and not self.problem:
            self._planted.density.set(tags, steps, self._next_step())
            self._choose()
            self._note("interval", name=name, steps=steps)

    def burst(self, steps: int) -> None:
        """Measures everything on each of the next steps.

        Raises:
            UsageError: the number is not a whole one from 1 up.
        """
        whole_steps("burst", steps)
        if self._planted is not None and not self.problem:
            self._planted.density.burst(self._next_step(), steps)
            self._choose()
            self._note("burst", steps=steps)

    def snapshot(self) -> None:
        """Keeps the attention maps of the next step."""
        if self._planted is not None and not self.problem:
            self._planted.density.burst(self._next_step(), 1)
            self._choose()
            self._snapshots.want(self._next_step())

    def add_scalars(self, values: Mapping[str, float], step: int | None = None) -> None:
        """Records numbers of one's own by tag, such as the loss of an evaluation.

        Who writes `grad_norm_unclipped` has it to oneself from then on.

        Args:
            step: that they belong to; None for the last one that ended.

        Example:
            >>> # monitor.add_scalars({"eval_loss": 2.5})
        """
        if self._recorder is not None and not self.problem and not self._closed:
            self._drain_all.harvest.leave(values)
            self._recorder.add_scalars(self._next_step() - 1 if step is None else step, values)

    def restart(self, summary_dir: str | os.PathLike[str], *, first_step: int = 1) -> None:
        """Begins a new run with the probes that are planted: for folds, sweeps and seeds.

        The run so far is completed, as by `close`. Nothing is compiled anew, so the model, the
        optimizer and the shapes must stay; resetting the weights and moments is the caller's part,
        and so is a learning rate that an action has scaled.

        Args:
            summary_dir: folder of the new run.
            first_step: number of its first step.

        Raises:
            UsageError: the monitor was closed: its probes are gone.

        Example:
            >>> # for fold, batches in enumerate(folds):
            >>> #     monitor.restart(f"summary/fold-{fold}")
        """
        if self._closed:
            raise UsageError("restart: this monitor was closed and has no probes: attach a new one")
        if self.problem or self._planted is None:
            return
        self._complete()
        self._close_recorder()
        if not self._guard("restarting", lambda: self._restart(summary_dir, first_step)):
            self._give_up()

    def _restart(self, summary_dir: str | os.PathLike[str], first_step: int) -> None:
        assert self._planted is not None
        self._first_step = first_step
        self._open(summary_dir)
        self._planted.reset(first_step)
        self._begin(summary_dir)
        self._choose()

    @property
    def requests_heard(self) -> deque[Message]:
        """What was read from the control log and not looked at yet, for tests."""
        return self._duties.inbox

    @property
    def device_bytes(self) -> int:
        """Memory that the probes' rows and maps take on the device."""
        if self._planted is None:
            return 0
        maps = [site.map for site in self._planted.sites if site.map is not None]
        return self._planted.ring.device_bytes + sum(4 * int(x.size) for x in maps)

    def drain(self) -> None:
        """Hands everything measured so far to the recorder, now."""
        if not self.problem and not self._closed:
            self._guard("reading the ring", self._drain)

    def flush(self) -> bool:
        """Drains, and returns once the rows are with the operating system; False after 30 s.

        What was asked for until now is known afterwards, and what was answered is written.
        """
        self.drain()
        if self._recorder is None:
            return False
        if not self.problem and not self._closed:
            self._guard("reading requests", self._duties.exchange)
        return self._recorder.flush()

    def close(self) -> None:
        """Drains, takes every probe out of the model, writes what is left. May be called twice."""
        if self._closed:
            return
        self._complete()
        if self._planted is not None and not self.problem:
            self._guard("removing the probes", self._planted.remove)
        self._closed = True
        self._close_recorder()

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- one step -----------------------------------------------------------------------------

    def _next_step(self) -> int:
        return self._drain_all.next_step()

    def _saw_batch(self, inputs: tuple[Any, ...]) -> None:
        """Counts what is in a batch: its first axis, and the tokens of its first table of ids."""
        shapes = [tuple(x.shape) for x in inputs if getattr(x, "shape", ())]
        samples = shapes[0][0] if shapes else None
        ids = (x.shape for x in inputs if len(getattr(x, "shape", ())) == 2 and _is_whole(x))
        shape = next(ids, None)
        self._batch = (samples, shape[0] * shape[1] if shape is not None else None)

    def _step(
        self, loss: Any, overflow: Any, loss_scale: Any, samples: int | None, tokens: int | None
    ) -> None:
        now = time.monotonic()
        drain, planted = self._drain_all, self._planted
        assert planted is not None
        step = drain.next_step()
        seconds = now - self._ended_at
        seen_samples, seen_tokens = self._batch
        self.steps_seen += 1
        drain.add(
            Call(
                self._first_step + self.steps_seen - 1, time.time(), seconds, self._wait_s,
                samples if samples is not None else seen_samples,
                tokens if tokens is not None else seen_tokens,
                loss, overflow, loss_scale,
            )
        )  # fmt: skip
        self._wait_s = None
        if overflow is not None:
            planted.ring.skip(overflow)
        self._keep_budget(step, seconds)
        if (step - 1) % HOST_STEPS == 0:
            self._write_host(step)
        waited = 0.0
        if self._must_drain(now):
            self._drain()
            waited = drain.read_s
        self._choose()
        self._act()
        self._ended_at = now
        self._host_s = max(0.0, time.monotonic() - now - waited)

    def _write_host(self, step: int) -> None:
        """What the host knows of a step without asking the device."""
        self._drain_all.take_memory(step)
        if self._options.causal is not None and self._recorder is not None:
            # Again and again: a rule judges a step when all of its series have come so far.
            self._recorder.add_scalars(step, {"model_causal": float(self._options.causal)})

    def _choose(self) -> None:
        """Chooses the variant of the next step where no training cell does it for us."""
        planted = self._planted
        if planted is not None and not planted.chooses_itself:
            planted.variants.choose()

    def _complete(self) -> None:
        """Brings all that was measured into the run, and tells which probes never ran."""
        self.drain()
        if self._planted is not None and not self.problem and not self._closed:
            harvest = self._drain_all.harvest
            self._guard("the last snapshot", lambda: self._snapshots.take(harvest.last_sampled))
            self._guard("telling which probes never ran", self._tell_silent_probes)
            self._guard("ending a profile", self._actions.profile.give_up)

    def _close_recorder(self) -> None:
        if self._recorder is not None:
            self._recorder.close()
            self._guard("answering requests", self._duties.exchange)

    def _must_drain(self, now: float) -> bool:
        return (
            self._drain_all.waiting >= self._planted_capacity() // 2
            or now - self._drained_at >= DRAIN_INTERVAL_S
            or self.steps_seen in EARLY_DRAINS
        )

    def _planted_capacity(self) -> int:
        assert self._planted is not None
        return self._planted.ring.capacity

    def _keep_budget(self, step: int, seconds: float) -> None:
        """Thins the dear measures out where they cost more than the user allows."""
        budget, planted = self._budget, self._planted
        assert planted is not None
        tier = planted.variants.chosen(step)
        if budget is None or tier is None or self.steps_seen < 3:  # compilation is no cost of ours
            return
        burst = planted.density.bursting(step)
        if budget.add(tier, seconds, self._host_s, burst=burst):
            planted.density.stretch(budget.factor, step + 1)
            share = budget.share
            self._note("budget", factor=budget.factor, share=share, allowed=budget.max_overhead)
            log.info(
                "dear measures now run on each %d-fold of their interval: the monitor took %s of "
                "the time, allowed is %.3g",
                budget.factor, "an unknown share" if share is None else f"{share:.3g}",
                budget.max_overhead,
            )  # fmt: skip

    def _act(self) -> None:
        """Does what the watcher asked for; if that goes wrong, nothing goes on between steps."""
        if not self._guard("what was asked for", self._duties.between):
            self._actions.give_up()
        self._stop_asked = self._stop_asked or self._actions.stop_asked

    def _boundary(self) -> int | None:
        """The next step, if the call that just ended, ended an optimizer step; else None.

        Where several calls make a step, or may do so, the counter on the device tells, and is
        waited for. This is asked only while there is something to do.
        """
        drain, planted = self._drain_all, self._planted
        assert planted is not None
        finished = drain.counter - self._first_step
        unseen = finished == 0 and self.steps_seen > EARLY_DRAINS[-1]
        if unseen or (finished > 0 and finished == drain.calls_until):  # a call is a step
            return drain.next_step()
        before, known = self._read_counter
        counter = planted.ring.step()
        self._read_counter = (counter, self.steps_seen)
        return counter if known == self.steps_seen - 1 and counter != before else None

    # -- draining -----------------------------------------------------------------------------

    def _drain(self) -> None:
        assert self._planted is not None
        self._drained_at = time.monotonic()
        self._drain_all()
        self._check_what_runs()
        self._snapshots.offer(self._drain_all.harvest.last_sampled)

    def _check_what_runs(self) -> None:
        """Finds out what MindSpore silently ignored, from what the first steps left behind."""
        planted, drain = self._planted, self._drain_all
        assert planted is not None
        if self.steps_seen >= 2 and drain.counter == self._first_step and not self._checked:
            self._tell_silent(
                [place for place in self.probes if place.kind == "optimizer"],
                "planted, but never ran: attach before the step is first compiled",
            )
        harvest = drain.harvest
        if harvest.unasked and not planted.chooses_itself and not planted.variants.fixed:
            # A jit function keeps the probes it was compiled with: swapping is then in vain.
            planted.variants.fixed = True
            planted.variants.set(planted.variants.count - 1)
        if drain.counter - self._first_step >= 2 and not self._checked:
            self._checked = True
            self._tell_silent_probes()

    def _tell_silent_probes(self) -> None:
        assert self._planted is not None
        sites = self._planted.sites
        if self.steps_seen:
            silent = [s.place for s in sites if not s.ran and s.place.kind != "clip"]
            self._tell_silent(silent, "planted, but the step never came by here")
            self.probes.clips(any(s.ran for s in sites if s.place.kind == "clip"))
        for place in self.probes:
            if place.state == "failed" and id(place) not in self._told:
                self._told.add(id(place))
                self._note_probe(place)
        self.probes.ran([site.place for site in sites if site.ran])

    def _tell_silent(self, places: Iterable[Any], reason: str) -> None:
        for place in places:
            if place.state == "planted":
                place.state, place.reason = "never ran", reason
                log.warning("the probe %s was %s", place.path, reason)
                self._note_probe(place)

    # -- telling ------------------------------------------------------------------------------

    def _note_probe(self, place: Any) -> None:
        self._note(
            "probe", path=place.path, what=place.kind, state=place.state, reason=place.reason
        )

    def _note_attached(self, optimizers: Sequence[Any]) -> None:
        found = attached(self._cells, optimizers, self._options.intervals(), self._flush_interval)
        self._note(ATTACHED_NOTE, **found)

    def _note(self, kind: str, **data: Any) -> None:
        if self._recorder is not None:
            self._recorder.note(kind, **data)

    def _failed(self, what: str, text: str) -> None:
        self._last_error = text
        self._note("monitor_error", what=what, error=text)

    def _give_up(self) -> None:
        self.problem = self._last_error
        log.error("MindPulse does not watch this training: %s", self.problem)
        if self._planted is not None:
            self._guard("removing the probes", self._planted.remove)
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None


def _is_whole(x: Any) -> bool:
    return "Int" in str(x.dtype)
