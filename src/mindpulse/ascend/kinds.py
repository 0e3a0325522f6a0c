"""What a CSV file of a profiler is: by its columns, never by its name alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from mindpulse.ascend.columns import Columns
from mindpulse.ascend.csv_file import CsvFile
from mindpulse.ascend.operators import Operators
from mindpulse.ascend.tables import (
    Blocks,
    CacheRates,
    Cores,
    DeviceBandwidth,
    Memory,
    OldSteps,
    Plain,
    Statistics,
    Steps,
)


class Table(Protocol):
    """What a kind of file is read into."""

    def read(self, file: CsvFile) -> None:
        """Adds the rows of a file."""


class KindOfFile(NamedTuple):
    """A kind of file.

    Attributes:
        needed: columns, by our names, that only this kind has together.
        make: an empty table for it.
    """

    name: str
    needed: tuple[str, ...]
    make: Callable[[], Table]


# In this order: what has more columns of its own comes first.
KINDS = (
    KindOfFile("kernel_details", ("name", "type", "core", "start time", "duration"), Operators),
    KindOfFile("kernel_details", ("name", "core", "start time", "duration"), Operators),
    KindOfFile("operator_memory", ("name", "size", "allocation time"), Blocks),
    KindOfFile("operator_details", ("name", "host self duration"), Plain),
    KindOfFile("memory_record", ("component", "timestamp", "total allocated"), Memory),
    KindOfFile("npu_module_mem", ("component", "timestamp", "total reserved"), Memory),
    KindOfFile("step_trace_time", ("step", "computing", "free", "stage"), Steps),
    KindOfFile("step_trace_raw", ("step_num", "start_point", "total"), OldSteps),
    KindOfFile("op_statistic", ("type", "core", "count", "total time"), Statistics),
    KindOfFile("api_statistic", ("level", "name", "time", "count"), Statistics),
    KindOfFile("l2_cache", ("hit rate", "victim rate", "name"), CacheRates),
    KindOfFile("L2Cache", ("block_id", "sub_block_id", "aic_write_cache_hit"), Cores),
    KindOfFile("Memory", ("block_id", "sub_block_id", "aic_main_mem_read_bw"), Cores),
    KindOfFile("bandwidth", ("metric", "read", "write"), DeviceBandwidth),
    KindOfFile("cpu_op_detail_info", ("op_side", "type", "total time"), Statistics),
    KindOfFile(
        "cpu_op_type_info",
        ("type", "count", "total time", "execution_frequency(per-step)"),
        Statistics,
    ),
    KindOfFile("aicore_intermediate_type", ("type", "total time", "count"), Statistics),
    KindOfFile("aicore_intermediate_detail", ("name", "total time", "count"), Statistics),
    KindOfFile("flops", ("name", "flops", "flops utilization"), Plain),
    KindOfFile("minddata_pipeline", ("op_id", "num_workers", "output_queue_size"), Plain),
    KindOfFile("cluster_analyse", ("computation_time", "communication_alone_time"), Plain),
    KindOfFile("cpu_memory", ("timestamp", "total allocated", "total reserved"), Memory),
)


def kind_of(file: CsvFile) -> KindOfFile | None:
    """The kind of an open file; None where its columns are no profiler's."""
    columns = Columns(file.header)
    return next((kind for kind in KINDS if columns.has(*kind.needed)), None)
