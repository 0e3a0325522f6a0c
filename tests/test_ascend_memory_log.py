"""Messages about memory, generation by generation, in the shape that real logs have."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindpulse.ascend.memory_event import MemoryEvent
from mindpulse.ascend.memory_log import MAX_LINE, memory_events, read_memory_log
from mindpulse.ascend.memory_patterns import size
from mindpulse.errors import StoreError

REAL = Path(__file__).parent.parent.parent / "shared" / "real"
real = pytest.mark.skipif(not REAL.is_dir(), reason="needs ../shared/real")
MIB, GIB = 1 << 20, 1 << 30

OLD = "Out of Memory!!! total[1000] (dynamic[100] memory poll[200]) malloc[600] failed!"
STATISTIC = """\
- Framework Error Message:
Out of Memory!!! Request memory size: 1088627200B, Memory Statistic:
Device HBM memory size: 32768M
MindSpore Used memory size: 30684M
MindSpore memory base address: 0x124140000000
Total Static Memory size: 30000M
Total Dynamic memory size: 100M
Dynamic memory size of this graph: 0M

Please try to reduce 'batch_size' or check whether exists extra large shape.
"""
DRYRUN = """\
Device MOC memory size: 65536M
MindSpore Used memory size: 59392M
MindSpore memory base address: 0xffffe9dc1407
Used peak memory usage (without fragments): 23716M
Actual peak memory usage (with fragments): 26244M
"""
COMMON = (
    "[MS_RUNTIME_PROF]Common mem pool info: Total allocated mem:3072M, peak used mem:2900M, in "
    "used mem:1072M, total use by event mem:0M, total idle mem:2000M. Block unit size:1024M, block "
    "counts:3, block[0] stream id:0 block size:1024M idle size:900M actual size: 1024M., block[1] "
    "stream id:0 block size:1024M idle size:600M actual size: 1024M., block[2] stream id:1 block "
    "size:1024M idle size:500M actual size: 1024M."
)
ALL_POOLS = (
    "[MS_RUNTIME_PROF]The dynamic memory pool total allocated mem:3072M, min addr :0, max addr: "
    "0x12, peak used mem:2000M, actual peak used mem:2500M, in used mem:1072M, total used by event "
    "mem:0M, total idle mem:2000M, total eager free mem:0M. Weight used size:0M, constant value "
    "used size:0M, kernel output used size:0M, other used size:0M."
)
DRIVER = """\
[EXCEPTION] DEVICE(17,fff,python):2021-09-13-15:29:07 [a.cc:62] MallocDeviceMemory] Malloc device \
memory failed, size[32212254720], ret[207001], Device 6 may be other processes occupying this \
card, check as: ps -ef|grep python
EE9999: Inner Error!
        [driver interface] halMemAlloc failed: device_id=6, size=32212254720, type=2, drvRetCode=6!
        DevMemAlloc huge page failed: deviceId=6, type=2, size=32212254720, retCode=117571606!
        rtMalloc execute failed, reason=[driver error:out of memory][FUNC:ReportError]
