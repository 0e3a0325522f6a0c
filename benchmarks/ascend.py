"""How fast a long kernel_details.csv is read, and how much memory that takes.

    python benchmarks/ascend.py [--quick] [--json FILE]

The file has the 47 columns of CANN 8.3 and as many rows as make 300 MB (30 MB with --quick).
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
import time
from pathlib import Path

from mindpulse.ascend.profile import read_profile

COLUMNS = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,"
    "Start Time(us),Duration(us),Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,"
    "Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,Context ID"
)
COUNTERS = [f"aic_counter_{number}(us)" for number in range(24)] + ["cube_utilization(%)"]
ROW = (
    "13,0,4294967295,{n},2,aclnnMatmul_{n},{kind},dynamic,AI_CORE,17642468770{n:08d}.640\t,48.680,"
    '1.08,40,0,NO,"""151936,1024;1,4096;1""",DT_BF16;INT64,ND;ND,"""1,4096,1024""",DT_BF16,ND,N/A'
)
KINDS = ("MatMulV3", "FlashAttentionScore", "Cast", "Add", "ReduceMean", "Mul")


def write(path: Path, size: int) -> int:
    """Writes about so many bytes; returns the number of rows."""
    numbers = ",".join(["1883.842"] * len(COUNTERS))
    rows = 0
    with path.open("w") as file:
        file.write(f"{COLUMNS},{','.join(COUNTERS)}\n")
        while file.tell() < size:
            lines = [
                f"{ROW.format(n=rows + i, kind=KINDS[i % len(KINDS)])},{numbers}\n"
                for i in range(1000)
            ]
            file.write("".join(lines))
            rows += len(lines)
    return rows


def main() -> None:
    """Reads the file a few times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    size, turns = (30_000_000, 2) if options.quick else (300_000_000, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel_details.csv"
        rows = write(path, size)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = []
        for _ in range(turns):
            start = time.perf_counter()
            assert read_profile(path).files[0].rows == rows
            seconds.append(time.perf_counter() - start)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        megabytes = path.stat().st_size / 1e6
    median = statistics.median(seconds)
    print(f"{megabytes:.0f} MB, {rows:,} rows: {median:.1f} s, {megabytes / median:.0f} MB/s")
    print(f"memory beside the file: {grown / 1024:.1f} MB more at the most")
    if options.json:
        found = {"mb": megabytes, "rows": rows, "seconds": seconds, "grown_mb": grown / 1024}
        options.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
