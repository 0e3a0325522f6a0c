"""Blocks given out and taken back again, one operation after the other: what the pool looked like.

Only blocks that are live at the moment are held, and a curve of a few hundred points.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from mindpulse.ascend.address_map import AddressMap
from mindpulse.ascend.memory_block import NEVER, Block, Problems, read_blocks

POINTS = 512  # of a curve
SHOWN = 5  # holders


@dataclass(frozen=True, slots=True)
class Moment:
    """A pool after one operation; sizes in bytes.

    Attributes:
        time: number of the operation.
        used: what live blocks take.
        known: addresses that the pool ever gave out until then.
        free: of them, what holds nothing.
        largest_free: the largest piece of `free`.
        pieces: how many pieces `free` is in.
    """

    time: int
    used: int = 0
    known: int = 0
    free: int = 0
    largest_free: int = 0
    pieces: int = 0

    @property
    def fragmentation(self) -> float:
        """1 - largest free piece / all that is free; 0 where nothing is free."""
        return 1.0 - self.largest_free / self.free if self.free else 0.0

    @property
    def stranded(self) -> int:
        """Free bytes that are not in the largest piece."""
        return self.free - self.largest_free


@dataclass(slots=True)
class PoolReplay:
    """What became of one pool.

    Attributes:
        pool: its kind, as the tracker names it.
        blocks: how many were given out.
        peak: the moment at which most was in use; `worst` the one at which most was stranded.
        end: the moment after the last operation.
        curve: moments in order, thinned out.
        holders: at the peak, bytes by who asked for them, the largest first.
        left: blocks that never came back and were not meant to stay, and their bytes.
        kept: bytes of those that were meant to stay.
        left_holders: of `left`, bytes by who asked.
        told_peak: the highest peak that the pool counted itself; None if the log has none.
        overwritten: blocks whose address was given out again before they came back.
    """

    pool: str
    blocks: int = 0
    peak: Moment = Moment(0)
    worst: Moment = Moment(0)
    end: Moment = Moment(0)
    curve: list[Moment] = field(default_factory=list)
    holders: list[tuple[str, int]] = field(default_factory=list)
    left: int = 0
    left_bytes: int = 0
    kept_bytes: int = 0
    left_holders: list[tuple[str, int]] = field(default_factory=list)
    told_peak: int | None = None
    overwritten: int = 0


@dataclass(frozen=True, slots=True)
class Replay:
    """All pools of a file, the one that used most first, and what could not be used."""

    pools: list[PoolReplay]
    problems: Problems


class _Pool:
    """The state of a pool while its blocks are replayed."""

    def __init__(self, name: str) -> None:
        self.found = PoolReplay(name)
        self._map = AddressMap()
        self._live: dict[int, Block] = {}
        self._ends: list[tuple[int, int, int]] = []
        self._used = 0
        self._every = 1
        self._operations = 0

    def give_out(self, block: Block) -> None:
        self.take_back(block.start)
        self._evict(block)
        self._live[block.address] = block
        if block.end != NEVER:
            heapq.heappush(self._ends, (block.end, block.address, block.line))
        self._map.take(block.address, block.address + block.size)
        self._used += block.size
        self.found.blocks += 1
        if block.peak is not None:
            self.found.told_peak = max(self.found.told_peak or 0, block.peak)
        self._saw(block.start)

    def take_back(self, until: int) -> None:
        """Everything that came back up to an operation."""
        while self._ends and self._ends[0][0] <= until:
            end, address, line = heapq.heappop(self._ends)
            block = self._live.get(address)
            if block is not None and block.line == line:
                self._drop(block)
                self._saw(end)

    def _evict(self, fresh: Block) -> None:
        """The tracker forgets a block whose address is given out again, as a new process may do."""
        end = fresh.address + fresh.size
        if self._map.overlaps(fresh.address, end):
            over = [
                block
                for block in self._live.values()
                if block.address < end and fresh.address < block.address + block.size
            ]
            for block in over:
                self._drop(block)
            self.found.overwritten += len(over)

    def _drop(self, block: Block) -> None:
        del self._live[block.address]
        self._map.give(block.address, block.address + block.size)
        self._used -= block.size

    def _saw(self, time: int) -> None:
        memory = self._map
        now = Moment(
            time, self._used, memory.known, memory.free, memory.largest_free, memory.pieces
        )
        found = self.found
        if now.used > found.peak.used:
            found.peak = now
        if now.stranded > found.worst.stranded:
            found.worst = now
        found.end = now
        if self._operations % self._every == 0:
            found.curve.append(now)
            if len(found.curve) > POINTS:
                del found.curve[1::2]
                self._every *= 2
        self._operations += 1

    def close(self) -> None:
        self.take_back(NEVER - 1)
        left = [block for block in self._live.values() if not block.kept]
        self.found.left, self.found.left_bytes = len(left), sum(block.size for block in left)
        self.found.kept_bytes = self._used - self.found.left_bytes
        self.found.left_holders = _holders(left)

    def holders(self) -> list[tuple[str, int]]:
        return _holders(self._live.values())


def _holders(blocks: Iterable[Block]) -> list[tuple[str, int]]:
    counted: Counter[str] = Counter()
    for block in blocks:
        counted[block.holder] += block.size
    return counted.most_common(SHOWN)


def replay(blocks: Iterable[Block]) -> list[PoolReplay]:
    """The pools after all blocks; `holders` is left empty, for which the peak has to be known.

    Args:
        blocks: in the order in which they were given out.
    """
    pools: dict[str, _Pool] = {}
    for block in blocks:
        pools.setdefault(block.pool, _Pool(block.pool)).give_out(block)
    for pool in pools.values():
        pool.close()
    return sorted((pool.found for pool in pools.values()), key=lambda found: -found.peak.used)


def replay_file(path: Path) -> Replay:
    """The pools of a `memory_block.csv`, read twice: the second time up to each pool's peak.

    Raises:
        FormatError: it is not such a file.
        StoreError: it cannot be read.
    """
    problems = Problems()
    pools = replay(read_blocks(path, problems))
    waiting = {found.pool: found for found in pools}
    states: dict[str, _Pool] = {}
    for block in read_blocks(path):
        found = waiting.get(block.pool)
        if found is None:
            continue
        state = states.setdefault(block.pool, _Pool(block.pool))
        state.give_out(block)
        if state.found.peak == found.peak:
            found.holders = state.holders()
            del waiting[block.pool]
            if not waiting:
                break
    return Replay(pools, problems)
