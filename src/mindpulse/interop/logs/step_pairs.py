"""Lines of `step loss` without a header, as torchtitan keeps its reference losses."""

from __future__ import annotations

import re
from pathlib import Path

from mindpulse.interop.aliases import TORCHTITAN
from mindpulse.interop.loaded import LoadedRun
from mindpulse.interop.logs.text_log import collected, read_log
from mindpulse.interop.numbers import NUMBER, number, step_text
from mindpulse.interop.source import Line

TITLE = "lines of step and loss"
_PAIR = re.compile(rf"\s*(\d{{1,19}})[ \t]+({NUMBER})\s*")


def sniff(head: bytes, path: Path) -> bool:
    """Whether the lines are pairs with steps that go up; at least two of them."""
    rows = [row for row in head.decode("utf-8", "replace").splitlines()[:-1] if row.strip()]
    pairs = [_PAIR.fullmatch(row) for row in rows]
    steps = [int(pair[1]) for pair in pairs if pair]
    return len(rows) >= 2 and len(steps) == len(rows) and steps == sorted(set(steps))


def read(path: Path) -> LoadedRun:
    """The run.

    Raises:
        StoreError: the file cannot be read.
        FormatError: there is no pair in it.
    """
    collector = collected(path, TORCHTITAN, "step-loss-pairs")

    def take(line: Line) -> None:
        pair = _PAIR.fullmatch(line.text)
        step = step_text(pair[1]) if pair else None
        value = number(pair[2]) if pair else None
        if step is not None and value is not None:
            collector.add(step, {"loss": value})
        elif line.text.strip() and line.whole:
            collector.refuse("lines", line.text)

    read_log(collector, take)
    return collector.finish()
