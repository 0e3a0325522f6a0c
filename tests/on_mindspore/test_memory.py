"""Memory figures: of this process, of a pool with known blocks, and none where none are known."""

from __future__ import annotations

import mmap
import os
import statistics
from collections.abc import Mapping
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindpulse.catalogue import MEASURES
from mindpulse.catalogue import memory as reference
from mindpulse.mindspore.memory import MemoryReader, device_bytes

FAMILY = {tag for tag, measure in MEASURES.items() if measure.family == "memory"}
NOWHERE = Path("/nowhere/statm")


class Pool:
    """A runtime whose memory consists of known blocks, in the order of their addresses."""

    def __init__(self, blocks: list[tuple[int, bool]], peak: int = 0) -> None:
        self.sizes = [size for size, _ in blocks]
        self.used = [used for _, used in blocks]
        self.peak = max(peak, int(reference.allocated(self.sizes, self.used)))

    def stats(self) -> dict[str, object]:
        allocated = sum(size for size, used in zip(self.sizes, self.used, strict=True) if used)
        return {
            "total_reserved_memory": sum(self.sizes),
            "total_allocated_memory": allocated,
            "total_idle_memory": sum(self.sizes) - allocated,
            "total_eager_free_memory": 0,
            "max_reserved_memory": sum(self.sizes),
            "max_allocated_memory": self.peak,
            "common_mem_pool_stats": {"block_unit_size": 1, "block_counts": 0, "blocks_info": {}},
        }

    def largest_free(self) -> float:
        return reference.largest_free(self.sizes, self.used)


@given(st.lists(st.tuples(st.integers(1, 2**36), st.booleans()), min_size=1, max_size=20))
def test_a_known_pool_is_read_as_the_references_say(blocks: list[tuple[int, bool]]) -> None:
    pool = Pool(blocks)
    found = MemoryReader(
        pool.stats, total=lambda: 2**40, largest_free=pool.largest_free, statm=NOWHERE
    ).read()
    free = reference.free(pool.sizes, pool.used)
    expected = {
        "memory_allocated": reference.allocated(pool.sizes, pool.used),
        "memory_reserved": reference.reserved(pool.sizes),
        "memory_total": reference.total(2**40),
        "memory_peak": float(pool.peak),
        "memory_free": free,
        "memory_largest_free": pool.largest_free(),
        "memory_contiguity": reference.contiguity(pool.largest_free(), free),
        "memory_fragmentation": reference.fragmentation(pool.largest_free(), free),
    }
    assert set(found) == FAMILY - {"host_memory_rss"}
    for tag, value in expected.items():
        np.testing.assert_equal(found[tag], value, tag)


def test_fragmentation_is_high_when_what_is_free_lies_in_pieces() -> None:
    whole = Pool([(100, True), (800, False), (100, True)])
    pieces = Pool([(100, False), (25, True)] * 8)
    read = [
        MemoryReader(pool.stats, largest_free=pool.largest_free).read() for pool in (whole, pieces)
    ]
    assert [found["memory_free"] for found in read] == [800, 800]
    assert [found["memory_fragmentation"] for found in read] == [0.0, 0.875]


@pytest.mark.parametrize("largest", [None, lambda: None])
def test_an_unknown_largest_piece_is_left_out(largest) -> None:
    pool = Pool([(10, True), (5, False)], 12)
    found = MemoryReader(pool.stats, total=lambda: 64, largest_free=largest).read()
    assert set(found) == FAMILY - {
        "memory_largest_free", "memory_contiguity", "memory_fragmentation"
    }  # fmt: skip
    assert found["memory_total"] == 64
    assert found["memory_peak"] == 12


@pytest.mark.parametrize(
    ("stats", "tags"),
    [
        ({}, set()),
        ({"total_reserved_memory": 0, "total_allocated_memory": 0}, set()),
        ({"total_reserved_memory": 8}, {"memory_reserved"}),
        (
            {"total_reserved_memory": 8, "total_allocated_memory": 2},
            {"memory_reserved", "memory_allocated", "memory_free"},
        ),
    ],
)
def test_what_a_runtime_does_not_tell_is_no_zero(stats: Mapping[str, int], tags: set[str]) -> None:
    assert set(MemoryReader(lambda: stats, total=lambda: None, statm=NOWHERE).read()) == tags


@pytest.mark.parametrize("error", [RuntimeError("no device"), TypeError(), AttributeError("x")])
def test_a_runtime_that_fails_is_asked_once(error: Exception) -> None:
    asked = []

    def fail() -> Mapping[str, int]:
        asked.append(1)
        raise error

    reader = MemoryReader(fail)
    assert [set(reader.read()) for _ in range(3)] == [{"host_memory_rss"}] * 3
    assert len(asked) == 1
    assert reader.problem.startswith(type(error).__name__)


def test_the_real_runtime_on_the_cpu_tells_the_process_only() -> None:
    reader = MemoryReader()
    assert ms.ops.ones((1000, 1000), ms.float32).sum().asnumpy() == 1e6
    assert set(reader.read()) == {"host_memory_rss"}
    assert reader.problem == ""
    assert device_bytes() is None


def test_resident_memory_is_what_the_system_says() -> None:
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("no /proc here")
    reader = MemoryReader()

    def off() -> float:
        return reader.read()["host_memory_rss"] - reference.resident(status.read_text())

    assert abs(statistics.median(off() for _ in range(9))) < 4 << 20
    size = 256 << 20
    before = reader.read()["host_memory_rss"]
    with mmap.mmap(-1, size) as block:
        assert abs(reader.read()["host_memory_rss"] - before) < size / 4  # not touched yet
        block[:: os.sysconf("SC_PAGE_SIZE")] = b"x" * (size // os.sysconf("SC_PAGE_SIZE"))
        assert reader.read()["host_memory_rss"] - before == pytest.approx(size, rel=0.25)
    assert abs(reader.read()["host_memory_rss"] - before) < size / 4


@pytest.mark.parametrize("content", ["", "12", "12 many", "no numbers at all"])
def test_a_strange_system_costs_only_the_resident_memory(tmp_path: Path, content: str) -> None:
    (tmp_path / "statm").write_text(content)
    found = MemoryReader(Pool([(8, True)]).stats, statm=tmp_path / "statm").read()
    assert "host_memory_rss" not in found
    assert found["memory_allocated"] == 8
    assert "host_memory_rss" not in MemoryReader(dict, statm=NOWHERE).read()
