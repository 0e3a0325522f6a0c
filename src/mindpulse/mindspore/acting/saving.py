"""checkpoint and free_memory: what touches the disk and the device's pool."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms

from mindpulse.mindspore.acting.state import TrainingState
from mindpulse.mindspore.acting.verb import Args, Data, RefusedError
from mindpulse.store.folder import CHECKPOINTS

MOST_CHECKPOINTS = 3
ROOM = 1.2  # free space on the disk, in sizes of the checkpoint


class Checkpoint:
    """No arguments. Writes `checkpoints/step-000120.ckpt` in the folder of the rank.

    Args:
        state: what is written.
        folder: of the rank.
    """

    def __init__(self, state: TrainingState, folder: Path) -> None:
        self._state = state
        self._folder = folder / CHECKPOINTS

    def consider(self, args: Args) -> Data:
        """Refuses where the disk has too little room."""
        size, free = self._state.bytes, shutil.disk_usage(self._folder.parent).free
        if size * ROOM > free:
            raise RefusedError(
                f"a checkpoint takes {size / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free"
            )
        return {}

    def do(self, args: Args, step: int) -> tuple[str, Data]:
        """Writes the state before `step`, and takes the oldest of our checkpoints away."""
        self.consider(args)
        self._folder.mkdir(exist_ok=True)
        path = self._folder / f"step-{step:06d}.ckpt"
        by_name = {parameter.name: parameter for parameter in self._state.parameters()}
        saved = [{"name": name, "data": data} for name, data in by_name.items()]
        ms.save_checkpoint(saved, str(path))
        for old in sorted(self._folder.glob("step-*.ckpt"), key=_step_of)[:-MOST_CHECKPOINTS]:
            old.unlink(missing_ok=True)
        size = path.stat().st_size
        return f"{path} holds the state before step {step}, {size / 1e6:.1f} MB", {
            "bytes": float(size)
        }

    def undo(self, args: Args, data: Data) -> tuple[str, Data]:
        """Not possible, and not needed."""
        raise RefusedError("a checkpoint changes nothing that could be taken back")


def _step_of(path: Path) -> int:
    return int(path.stem.removeprefix("step-"))


class FreeMemory:
    """No arguments. Gives back what the device's pool holds and nobody uses.

    Args:
        device: tells the kind of device.
        empty: gives it back.
        stats: what the pool holds, as `mindspore.runtime.memory_stats` tells it.
    """

    def __init__(
        self,
        device: Callable[[], str] = lambda: str(ms.get_context("device_target")),
        empty: Callable[[], Any] | None = None,
        stats: Callable[[], Any] | None = None,
    ) -> None:
        self._device = device
        self._empty = empty or ms.runtime.empty_cache
        self._stats = stats or ms.runtime.memory_stats

    def consider(self, args: Args) -> Data:
        """Refuses on the CPU, which has no such pool."""
        device = self._device()
        if device != "Ascend":
            raise RefusedError(
                f"MindSpore frees cached memory on Ascend only (runtime.empty_cache); "
                f"this training runs on {device}"
            )
        return {}

    def do(self, args: Args, step: int) -> tuple[str, Data]:
        """Empties the cache; tells by how much the pool shrank."""
        self.consider(args)
        before = self._reserved()
        self._empty()
        after = self._reserved()
        told = {"reserved_before": before, "reserved_after": after}
        return f"the pool held {before / 1e6:.0f} MB, now {after / 1e6:.0f} MB", told

    def undo(self, args: Args, data: Data) -> tuple[str, Data]:
        """Not possible, and not needed."""
        raise RefusedError("the pool grows again by itself when memory is needed")

    def _reserved(self) -> float:
        return float(self._stats().get("total_reserved_memory", 0))
