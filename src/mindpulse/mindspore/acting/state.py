"""The state of a training in host memory: weights, moments, counters; copied and put back.

A copy is taken between two steps. `ops.assign` puts it back bit for bit in graph mode, under jit
and in PyNative (`set_data` is ignored by functions that were compiled before).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, ops
from numpy.typing import NDArray

from mindpulse.mindspore.acting.verb import RefusedError

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
SHARE_OF_HOST = 0.5  # of the memory that is free, for all copies together

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """The values of some Parameters at one moment."""

    values: tuple[tuple[Parameter, Array], ...]

    @property
    def finite(self) -> bool:
        """Whether no value is NaN or infinite."""
        return all(
            bool(np.isfinite(array).all())
            for _, array in self.values
            if np.issubdtype(array.dtype, np.floating)
        )

    def put_back(self, without: Iterable[Parameter] = ()) -> None:
        """Gives each Parameter its value back, bit for bit."""
        left_out = {id(parameter) for parameter in without}
        # All tensors first: what can fail for want of memory fails before anything is changed.
        tensors = [
            (parameter, _as_tensor(array, parameter))
            for parameter, array in self.values
            if id(parameter) not in left_out
        ]
        for parameter, tensor in tensors:
            ops.assign(parameter, tensor)


class TrainingState:
    """Everything that a step changes: of the model, its optimizers and its training cell.

    Args:
        cells: the model, the optimizers, the training cell; None is passed over.
        without: Parameters that only actions change.
    """

    def __init__(self, cells: Iterable[Any], without: Iterable[Parameter] = ()) -> None:
        self._cells = [cell for cell in cells if cell is not None]
        self._without = {id(parameter) for parameter in without}

    def parameters(self, without: Iterable[Parameter] = ()) -> list[Parameter]:
        """The Parameters, each once, in a fixed order."""
        left_out = self._without | {id(parameter) for parameter in without}
        found: dict[int, Parameter] = {}
        for cell in self._cells:
            for parameter in parameters_in(cell):
                if id(parameter) not in left_out:
                    found.setdefault(id(parameter), parameter)
        return list(found.values())

    def copy(self, without: Iterable[Parameter] = ()) -> Copies:
        """Reads all of it; waits for the device.

        Raises:
            RefusedError: the host has too little free memory.
        """
        parameters = self.parameters(without)
        check_room(sum(bytes_of(parameter) for parameter in parameters))
        return Copies(tuple((parameter, _as_array(parameter)) for parameter in parameters))

    @property
    def bytes(self) -> int:
        """What a copy takes."""
        return sum(bytes_of(parameter) for parameter in self.parameters())


def parameters_in(cell: Any) -> Iterator[Parameter]:
    """The Parameters of a cell and of the cells in it, also those in lists and in tuples."""
    for _, part in cell.cells_and_names():
        for value in list(vars(part).values()):
            yield from _flat(value)


def _flat(value: Any, depth: int = 0) -> Iterator[Parameter]:
    if isinstance(value, Parameter):
        yield value
    elif isinstance(value, dict) and depth < 3:
        for item in value.values():
            yield from _flat(item, depth + 1)
    elif isinstance(value, (list, tuple, ms.ParameterTuple)) and depth < 3:
        for item in value:
            yield from _flat(item, depth + 1)


def bytes_of(parameter: Parameter) -> int:
    """What the values of a Parameter take on the host."""
    return int(parameter.size) * (4 if parameter.dtype == ms.bfloat16 else parameter.itemsize)


def check_room(size: int, share: float = SHARE_OF_HOST) -> None:
    """Raises `RefusedError` where `size` bytes are more than a share of the free host memory."""
    free = host_free_bytes()
    if free is not None and size > share * free:
        raise RefusedError(
            f"a copy of the training's state takes {size / 1e6:.0f} MB, and of the host's memory "
            f"{free / 1e6:.0f} MB are free: at most {share:.0%} of that are used"
        )


def host_free_bytes(meminfo: Path = MEMINFO, cgroup: Path = CGROUP) -> int | None:
    """Host memory that this process may still take; None where the system does not tell it."""
    found = []
    try:
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError, IndexError):
        pass
    try:
        limit = (cgroup / "memory.max").read_text().strip()
        found.append(int(limit) - int((cgroup / "memory.current").read_text()))
    except (OSError, ValueError):  # "max": no limit
        pass
    return max(0, min(found)) if found else None


def _as_array(parameter: Parameter) -> Array:
    wide = parameter.astype(ms.float32) if parameter.dtype == ms.bfloat16 else parameter
    return np.array(wide.asnumpy(), copy=True)


def _as_tensor(array: Array, parameter: Parameter) -> Tensor:
    if parameter.dtype == ms.bfloat16:
        return Tensor(array, ms.float32).astype(ms.bfloat16)
    return Tensor(array, parameter.dtype)