"""
GE = """\
ERROR 04-09 21:56:46 [e.py:82] [PID: 2] Memory_Allocation_Failure(EL0004): Failed to allocate memory
ERROR 04-09 21:56:46 [e.py:82]         Possible Cause: Available memory is insufficient.
ERROR 04-09 21:56:46 [e.py:82]  Call rtMalloc fail, purpose: page, size:3221291008, device_id:0
ERROR 04-09 21:56:46 [e.py:82]  Call rtMalloc fail, purpose: page, size:1610678272, device_id:0
"""
NPU = (
    "RuntimeError: NPU out of memory. Tried to allocate 3.50 GiB (NPU 2; 60.97 GiB total capacity; "
    "50.00 GiB already allocated; 50.00 GiB current active; 1.50 GiB free; {} GiB reserved in "
    "total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb"
)
CUDA = (
    "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a "
    "total capacity of 93.12 GiB of which 512.00 MiB is free. Including non-PyTorch memory, this "
    "process has 92.75 GiB memory in use. Of the allocated memory 87.50 GiB is allocated by "
    "PyTorch, and 2.50 GiB is reserved by PyTorch but unallocated."
)


def events(text: str) -> list[MemoryEvent]:
    return list(memory_events(text.splitlines(keepends=True)))


def only(text: str) -> MemoryEvent:
    found = events(text)
    assert len(found) == 1, found
    return found[0]


def test_mindspore_1() -> None:
    event = only(OLD)
    assert (event.writer, event.asked, event.total) == ("mindspore-1", 600, 1000)
    assert (event.reserved, event.free) == (300, 700)
    assert only(OLD.replace("malloc[600]", "malloc[800]")).cause == "full"
    assert only(OLD.replace("malloc[600]", "malloc[2000]")).cause == "too_large"
    assert only(OLD.replace("poll", "pool")).asked == 600


def test_mindspore_2_with_its_statistic() -> None:
    event = only("one\n" + STATISTIC)
    assert (event.writer, event.line, event.last_line) == ("mindspore-2", 3, 8)
    assert event.asked == 1088627200
    assert (event.total, event.limit) == (32768 * MIB, 30684 * MIB)
    assert (event.reserved, event.free) == (30100 * MIB, 584 * MIB)
    assert event.cause == "full"
    assert event.fragmentation is None
    assert only(STATISTIC.replace("30684M", "1024M")).cause == "too_large"


def test_mindspore_2_of_a_kernel_and_without_statistic() -> None:
    line = (
        "Device(id:3) memory isn't enough and alloc failed, kernel name: Mul-op1, alloc size: 64B."
    )
    event = only(line)
    assert (event.device, event.node, event.asked) == (3, "Mul-op1", 64)
    assert event.cause == "unknown"
    line = "Out of Memory. Request memory size: 900, device free size 400, Memory Statistic:"
    event = only(line)
    assert (event.asked, event.free, event.cause) == (900, 400, "full")


def test_peaks_at_the_end_of_a_run() -> None:
    event = only(DRYRUN)
    assert (event.kind, event.asked) == ("peak", None)
    assert (event.peak_used, event.peak_actual) == (23716 * MIB, 26244 * MIB)
    assert (event.total, event.limit) == (65536 * MIB, 59392 * MIB)
    assert event.basis == "peaks"
    assert event.fragmentation == pytest.approx((26244 - 23716) / 26244)
    same = only(DRYRUN.replace("26244M", "23716M"))
    assert same.fragmentation == 0.0
    less = only(DRYRUN.replace("26244M", "23700M"))  # both are rounded, so this is seen
    assert less.fragmentation == 0.0


def test_peaks_of_two_ranks_in_one_file_are_two() -> None:
    first, second = events(DRYRUN + DRYRUN.replace("26244M", "30000M"))
    assert (first.peak_actual, second.peak_actual) == (26244 * MIB, 30000 * MIB)
    assert (first.line, second.line) == (1, 6)


def test_the_state_of_a_pool() -> None:
    event = only(COMMON)
    assert (event.kind, event.reserved, event.used) == ("pool", 3072 * MIB, 1072 * MIB)
    assert event.idle == 2000 * MIB
    assert event.block_idle == (900 * MIB, 600 * MIB, 500 * MIB)
    assert event.basis == "pool_blocks"
    assert event.fragmentation == pytest.approx(1 - 900 / 2000)
    assert event.peak_used == 2900 * MIB


def test_the_state_of_all_pools() -> None:
    event = only(ALL_POOLS)
    assert (event.reserved, event.used, event.idle) == (3072 * MIB, 1072 * MIB, 2000 * MIB)
    assert (event.basis, event.fragmentation) == ("peaks", 0.2)
    line = "The dynamic memory pool total size is 8M, total used size is 6M, used peak size is 7M."
    event = only(line)
    assert (event.reserved, event.used, event.idle, event.peak_used) == (
        8 * MIB,
        6 * MIB,
        2 * MIB,
        7 * MIB,
    )


def test_layers_that_report_one_refusal_are_one_event() -> None:
    event = only(DRIVER)
    assert (event.writer, event.device, event.asks) == ("driver", 6, (32212254720,))
    assert (event.line, event.elsewhere, event.cause) == (1, True, "occupied")


def test_ge_with_two_sizes() -> None:
    event = only(GE)
    assert (event.writer, event.device, event.line) == ("ge", 0, 1)
    assert event.asks == (3221291008, 1610678272)
    assert event.cause == "unknown"


@pytest.mark.parametrize(
    ("reserved", "cause", "fragmentation"),
    [("50.25", "full", None), ("57.00", "fragmented", 0.5), ("53.00", "fragmented", None)],
)
def test_torch_npu(reserved: str, cause: str, fragmentation: float | None) -> None:
    event = only(NPU.format(reserved))
    assert (event.writer, event.device, event.asked) == ("torch-npu", 2, round(3.5 * GIB))
    assert event.total == round(60.97 * GIB)
    assert (event.used, event.free) == (50 * GIB, round(1.5 * GIB))
    assert event.reserved == round(float(reserved) * GIB)
    assert event.cause == cause
    assert event.fragmentation == fragmentation


def test_cuda_and_hip() -> None:
    for name in ("CUDA", "HIP"):
        event = only(CUDA.replace("CUDA", name))
        assert (event.writer, event.device, event.asked) == ("cuda", 3, 2 * GIB)
        assert (event.free, event.idle) == (512 * MIB, round(2.5 * GIB))
        assert event.reserved == round(90 * GIB)
        assert (event.cause, event.basis) == ("fragmented", "refused")
        assert event.fragmentation == pytest.approx(0.2)


def test_a_traceback_that_repeats_is_one_event_and_another_refusal_is_another() -> None:
    event = only(f"{CUDA}\nTraceback (most recent call last)\n{CUDA}")
    assert (event.line, event.last_line) == (1, 3)
    other = CUDA.replace("2.00 GiB. GPU", "4.00 GiB. GPU")
    assert [event.asked for event in events(f"{CUDA}\n{other}")] == [2 * GIB, 4 * GIB]
    far = CUDA + "\n" * 200 + CUDA
    assert [event.line for event in events(far)] == [1, 201]


@settings(max_examples=50, deadline=None)
@given(st.sampled_from([OLD, STATISTIC, DRYRUN, COMMON, DRIVER, GE, CUDA]), st.text(max_size=40))
def test_what_stands_before_a_line_does_not_matter(text: str, before: str) -> None:
    prefix = "".join(c for c in before if c.isalpha()) + " 12:00:01 [worker.py:9] "
    plain = events(text)
    wrapped = events("".join(prefix + line for line in text.splitlines(keepends=True)))
    assert plain == wrapped


SAMPLES = [OLD, STATISTIC, DRYRUN, COMMON, ALL_POOLS, DRIVER, GE, NPU.format("57"), CUDA]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(SAMPLES), max_size=4), st.data())
def test_no_damage_makes_it_fail(texts: list[str], data: st.DataObject) -> None:
    text = "\n".join(texts)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 60))
        text = (
            text[:at]
            + data.draw(st.sampled_from(["", "9" * 5000, "\0", "\n", "٣", "]["]))
            + text[at + length :]
        )
    for event in events(text):
        assert event.fragmentation is None or 0 <= event.fragmentation <= 1
        assert event.cause in ("fragmented", "full", "occupied", "too_large", "unknown")
        assert event.last_line >= event.line


def test_sizes() -> None:
    assert size("512") == 512
    assert size("1.5", "GiB") == size("1536", "M") == 1536 * MIB


def test_a_long_line_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "worker_0.log"
    path.write_bytes(
        b"\xff\xfe\x00" * 1000 + b"\n" + b"x" * (3 * MAX_LINE) + b"memory\n" + CUDA.encode()
    )
    (event,) = read_memory_log(path)
    assert (event.line, event.asked) == (3, 2 * GIB)
    with pytest.raises(StoreError, match="give a log file"):
        list(read_memory_log(tmp_path))


def test_nothing_is_found_where_nothing_is_said() -> None:
    lines = "epoch: 1 step: 2, loss is 3.0\nmemory_optimize_level: O0\nOut of memory? no\n"
    assert events(lines) == []


def test_an_event_that_tells_the_largest_piece() -> None:
    event = MemoryEvent("pool", "x", 1, idle=100, largest_free=40)
    assert (event.basis, event.fragmentation) == ("largest_free", 0.6)
    assert MemoryEvent("pool", "x", 1, idle=0, largest_free=0).fragmentation is None


@pytest.mark.parametrize("module", ["memory_event", "memory_patterns", "memory_log"])
def test_examples(module: str) -> None:
    assert doctest.testmod(importlib.import_module(f"mindpulse.ascend.{module}")).failed == 0


@real
@pytest.mark.parametrize(
    ("name", "asks", "cause"),
    [
        ("ms_logs/oom_EE9999_halMemAlloc_30GB.log", (32212254720,), "occupied"),
        ("ms_logs/oom_memory_statistic.log", (1088627200,), "too_large"),
        ("ms_logs/oom_ms_old_style_faq.txt", (32611480064,), "too_large"),
        ("ms_logs/oom_torch_npu_1987.txt", (round(3.47 * GIB),), "full"),
        ("ms_logs/plog_EL0004_ge_alloc_failure.log", (3221291008, 1610678272), "unknown"),
        ("other_logs/spam_llama_cuda_oom.log", (round(1.95 * GIB),), "fragmented"),
    ],
)
def test_real_refusals(name: str, asks: tuple[int, ...], cause: str) -> None:
    (event,) = read_memory_log(REAL / name)
    assert (event.kind, event.asks, event.cause) == ("out_of_memory", asks, cause)


@real
def test_real_values() -> None:
    (event,) = read_memory_log(REAL / "ms_logs/oom_memory_statistic.log")
    assert (event.total, event.limit) == (32768 * MIB, 1024 * MIB)
    (event,) = read_memory_log(REAL / "ms_logs/oom_ms_old_style_faq.txt")
    assert (event.total, event.reserved) == (3212254720, 524288000)
    (event,) = read_memory_log(REAL / "ms_logs/oom_torch_npu_1987.txt")
    assert (event.used, event.free) == (round(58.92 * GIB), round(1.66 * GIB))
    (event,) = read_memory_log(REAL / "ms_logs/oom_EE9999_halMemAlloc_30GB.log")
    assert event.device == 6
    (event,) = read_memory_log(REAL / "ms_logs/memstat_dryrun_nofrag.txt")
    assert (event.total, event.peak_used, event.peak_actual, event.fragmentation) == (
        62432 * MIB,
        48874 * MIB,
        48874 * MIB,
        0.0,
    )


@real
def test_real_logs_that_say_nothing_about_memory() -> None:
    for path in sorted((REAL / "ms_logs").iterdir()):
        if not path.name.startswith(("oom_", "memstat_", "plog_EL")):
            assert list(read_memory_log(path)) == [], path.name
