"""`alerts.jsonl`: what the watcher said."""

from __future__ import annotations

from harness import REFUSED, file_with

from mindpulse.alerts.journal import read_alerts

SEED = (
    b'{"id":"a","rule":"loss-spike","state":"firing","severity":"warning","part":"loss","step":5,'
    b'"since_step":4,"wall_time":1.5,"rank":0,"attempt":1,"columns":["x"],"evidence":{"z":"inf"}}\n'
)


def seeds() -> list[bytes]:
    """An alert, and two lines that are none."""
    return [SEED, b'{"id": 1}\n[]\n' + SEED]


def one_input(data: bytes) -> None:
    """Lines that are no alert are left out."""
    path = file_with(data, "alerts", "alerts.jsonl")
    with REFUSED:
        assert isinstance(read_alerts(path.parent), list)
