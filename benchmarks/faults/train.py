"""Trains one variant again and again in one process: compiled once, reset before each run."""

from __future__ import annotations

import math
import resource
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, ops

from benchmarks.faults.cells import AdamW, build, tell_apart
from benchmarks.faults.data import PAD, Batch, Source
from benchmarks.faults.models import Transformer, initial_weights
from benchmarks.faults.script import Script, Weights, held_out
from benchmarks.faults.settings import CONTROLS, HEALTHY, Variant
from mindpulse.mindspore import Monitor, attach

EVALUATION_BATCHES, FINAL_BATCHES = 4, 16
HALF_SCALE = 4096.0  # loss scale of the half-precision variant
# Of two networks in one graph, values from within one of them cannot be taken (docs).
RANK_MEASURES = ("loss", "gradient", "weight_norm", "memory")
WARM_STEPS = 12  # of the run that is thrown away: it compiles everything


@dataclass
class Outcome:
    """What came of a run.

    Attributes:
        final_loss: clean held-out loss at the end, in nats; NaN where it is none.
        step_time_s: mean time of the steps from the label on.
        rss_growth_bytes: how much the process grew from the label to the end.
        seconds: what the run took.
    """

    final_loss: float
    step_time_s: float
    rss_growth_bytes: float
    seconds: float
    steps: int
    losses: list[float] = field(default_factory=list)


