"""profile: MindSpore's own profiler, for a window of steps, into the folder of the rank."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import mindspore as ms

from mindpulse.mindspore.acting.verb import Args, Data, RefusedError
from mindpulse.store.folder import PROFILES, profile_name

NEEDED_BYTES = 2 << 30  # on Ascend a step of a large model leaves tens of megabytes
# What the argument `metrics` stands for: one group of hardware counters at a time can be read.
METRICS = ("PipeUtilization", "L2Cache", "Memory")


class Profiler(Protocol):
    """What `mindspore.profiler.profile` gives."""

    def start(self) -> None:
        """Begins."""

    def step(self) -> None:
        """Marks the end of a step; after the last one what was seen is handed to analysis."""

    def stop(self) -> None:
        """Ends before the last step."""


def mindspore_profiler(folder: Path, steps: int, metrics: str) -> Profiler:
    """MindSpore's profiler for so many steps; a process of its own analyses what it wrote."""
    from mindspore import profiler

    on_ascend = ms.get_context("device_target") == "Ascend"
    activity = profiler.ProfilerActivity
    found: Profiler = profiler.profile(
        activities=[activity.CPU, activity.NPU] if on_ascend else [activity.CPU],
        profile_memory=True,
        hbm_ddr=on_ascend,
        start_profile=False,
        schedule=profiler.schedule(wait=0, warmup=0, active=steps, repeat=1),
        on_trace_ready=profiler.tensorboard_trace_handler(str(folder), async_mode=True),
        experimental_config=_of_ascend(metrics) if on_ascend else None,
    )
    return found


def _of_ascend(metrics: str) -> Any:
    from mindspore import profiler

    return profiler._ExperimentalConfig(
        profiler_level=profiler.ProfilerLevel.Level1,
        aic_metrics=profiler.AicoreMetrics[metrics],
        l2_cache=metrics == "L2Cache",
    )


def other_profiler_runs() -> bool:
    """Whether the training, or a tool in it, profiles already: there is only one profiler."""
    from mindspore.profiler.profiler_interface import ProfilerInterface

    return bool(ProfilerInterface.is_initialized)


class Profile:
    """Args: steps; rank, -1 for all; metrics, an index of METRICS.

    Args:
        folder: of the rank.
        rank: of this process.
        tell: writes a note of the run.
        make: makes the profiler.
        taken: whether another one is at work.

    Attributes:
        until: the step before which the window ends; None while nothing is profiled.
    """

    def __init__(
        self,
        folder: Path,
        rank: int,
        tell: Callable[..., object],
        make: Callable[[Path, int, str], Profiler] | None = None,
        taken: Callable[[], bool] | None = None,
    ) -> None:
        self.until: int | None = None
        self._folder, self._rank = folder, rank
        self._tell = tell
        self._make, self._taken = make or mindspore_profiler, taken or other_profiler_runs
        self._profiler: Profiler | None = None
        self._first = 0
        self._last_marked = 0

    def consider(self, args: Args) -> Data:
        """Refuses while a profiler is at work, and where the disk has too little room."""
        if self.until is not None:
            raise RefusedError(f"a profile is being taken until step {self.until - 1}")
        if self._taken():
            raise RefusedError("this training uses MindSpore's profiler itself, and there is one")
        free = shutil.disk_usage(self._folder).free
        if free < NEEDED_BYTES:
            raise RefusedError(
                f"{free / 1e9:.1f} GB are free; a profile may take {NEEDED_BYTES / 1e9:.0f} GB"
            )
        return {}

    def do(self, args: Args, step: int) -> tuple[str, Data]:
        """Profiles from `step` on."""
        if args["rank"] not in (-1.0, float(self._rank)):
            return f"rank {args['rank']:g} is profiled, not this one", {}
        self.consider(args)
        steps, metrics = int(args["steps"]), METRICS[int(args["metrics"])]
        place = self._folder / PROFILES / profile_name(step)
        place.mkdir(parents=True, exist_ok=True)
        self._profiler = self._make(place, steps, metrics)
        self._profiler.start()
        self._first, self.until, self._last_marked = step, step + steps, step
        return f"steps {step} to {self.until - 1} are profiled into {place}", {}

    def undo(self, args: Args, data: Data) -> tuple[str, Data]:
        """Not possible, and not needed."""
        raise RefusedError("a profile changes nothing that could be taken back")

    def step_ended(self, next_step: int) -> None:
        """Marks the steps that have ended; the last one ends the window."""
        if self._profiler is None or self.until is None:
            return
        while self._last_marked < min(next_step, self.until):
            self._last_marked += 1
            self._profiler.step()
        if next_step >= self.until:
            self._finish(self.until - 1)

    def give_up(self) -> None:
        """Ends the window now: the training ends, or something between its steps went wrong."""
        if self._profiler is None:
            return
        profiler, last = self._profiler, self._last_marked - 1
        self._finish(last)
        profiler.stop()

    def _finish(self, last: int) -> None:
        name = f"{PROFILES}/{profile_name(self._first)}"
        self._profiler, self.until = None, None
        self._tell("profile", step=self._first, last_step=last, folder=name)
