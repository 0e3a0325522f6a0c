"""The replay of the memory tracker's file, held to a slow one that marks every byte."""

from __future__ import annotations

import doctest
import importlib
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindpulse.ascend.address_map import Spans
from mindpulse.ascend.memory_block import (
    NEVER,
    Block,
    Problems,
    blocks_of,
    is_memory_block,
    read_blocks,
)
from mindpulse.ascend.memory_replay import POINTS, Moment, replay, replay_file
from mindpulse.errors import FormatError, StoreError

HEADER = (
    "start_time_stamp,end_time_stamp,device_addr,stream_id,pool_type,size,actual_used_memory,"
    "actual_peak_memory,file_name,line_num,type,producer_task,task_name,node_name,graph_name,"
    "user_tasks,last_user_task,python_stack,is_persistent,is_small,"
)
UNIT = 512


def row(
    start: int,
    end: int,
    address: int,
    size: int,
    node: str = "Add-op0",
    pool: str = "Common",
    peak: int = 0,
    kept: int = 0,
    stack: str = "",
) -> str:
    """A row as MindSpore writes it."""
    return (
        f"{start},{end},{address:#x},0,{pool},{size},{size},{peak},kernel.cc,12,KernelOutput,3,"
        f"task-{node},{node},kernel_graph_0,{{4-5}},5,{stack},{kept},0,"
    )


