"""Damage that could turn into a figure: a count without its partner, a share in per cent."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from click.testing import CliRunner

from mindpulse.ascend.json_files import MOST_BYTES
from mindpulse.ascend.profile import Profile, read_profile
from mindpulse.ascend.tables import Blocks, Memory
from mindpulse.cli import main

KERNEL = "Name,Type,Accelerator Core,Start Time(us),Duration(us)"
COUNTERS = ",aic_r0_read_cache_hit,aic_r0_read_cache_miss_allocate"
ROW = "fa,FlashAttentionScore,MIX_AIC,1736405443881410.320,10.0"
RECORD = "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Device"


def read(path: Path, *lines: str) -> Profile:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_profile(path)


@pytest.mark.parametrize("miss", ["####", "N/A", "", "-5"])
def test_hits_without_their_misses_do_not_count(miss: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel_details.csv"
    found = read(path, KERNEL + COUNTERS, f"{ROW},90,{miss}", f"{ROW},50,50")
    assert found.figures()["l2_hit_rate"] == 0.5


def test_a_row_that_ends_before_its_misses_is_no_rate(tmp_path: Path) -> None:
    found = read(tmp_path / "kernel_details.csv", KERNEL + COUNTERS, f"{ROW},90")
    assert found.l2_by_operator() == {}
    assert found.damaged == 1


def test_a_header_with_hits_alone_is_no_rate(tmp_path: Path) -> None:
    found = read(tmp_path / "a.csv", KERNEL + ",aic_r0_read_cache_hit", f"{ROW},90")
    assert "l2_hit_rate" not in found.figures()


def test_cores_without_misses_do_not_count(tmp_path: Path) -> None:
    header = "block_id,sub_block_id,aic_write_cache_hit,aic_write_cache_miss_allocate,"
    found = read(tmp_path / "L2Cache.csv", header, "0,cube0,90,NA,", "1,cube0,30,10,")
    assert found.figures()["l2_hit_rate"] == 0.75


def test_a_rate_in_per_cent_is_told_and_does_not_count(tmp_path: Path) -> None:
    header = "Stream Id,Task Id,Hit Rate,Victim Rate,Op Name"
    found = read(tmp_path / "l2_cache.csv", header, "1,1,0.1,0,a", "1,2,87.5,0,a", "1,3,0.5,0,a")
    assert found.l2_by_operator() == {"a": 0.5}
    assert found.files[0].problems == ("row 2: '87.5' is no share from 0 to 1; it does not count",)


@pytest.mark.parametrize("duration", ["1.73641E+15", "1e999"])
def test_durations_that_lost_their_digits_do_not_count(duration: str, tmp_path: Path) -> None:
    found = read(tmp_path / "a.csv", KERNEL, ROW.replace("10.0", duration), ROW)
    assert found.tables["kernel_details"].total_us == 10.0  # type: ignore[attr-defined]
    assert found.files[0].ruined == 1


def test_times_of_memory_that_lost_their_digits_are_told(tmp_path: Path) -> None:
    rows = ("PTA,1.73641E+15,1,2,NPU:0", "PTA,1736405443881410.320\t,1,2,NPU:0")
    found = read(tmp_path / "memory_record.csv", RECORD, *rows)
    assert found.files[0].ruined == 1
    assert [memory.times for memory in found.of(Memory)] == [1]


def test_more_allocated_than_reserved_is_no_share(tmp_path: Path) -> None:
    found = read(tmp_path / "memory_record.csv", RECORD, "PTA,1,5,2,NPU:0")
    assert "profile_memory_idle" not in found.figures()


def test_a_step_without_its_whole_is_left_out_of_the_share(tmp_path: Path) -> None:
    header = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage"
    found = read(tmp_path / "a.csv", header, "1,40,30,0,30,30,100", "2,40,30,0,30,30,#####")
    assert found.figures() == {"comm_not_overlapped_share": 0.3, "device_free_share": 0.3}


def test_blocks_whose_release_is_not_told_were_never_released(tmp_path: Path) -> None:
    header = "Name,Size(KB),Allocation Time(us),Release Time(us)"
    found = read(tmp_path / "a.csv", header, "a,1,1,N/A", "b,1,1,", "c,1,1,2")
    assert [blocks.never_released for blocks in found.of(Blocks)] == [2]


@pytest.mark.parametrize("header", ["\n" + KERNEL, KERNEL.replace("Name", '"Name\n"')])
def test_headers_after_an_empty_line_or_over_two(header: str, tmp_path: Path) -> None:
    assert read(tmp_path / "a.csv", header, ROW).files[0].rows == 1


def test_a_header_whose_quote_never_ends_is_told(tmp_path: Path) -> None:
    found = read(tmp_path / "a.csv", '"' + KERNEL, "x" * (17 << 20))
    assert found.files[0].kind == ""
    assert found.damaged == 1


@pytest.mark.parametrize(
    ("folder", "rank"), [("lowrank16", None), ("rank16b", None), ("rank_3", 3), ("a_rank0_b", 0)]
)
def test_ranks_in_names_of_folders(folder: str, rank: int | None, tmp_path: Path) -> None:
    assert read(tmp_path / folder / "kernel_details.csv", KERNEL, ROW).rank == rank


def test_the_rank_in_the_name_of_profiler_info(tmp_path: Path) -> None:
    path = tmp_path / "profiler_info_3.json"
    path.write_text(json.dumps({"config": {}, "end_info": {}}), encoding="utf-8")
    assert read_profile(tmp_path).rank == 3


def test_a_timeline_that_is_too_large_to_read_is_no_damage(tmp_path: Path) -> None:
    read(tmp_path / "kernel_details.csv", KERNEL, ROW)
    with (tmp_path / "trace_view.json").open("wb") as file:
        file.write(b"[")
        file.truncate(MOST_BYTES + 1)
    result = CliRunner().invoke(main, ["ascend", "show", str(tmp_path)])
    assert "MB of JSON are not read" in result.output
    assert result.exit_code == 0


def test_a_component_in_two_tables_keeps_both(tmp_path: Path) -> None:
    read(tmp_path / "memory_record.csv", RECORD, "APP,1,,9,NPU:0")
    header = "Component,Timestamp(us),Total Reserved(MB),Device"
    read(tmp_path / "npu_module_mem.csv", header, "APP,1,4,NPU:0")
    result = CliRunner().invoke(main, ["ascend", "show", str(tmp_path), "--json"])
    memory = json.loads(result.output)[0]["memory"]
    reserved = {kind: pools["APP"]["reserved"] for kind, pools in memory.items()}
    assert reserved == {"memory_record": 9 << 20, "npu_module_mem": 4 << 20}


def test_a_long_record_of_memory_streams_through(tmp_path: Path) -> None:
    rows = [f"PTA,{1736405443000000 + i}.5,1,2,NPU:0" for i in range(400_000)]
    path = tmp_path / "memory_record.csv"
    path.write_text("\n".join([RECORD, *rows]), encoding="utf-8")
    del rows
    tracemalloc.start()
    try:
        read_profile(path)
        assert tracemalloc.get_traced_memory()[1] < 30e6
    finally:
        tracemalloc.stop()