class Training:
    """One variant, compiled; see `script.Live` for what a script may do to it.

    Args:
        variant: what to build.
        folder: takes the run that is thrown away.
    """

    def __init__(self, variant: Variant, folder: Path) -> None:
        ms.set_context(mode=ms.GRAPH_MODE)
        self.variant = variant
        networks, optimizers, self.cell = build(variant)
        self.networks: list[Transformer] = networks
        self.optimizers: list[AdamW] = optimizers
        self.cell.set_train()
        found = {id(p): p for p in (*self.cell.get_parameters(), *self._of_optimizers())}
        self.start = [(p, p.asnumpy().copy()) for p in found.values()]
        self.folder = self.idle = folder / "idle"
        self.monitors = [self._attach(rank, folder / "first") for rank in range(variant.ranks)]
        for rank in range(1, variant.ranks):
            tell_apart(networks[rank], optimizers[rank], rank)
        self.run(Script(variant, seed=0, steps=WARM_STEPS), folder / "warm")

    def _of_optimizers(self) -> list[Parameter]:
        return [p for optimizer in self.optimizers for p in optimizer.get_parameters()]

    def _attach(self, rank: int, folder: Path) -> Monitor:
        several = self.variant.ranks > 1
        return attach(
            self.networks[rank],
            self.optimizers[rank],
            summary_dir=folder,
            measures=RANK_MEASURES if several else "all",
            snapshot_every=0,
            pad_id=PAD if self.variant.kind == "encoder" else None,
            causal=self.variant.kind == "decoder",
            train_cell=None if several else self.cell,
            rank=rank,
        )

    # -- one run --------------------------------------------------------------------------------

    def run(self, script: Script, folder: Path) -> Outcome:
        """Trains as `script` says and records into `folder`, which is made anew."""
        began = time.monotonic()
        self.folder = folder
        for old in (folder, self.idle):
            shutil.rmtree(old, ignore_errors=True)
        self._reset(script)
        for monitor in self.monitors:
            monitor.restart(folder)
        losses, times, sizes = [], [], []
        for step in range(1, script.steps + 1):
            before = time.monotonic()
            losses.append(self._step(script, step))
            times.append(time.monotonic() - before)
            sizes.append(resident_bytes())
            if step % script.evaluate_every == 0:
                self._evaluate(script)
        for monitor in self.monitors:
            monitor.restart(self.idle)  # completes the run
            if monitor.problem:
                raise RuntimeError(f"{folder}: the monitor gave up: {monitor.problem}")
        for kept in self.held:
            kept.close()
        final = self.evaluate(held_out(self.variant.kind), {}, FINAL_BATCHES)
        since = min(script.label, script.steps) - 1
        return Outcome(
            final_loss=final,
            step_time_s=float(np.mean(times[since:])),
            rss_growth_bytes=float(sizes[-1] - sizes[since]),
            seconds=time.monotonic() - began,
            steps=script.steps // script.calls_per_step,
            losses=losses,
        )

    def _reset(self, script: Script) -> None:
        for parameter, value in self.start:
            assign(parameter, value)
        rng = np.random.default_rng((script.seed, 2))
        for network in self.networks:
            values = initial_weights(network, script.seed)
            for change in script.initial:
                values = {
                    name: change(plain_name(name), value, rng) for name, value in values.items()
                }
            for parameter in network.get_parameters():
                assign(parameter, values[parameter.name])
        self.controls = [{**HEALTHY, **script.controls} for _ in self.networks]
        if self.variant.half:
            for own in self.controls:
                own["loss_scale"] = script.controls.get("loss_scale", HALF_SCALE)
        self.wait_s, self.step_s = [0.0] * self.variant.ranks, 0.0
        self.overflowed = False
        self.held: list[Any] = []
        self.lost: set[int] = set()

    def _step(self, script: Script, step: int) -> float:
        for when, action in script.events:
            if when == step:
                action(self)
        for each in script.each:
            each(self, step)
        assert script.schedule is not None
        rate = script.schedule(step)
        inputs: list[Tensor] = []
        waits = []
        for rank, source in enumerate(script.sources):
            before = time.monotonic()
            batch = source(step - 1)
            if self.wait_s[rank] > 0:
                time.sleep(self.wait_s[rank])
            waits.append(time.monotonic() - before)
            inputs += tensors(batch, {**self.controls[rank], "rate": rate})
        first, second, *norms = self.cell(*inputs)
        value = float(first.asnumpy())
        self.overflowed = self.variant.half and float(second.asnumpy()) < 0.5
        if self.step_s > 0:
            time.sleep(self.step_s)
        for rank, monitor in enumerate(self.monitors):
            if rank in self.lost:
                continue
            monitor.waited(waits[rank])
            if self.variant.half:
                scale = self.controls[rank]["loss_scale"]
                monitor.step(first, overflow=self.overflowed, loss_scale=scale)
            elif self.variant.ranks > 1:
                monitor.step((first, second)[rank])
            else:
                monitor.step(first)
            if (
                not self.overflowed and self.controls[rank]["apply"] > 0.5
            ):  # as trainers log it: what the optimizer gets is clipped
                monitor.add_scalars({"grad_norm_unclipped": float(norms[rank].asnumpy())})
        return value

    # -- evaluation -----------------------------------------------------------------------------

    def _evaluate(self, script: Script) -> None:
        """As a user does it: with the model as it is, on data that was held out."""
        assert script.judged_on is not None
        kept = {name: self.controls[0][name] for name in ("positions", "residual", "output")}
        kept |= {name: self.controls[0][name] for name in CONTROLS if name.startswith("attention")}
        loss = self.evaluate(script.judged_on, kept, EVALUATION_BATCHES)
        for rank, monitor in enumerate(self.monitors):
            if rank not in self.lost:
                monitor.add_scalars({"eval_loss": loss})

    def evaluate(self, source: Source, controls: dict[str, float], batches: int) -> float:
        """Mean loss of the first rank's model over some batches, in nats, without penalties."""
        chosen = {**HEALTHY, **controls, "z_loss": 0.0, "balance": 0.0}
        with self.monitors[0].paused():
            found = [
                float(self.networks[0](*tensors(source(index), chosen)).asnumpy())
                for index in range(batches)
            ]
        mean = float(np.mean(found))
        return mean if math.isfinite(mean) else math.nan

    # -- what a script may do: see `script.Live` --------------------------------------------------

    def set(self, rank: int | None = None, **controls: float) -> None:
        """Changes controls of one rank, or of all, from now on."""
        unknown = set(controls) - set(CONTROLS)
        if unknown:
            raise KeyError(f"{', '.join(sorted(unknown))}: no control; there are {list(CONTROLS)}")
        for number, own in enumerate(self.controls):
            if rank in (None, number):
                own.update(controls)

    def edit(self, pattern: str, change: Callable[[Weights], Weights], rank: int = 0) -> None:
        """Changes the weights whose names match a glob."""
        for parameter in self._matching(rank, pattern):
            assign(parameter, change(parameter.asnumpy().copy()))

    def gate(self, pattern: str, value: float) -> None:
        """Multiplies the gradients of the weights whose names match; 0 cuts them."""
        self._assign_gates(self.cell.gradient_gates, pattern, value)

    def hold(self, pattern: str, value: float) -> None:
        """Multiplies the learning rate of the weights whose names match; 0 holds them."""
        for optimizer in self.optimizers:
            self._assign_gates(optimizer.gates, pattern, value)

    def forget_moments(self) -> None:
        """The optimizer as it was before the first step."""
        for parameter, value in self.start:
            if any(part in parameter.name for part in ("adam_m", "adam_v", "global_step")):
                assign(parameter, value)

    def resume(self, step: int) -> None:
        """As after an interruption: a new attempt that begins at a step."""
        for monitor in self.monitors:
            monitor.restart(self.folder, first_step=step)

    def lose(self, rank: int) -> None:
        """A rank writes nothing any more, and the others go on without it."""
        self.monitors[rank].restart(self.idle)
        self.lost.add(rank)
        self.set(reduce=0.0)

    def _matching(self, rank: int, pattern: str) -> list[Parameter]:
        found = [
            parameter
            for parameter in self.optimizers[rank].parameters
            if fnmatchcase(plain_name(parameter.name), pattern)
        ]
        if not found:
            raise KeyError(f"{pattern!r}: no weight of {self.variant.name} has such a name")
        return found

    def _assign_gates(self, gates: Parameter, pattern: str, value: float) -> None:
        wanted = {id(parameter) for parameter in self._matching(0, pattern)}
        values = gates.asnumpy().copy()
        for place, parameter in enumerate(self.optimizers[0].parameters):
            if id(parameter) in wanted:
                values[place] = value
        assign(gates, values)

    def close(self) -> None:
        """Ends the monitors."""
        for monitor in self.monitors:
            monitor.close()


def plain_name(name: str) -> str:
    """A weight's name without the rank in front."""
    return name.split(".", 1)[1] if name.startswith("rank") else name


def tensors(batch: Batch, controls: dict[str, float]) -> list[Tensor]:
    """The inputs of the network."""
    vector = np.array([controls[name] for name in CONTROLS], np.float32)
    return [Tensor(array) for array in (*batch.arrays, vector)]


def assign(parameter: Parameter, value: Any) -> None:
    """Writes through `ops.assign`: `set_data` is ignored by some compiled optimizers."""
    ops.assign(parameter, Tensor(np.asarray(value), parameter.dtype))


def resident_bytes() -> int:
    """Resident memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
