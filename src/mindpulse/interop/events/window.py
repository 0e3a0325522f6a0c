"""What a scan finds between two places of an event file."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from mindpulse.interop.events.layout import Group
from mindpulse.interop.events.values import Event
from mindpulse.interop.events.wire import signed_at


@dataclass(frozen=True, slots=True)
class Single:
    """A record that has to be decoded on its own."""

    offset: int
    data: bytes
    event: Event

    def time(self) -> tuple[int, float]:
        """Its step and wall time."""
        event, data = self.event, self.data
        step = 0 if event.step_at < 0 else signed_at(data, event.step_at, event.step_end)
        wall = 0.0 if event.wall_at < 0 else struct.unpack_from("<d", data, event.wall_at)[0]
        return step, float(wall)


@dataclass(slots=True)
class Window:
    """What stands between two places of a file.

    Attributes:
        end: where the next window begins.
        records: whole records, the useless ones too.
        groups: records of one layout each, in no order; their buffer is used again.
        singles: records to decode, in no order.
        damaged: where records with a wrong sum stand.
        odd: whole records that are no events, or too large, with the reason.
    """

    end: int
    records: int = 0
    groups: list[Group] = field(default_factory=list)
    singles: list[Single] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
