"""Writes tests/golden/v1: files that every later version must read.

Run it once for each new format version, in a folder of its own, and commit what it wrote:

    python tests/golden/make_v1.py tests/golden/v1
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from mindpulse.store.codec import RowCodec
from mindpulse.store.files import OS_FILES
from mindpulse.store.writer import RankWriter
from series_samples import FOCUS, LOAD, LOSS, odd_rows

START_TIME = 1_700_000_000.25


def write(folder: Path) -> None:
    """One file for each way of storing values, with steps and values at the edges."""
    writer = RankWriter(folder, rank=3, attempt=2, clock=lambda: START_TIME, files=OS_FILES)
    for spec in (LOSS, FOCUS, LOAD):
        writer.append(spec, odd_rows(spec))
        print(spec.tag, RowCodec(spec).row_bytes, "bytes a row")
    writer.close()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
