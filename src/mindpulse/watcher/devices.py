"""Which chips a rank is on, and what they tell, as rows beside those of the training."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mindpulse.ascend.npu_smi import Chip, NpuSmi
from mindpulse.catalogue import MEASURES
from mindpulse.catalogue.hardware import alarm
from mindpulse.store.notes import END_NOTE
from mindpulse.store.reader import Chunk, Note
from mindpulse.watcher.beside import BESIDE, Beside
from mindpulse.watcher.sampler import Sample, Sampler

ATTACHED = "attached"
Alive = Callable[[int], bool]


@dataclass(slots=True)
class _Owner:
    """The process of a rank, as its note tells it.

    Attributes:
        device: which of the chips that it sees it uses; None where it does not say.
        step: the newest step that it wrote, -1 before the first.
        ended: it said that it came to an end.
    """

    attempt: int
    pid: int = -1
    host: str = ""
    device: int | None = None
    step: int = -1
    ended: bool = False


def chips_of(pid: int, device: int | None, smi: NpuSmi, alive: Alive) -> list[Chip]:
    """The chips that a process is on.

    By the table of processes. A container often sees none there, or such as are not its own: then
    by the number of the device that the training said it uses, among the chips in the table.

    Args:
        pid: of the training, on this host.
        alive: whether a process of that number can be seen here.
    """
    mine = {(p.npu, p.chip) for p in smi.processes if pid in (p.pid, *_nested(p.pid))}
    found = [chip for chip in smi.chips if (chip.npu, chip.chip) in mine]
    if found or any(alive(process.pid) for process in smi.processes):
        return found
    known = device is not None and 0 <= device < len(smi.chips) and alive(pid)
    return [smi.chips[device]] if known and device is not None else []


def _nested(pid: int) -> Iterator[int]:
    """The numbers of a process inside of containers, where its host runs them."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return
    for line in text.splitlines():
        if line.startswith("NSpid:"):
            yield from map(int, line.split()[2:])


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def label(chip: Chip) -> str:
    """The number that people know a chip by: that of the device, else of the NPU and its chip."""
    if chip.device is not None:
        return str(chip.device)
    return f"{chip.npu}.{chip.chip}" if chip.chip else str(chip.npu)


def values(chips: Sequence[Chip]) -> dict[str, list[float]]:
    """Tag -> a value for each chip; without those that no chip tells."""
    memory = [chip.hbm or chip.memory or (math.nan, math.nan) for chip in chips]
    told: dict[str, list[float]] = {
        "npu_utilization": [_or_nan(chip.ai_core) for chip in chips],
        "npu_memory_used": [float(used) for used, _ in memory],
        "npu_memory_total": [float(total) for _, total in memory],
        "npu_temperature": [_or_nan(chip.temperature_c) for chip in chips],
        "npu_power": [_or_nan(chip.power_w) for chip in chips],
        "npu_alarm": [alarm(chip.health) for chip in chips],
    }
    return {tag: row for tag, row in told.items() if not all(map(math.isnan, row))}


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


class Devices:
    """The chips of the ranks of one run.

    Args:
        sampler: None where nothing can be asked.
        beside: takes the rows.
        host: of the watcher: processes of others are not in its table.
    """

    def __init__(
        self,
        sampler: Sampler | None,
        beside: Beside,
        *,
        host: str | None = None,
        alive: Alive = _is_alive,
    ) -> None:
        self._sampler, self._beside, self._alive = sampler, beside, alive
        self._host = socket.gethostname() if host is None else host
        self._owners: dict[int, _Owner] = {}
        self._written: Sample | None = None

    def saw(self, found: Iterable[Chunk | Note]) -> None:
        """Takes in rows and notes as they are read."""
        if self._sampler is None:
            return
        for each in found:
            if isinstance(each, Chunk) and each.spec.tag in BESIDE:
                continue
            owner = self._owners.get(each.rank)
            if owner is None or owner.attempt < each.attempt:
                owner = self._owners[each.rank] = _Owner(each.attempt)
            if each.attempt < owner.attempt:
                continue
            if isinstance(each, Chunk):
                owner.step = int(each.rows.steps[-1])
            elif each.kind == ATTACHED:
                _tell(owner, each)
            elif each.kind == END_NOTE:
                owner.ended = True

    def look(self) -> None:
        """Writes what the newest sample tells, once."""
        sample = self._sampler.newest if self._sampler else None
        if sample is None or sample is self._written:
            return
        self._written = sample
        for rank, owner in self._owners.items():
            if owner.ended or owner.step < 0 or owner.pid < 0 or owner.host != self._host:
                continue
            chips = chips_of(owner.pid, owner.device, sample.smi, self._alive)
            columns = tuple((label(chip),) for chip in chips)
            for tag, row in values(chips).items():
                spec = MEASURES[tag].spec(columns)
                self._beside.add(rank, owner.attempt, spec, owner.step, sample.wall_time, row)


def _tell(owner: _Owner, note: Note) -> None:
    pid, host, device = (note.data.get(key) for key in ("pid", "host", "device"))
    owner.pid = pid if isinstance(pid, int) else -1
    owner.host = host if isinstance(host, str) else ""
    owner.device = device if isinstance(device, int) else None