def written(path: Path, rows: list[str], header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def block(line: int, start: int, end: int, address: int, size: int, holder: str = "a") -> Block:
    return Block(line, start, end, address, size, "p", None, None, holder, False)


def simulated(seed: int, count: int, pages: int = 64) -> list[Block]:
    """Blocks of a first-fit pool: they never overlap while they live."""
    dice = random.Random(seed)
    taken = np.zeros(pages, bool)
    live: list[tuple[int, int, int, int]] = []  # index, start, address, size
    blocks: list[Block | None] = []
    time = 0
    while len(blocks) < count:
        time += 1
        if live and dice.random() < 0.45:
            index, start, at, size = live.pop(dice.randrange(len(live)))
            taken[at : at + size] = False
            blocks[index] = block(index + 2, start, time, at * UNIT, size * UNIT, f"op{index % 7}")
            continue
        size = dice.randint(1, 9)
        places = [at for at in range(pages - size + 1) if not taken[at : at + size].any()]
        if not places:
            size = 0
        else:
            taken[places[0] : places[0] + size] = True
            live.append((len(blocks), time, places[0], size))
            blocks.append(None)
    for index, start, at, size in live:
        blocks[index] = block(index + 2, start, NEVER, at * UNIT, size * UNIT, f"op{index % 7}")
    return [found for found in blocks if found is not None]


def runs(mask: np.ndarray) -> list[int]:
    """Lengths of the runs of true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return list(edges[1::2] - edges[::2])


def slow(blocks: list[Block]) -> list[Moment]:
    """Every operation in order, with one cell for each unit of memory."""
    top = max(found.address + found.size for found in blocks) // UNIT
    known, owner = np.zeros(top, bool), np.full(top, -1)
    operations = [(found.start, 1, found) for found in blocks]
    operations += [(found.end, 0, found) for found in blocks if found.end != NEVER]
    moments = []
    for time, gives, found in sorted(operations, key=lambda item: (item[0], item[1])):
        cells = slice(found.address // UNIT, (found.address + found.size) // UNIT)
        if gives:
            for old in set(owner[cells]) - {-1}:
                owner[owner == old] = -1
            owner[cells] = found.line
            known[cells] = True
        elif (owner == found.line).any():
            owner[owner == found.line] = -1
        else:
            continue  # its address was given out again before
        free = runs(known & (owner == -1))
        used = int((owner != -1).sum()) * UNIT
        moments.append(
            Moment(
                time,
                used,
                int(known.sum()) * UNIT,
                sum(free) * UNIT,
                max(free, default=0) * UNIT,
                len(free),
            )
        )
    return moments


def compared(blocks: list[Block]) -> None:
    expected = slow(blocks)
    (found,) = replay(blocks)
    assert found.peak == next(m for m in expected if m.used == max(x.used for x in expected))
    most = max(m.stranded for m in expected)
    if most:
        assert found.worst == next(m for m in expected if m.stranded == most)
    assert found.end == expected[-1]
    if len(expected) <= POINTS:
        assert found.curve == expected


@pytest.mark.parametrize("seed", range(12))
def test_the_replay_is_what_marking_every_byte_gives(seed: int) -> None:
    compared(simulated(seed, 150))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 24), st.integers(1, 8), st.integers(0, 30)),
        min_size=1,
        max_size=40,
    )
)
def test_also_where_addresses_are_given_out_twice(rows: list[tuple[int, int, int]]) -> None:
    """The tracker forgets a block whose address is given out again; ends fall between starts."""
    blocks = []
    for index, (address, size, life) in enumerate(rows):
        end = NEVER if life == 30 else 10 * index + 10 * life + 5
        blocks.append(block(index + 2, 10 * index, end, address * UNIT, size * UNIT))
    expected = slow(blocks)
    (found,) = replay(blocks)
    # Several blocks may come back in one operation here; the order among them says nothing.
    assert found.end.used == expected[-1].used
    assert found.end.known == expected[-1].known
    assert found.end.free == expected[-1].free
    assert found.end.largest_free == expected[-1].largest_free
    assert found.peak.used == max(m.used for m in expected)


def test_a_long_curve_is_thinned_and_keeps_its_order() -> None:
    blocks = simulated(3, 3000)
    (found,) = replay(blocks)
    times = [moment.time for moment in found.curve]
    assert 200 <= len(times) <= POINTS
    assert times == sorted(times)
    by_time = {moment.time: moment for moment in slow(blocks)}
    assert all(by_time[moment.time] == moment for moment in found.curve)


def test_a_file_with_everything(tmp_path: Path) -> None:
    rows = [
        row(1, NEVER, 0x1000, 1024, "Weight", kept=1),
        row(2, 5, 0x1400, 512, "Mul", stack="a.py:1, in f,b.py:2"),
        row(3, NEVER, 0x1600, 2048, "Cast", peak=7000),
        row(4, 6, 0x1E00, 512, "Mul"),
        row(7, 8, 0x9000, 256, "Send", pool="Persistent"),
        "9,x,0x1,0,Common,1,,,,,,,,,,,,,0,0,",
        "9,8,0x1,0,Common,1,,,,,,,,,,,,,0,0,",
        "9,10",
        "",
    ]
    found = replay_file(written(tmp_path / "memory_block.csv", rows))
    assert found.problems.rows == 3
    assert found.problems.first.startswith("line 7: ValueError")
    common, persistent = found.pools
    assert (common.pool, common.blocks, persistent.blocks) == ("Common", 4, 1)
    assert common.peak == Moment(4, 4096, 4096, 0, 0, 0)
    assert common.holders == [("Cast", 2048), ("Weight", 1024), ("Mul", 1024)]
    assert common.end == Moment(6, 3072, 4096, 1024, 512, 2)
    assert common.end.fragmentation == 0.5
    assert (common.left, common.left_bytes, common.kept_bytes) == (1, 2048, 1024)
    assert common.left_holders == [("Cast", 2048)]
    assert common.told_peak == 7000
    assert persistent.holders == [("Send", 256)]


@pytest.mark.parametrize("seed", range(4))
def test_who_held_the_most_at_the_peak(tmp_path: Path, seed: int) -> None:
    blocks = simulated(seed, 120)
    rows = [row(b.start, b.end, b.address, b.size, b.holder) for b in blocks]
    (found,) = replay_file(written(tmp_path / "memory_block.csv", rows)).pools
    counted: Counter[str] = Counter()
    for one in blocks:
        if one.start <= found.peak.time < one.end:
            counted[one.holder] += one.size
    assert sum(counted.values()) == found.peak.used
    assert found.holders == counted.most_common(5)


def test_older_headers_and_a_stack_with_commas() -> None:
    header = "start_time_stamp,end_time_stamp,device_addr,pool_type,size,type,"
    (old,) = blocks_of(header, ["1,2,0x200,dynamic,512,KernelOutput,\n"])
    assert (old.holder, old.pool, old.peak, old.kept) == ("KernelOutput", "dynamic", None, False)
    (new,) = blocks_of(HEADER, [row(1, 2, 512, 512, stack="f(a, b),g(c)", kept=1)])
    assert (new.kept, new.holder, new.address) == (True, "Add-op0", 512)


def test_what_is_no_such_file(tmp_path: Path) -> None:
    path = written(tmp_path / "memory_block.csv", [])
    assert is_memory_block(path)
    assert replay_file(path).pools == []
    other = written(tmp_path / "other.csv", ["1,2"], "step,loss")
    assert not is_memory_block(other)
    with pytest.raises(FormatError, match="memory_tracker:True"):
        replay_file(other)
    with pytest.raises(StoreError, match="readable"):
        list(read_blocks(tmp_path / "missing"))
    assert not is_memory_block(tmp_path)


def test_a_file_that_was_cut_never_gives_a_wrong_block(tmp_path: Path) -> None:
    whole = "\n".join([HEADER, row(1, 2, 512, 512), row(3, 922, 1024, 4096)])
    path = tmp_path / "memory_block.csv"
    begin = len(HEADER) + len(row(1, 2, 512, 512)) + 2
    for length in range(begin, len(whole)):
        path.write_text(whole[:length])
        problems = Problems()
        found = [(b.start, b.end, b.size) for b in read_blocks(path, problems)]
        assert found[0] == (1, 2, 512)
        assert found[1:] in ([], [(3, 922, 4096)])
        assert problems.rows == (1 if len(found) == 1 and length > begin else 0)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40), st.integers(1, 12)), max_size=40))
def test_spans(changes: list[tuple[bool, int, int]]) -> None:
    spans, cells = Spans(), np.zeros(60, bool)
    for put, start, length in changes:
        if put:
            spans.add(start, start + length)
        else:
            spans.remove(start, start + length)
        cells[start : start + length] = put
        expected = runs(cells)
        assert spans.total == cells.sum()
        assert spans.largest == max(expected, default=0)
        assert [end - begin for begin, end in spans] == expected
        assert spans.inside(5, 25) == cells[5:25].sum()


@pytest.mark.parametrize("module", ["address_map", "memory_block", "memory_replay"])
def test_examples(module: str) -> None:
    assert doctest.testmod(importlib.import_module(f"mindpulse.ascend.{module}")).failed == 0
