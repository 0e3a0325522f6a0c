"""What one message about memory says, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["out_of_memory", "pool", "peak"]
Cause = Literal["fragmented", "full", "occupied", "too_large", "unknown"]
Basis = Literal["", "largest_free", "pool_blocks", "refused", "peaks"]


@dataclass(frozen=True, slots=True)
class MemoryEvent:
    """One message; None stands for what it does not say. All sizes are bytes.

    Attributes:
        kind: memory was refused, the state of a pool, or the peaks at the end of a run.
        writer: "mindspore-1", "mindspore-2", "driver", "ge", "torch-npu", "cuda", "mindspore-pool".
        line: number of its first line in the file, from 1.
        last_line: of its last.
        device: its number.
        asks: the sizes that were refused, in order, without repeats.
        total: of the device.
        limit: what the framework may use of it.
        reserved: what the framework's pool took from the device.
        used: of `reserved`, what holds something.
        idle: of `reserved`, what holds nothing: reserved - used.
        free: what the device had left for anybody; with a `limit`, what was left below it.
        largest_free: the largest piece of `idle` in one piece.
        block_idle: of each block of the pool, what holds nothing.
        peak_used, peak_actual: the highest use, without and with what lay between the pieces.
        elsewhere: whether the message blames another process.
        node: the operator that asked, "" if not told.
    """

    kind: Kind
    writer: str
    line: int
    last_line: int = 0
    device: int | None = None
    asks: tuple[int, ...] = ()
    total: int | None = None
    limit: int | None = None
    reserved: int | None = None
    used: int | None = None
    idle: int | None = None
    free: int | None = None
    largest_free: int | None = None
    block_idle: tuple[int, ...] = ()
    peak_used: int | None = None
    peak_actual: int | None = None
    elsewhere: bool = False
    node: str = ""

    @property
    def asked(self) -> int | None:
        """The first size that was refused."""
        return self.asks[0] if self.asks else None

    @property
    def cause(self) -> Cause:
        """Why memory was refused.

        "fragmented": less was asked for than lay idle in the pool. "full": more was asked for than
        was left at all. "too_large": more than the device or the framework ever has. "occupied":
        the message blames another process. "unknown": the message does not say how much was left.
        """
        if self.asked is None:
            return "unknown"
        most = min((x for x in (self.total, self.limit) if x is not None), default=None)
        if most is not None and self.asked > most:
            return "too_large"
        if self.idle is not None and self.asked <= self.idle:
            return "fragmented"
        if self.elsewhere:
            return "occupied"
        if self.idle is None and self.free is None:
            return "unknown"
        return "full" if self.asked > (self.idle or 0) + (self.free or 0) else "fragmented"

    @property
    def basis(self) -> Basis:
        """Out of what `fragmentation` is worked out; "" where it cannot be.

        "largest_free": 1 - largest free piece / all that is free. "pool_blocks": the same with the
        idle bytes of the pool's blocks, which may lie in pieces themselves, so it is at least that.
        "refused": 1 - refused size / idle bytes: every piece was smaller than what was refused, so
        it is more than that. "peaks": (peak with fragments - peak without) / peak with fragments.
        """
        if self.largest_free is not None and self.idle:
            return "largest_free"
        if sum(self.block_idle) > 0:
            return "pool_blocks"
        if self.asks and self.idle and min(self.asks) <= self.idle:
            return "refused"
        if self.peak_used is not None and self.peak_actual:
            return "peaks"
        return ""

    @property
    def fragmentation(self) -> float | None:
        """Share of the free memory that is not in its largest piece, 0 to 1; see `basis`."""
        if self.basis == "largest_free":
            return 1.0 - min(1.0, (self.largest_free or 0) / (self.idle or 1))
        if self.basis == "pool_blocks":
            return 1.0 - max(self.block_idle) / sum(self.block_idle)
        if self.basis == "refused":
            return 1.0 - min(self.asks) / (self.idle or 1)
        if self.basis == "peaks":
            peak = self.peak_actual or 1
            return max(0.0, (peak - (self.peak_used or 0)) / peak)
        return None
