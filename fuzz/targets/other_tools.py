"""Text files of other tools: each reader, and the detection of what a file is."""

from __future__ import annotations

import sys
from pathlib import Path

from harness import REFUSED, file_with

from mindpulse.interop import open_run
from mindpulse.interop.detect import LOGS, WHOLE

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from interop_samples import SAMPLES

READERS = list({**WHOLE, **LOGS}.values())


def seeds() -> list[bytes]:
    """A file of each kind; the first byte chooses the reader, one above the last detects."""
    kinds = list({**WHOLE, **LOGS})
    return [bytes([n]) + SAMPLES[kind][1] for n, kind in enumerate(kinds)] + [
        bytes([len(kinds)]) + data for _, data in SAMPLES.values()
    ]


def one_input(data: bytes) -> None:
    """A run or a refusal; every series of a run can be read."""
    choice = data[0] % (len(READERS) + 1) if data else 0
    path = file_with(data[1:], "other_tools", "train.csv" if len(data) % 2 else "train.log")
    with REFUSED:
        run = open_run(path) if choice == len(READERS) else READERS[choice].read(path)
        for tag in run.specs():
            for rank in run.ranks:
                with REFUSED:
                    series = run.series(tag, rank)
                    assert series.rows.values.shape == (len(series), series.spec.width)
