"""Profiles in every variant, whole and damaged, written by the tests themselves."""

from __future__ import annotations

import json
import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindpulse.ascend.columns import Columns, canonical
from mindpulse.ascend.csv_file import CsvFile, digits_lost
from mindpulse.ascend.operators import Operators
from mindpulse.ascend.profile import profiles_below, read_profile
from mindpulse.ascend.tables import CacheRates, DeviceBandwidth, Memory, Steps
from mindpulse.cli import main
from mindpulse.errors import FormatError, MindPulseError, StoreError, UsageError

COUNTERS = (
    "write_cache_hit", "write_cache_miss_allocate", "r0_read_cache_hit",
    "r0_read_cache_miss_allocate", "r1_read_cache_hit", "r1_read_cache_miss_allocate",
)  # fmt: skip
RUNS = "Name,Type,Accelerator Core,Start Time(us),Duration(us)"
KERNELS = (
    f"{RUNS}\n"
    "a,MatMulV3,AI_CORE,1736405443881410.320\t,10.5\n"
    "b,Cast,AI_VECTOR_CORE,1736405443881420.820\t,2\n"
    "c,Cast,AI_VECTOR_CORE,1736405443881430.001\t,3\n"
)


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def operators(path: Path) -> Operators:
    (found,) = read_profile(path).of(Operators)
    return found


def show(path: Path, *words: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["ascend", "show", str(path), *words])
    assert result.exit_code == code, result.output
    return result.output


TIME = "1736405443881410.320\t"
HEADERS = [
    RUNS,
    "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim",
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,"
    "Start Time(us),Duration(us),Wait Time(us),Block Num,Mix Block Num",
    "Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,"
    "Task Start Time(us),Task Duration(us),Task Wait Time(us),Block Num",
    "Model Name,Model ID,Infer ID,Op Name,OP Type,Task Type,Task Start Time,Task Duration(us)",
    " Op Name , OP Type, Task Type, Task Start Time(us), Task Duration(ms)",
    "Name,Accelerator Core,Start Time(us),Duration(us),Something New(furlong)",
]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("time", [TIME, f'"{TIME}"', "1736405443881410"])
def test_every_header_is_understood(header: str, time: str, tmp_path: Path) -> None:
    names = [canonical(name)[0] for name in header.split(",")]
    factor = 1000.0 if "(ms)" in header else 1.0
    cells = {"name": "n", "type": "T", "core": "AI_CORE", "start time": time, "duration": "2.5"}
    row = ",".join(cells.get(name, "7") for name in names)
    found = operators(write(tmp_path / "x.csv", f"{header}\n{row}\n"))
    assert found.total_us == 2.5 * factor
    assert list(found.kinds) == ["T" if "type" in names else "N/A"]
    assert found.first_ns == 1736405443881410000 + (320 if "." in time else 0)


def test_units_in_brackets() -> None:
    columns = Columns(["Total Reserved(KB)", "Size(MB)", "Read(MB/s)", "Task Start Time(ns)"])
    assert [columns.factor[n] for n in columns.names] == [1024.0, 1024.0**2, 1e6, 1e-3]
    assert canonical("L1_to_GM_datas(KB)(estimate)")[1] == 1024.0
    assert canonical("execution_frequency(per-step)") == ("execution_frequency(per-step)", 1.0)


def test_times_keep_their_nanoseconds(tmp_path: Path) -> None:
    found = operators(write(tmp_path / "k.csv", KERNELS))
    assert found.first_ns == 1736405443881410320
    assert found.last_ns == 1736405443881430001


@pytest.mark.parametrize(
    ("change", "damaged", "ruined", "total", "told"),
    [
        (lambda t: t.replace("b,", "b,x,y,"), 1, 0, 13.5, "line 3: 7 fields instead of 5"),
        (lambda t: t.replace(",2\n", "\n"), 1, 0, 13.5, "line 3: 4 fields instead of 5"),
        (lambda t: t.replace(",2\n", ',"1,234.5"\n'), 0, 1, 13.5, "'1,234.5' is no number"),
        (lambda t: t.replace(",2\n", ',"2,5"\n'), 0, 1, 13.5, "'2,5' is no number"),
        (lambda t: t.replace(",2\n", ",#####\n"), 0, 1, 13.5, "'#####' is no number"),
        (lambda t: t.replace(",2\n", ",2025-01-09\n"), 0, 1, 13.5, "'2025-01-09' is no number"),
        (lambda t: t.replace(",2\n", ",N/A\n"), 0, 0, 13.5, ""),
        (lambda t: t.replace("1736405443881420.820\t", "1.73641E+15"), 0, 1, 15.5, "lost digits"),
        (lambda t: t.replace("\n", ",\n"), 0, 0, 15.5, ""),
        (lambda t: t.replace("\n", "\r\n"), 0, 0, 15.5, ""),
        (lambda t: "\ufeff" + t, 0, 0, 15.5, ""),
        (lambda t: t.replace(",", ";"), 0, 0, 15.5, ""),
        (lambda t: t.replace("\t", "").replace(",", "\t"), 0, 0, 15.5, ""),
        (lambda t: t.encode("utf-16"), 0, 0, 15.5, ""),
        (lambda t: t.replace("b,", '"b\nwith a line",'), 0, 0, 15.5, ""),
        (lambda t: t.replace("b,", "b\0\0,"), 0, 0, 15.5, ""),
        (lambda t: t + "\n\n", 0, 0, 15.5, ""),
    ],
)  # fmt: skip
def test_damage_is_counted_and_the_rest_counts(
    change: Any, damaged: int, ruined: int, total: float, told: str, tmp_path: Path
) -> None:
    profile = read_profile(write(tmp_path / "k.csv", change(KERNELS)))
    (file,) = profile.files
    (found,) = profile.of(Operators)
    assert (file.damaged, file.ruined) == (damaged, ruined), file.problems
    assert found.total_us == pytest.approx(total)
    assert told in " ".join(file.problems)
    if damaged or ruined:
        show(tmp_path / "k.csv", code=1)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "empty file"),
        (b"  \n", "empty file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git lfs pull"),
        (b"\0\1\2\0\0\0\0\0\0" * 9, "binary data"),
        (b",,,\n1,2,3\n", "names no column"),
    ],
)
def test_files_that_are_none(content: bytes, told: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=told):
        CsvFile(write(tmp_path / "x.csv", content))
    assert told in " ".join(read_profile(tmp_path / "x.csv").files[0].problems)


def test_a_header_alone_is_no_row(tmp_path: Path) -> None:
    profile = read_profile(write(tmp_path / "k.csv", KERNELS.splitlines()[0] + "\n"))
    assert (profile.files[0].kind, profile.files[0].rows) == ("kernel_details", 0)
    assert profile.figures() == {}


def test_numbers_that_lost_their_digits() -> None:
    assert digits_lost("1.73641E+15")
    assert not digits_lost("1e-3")


def l2_file(path: Path, prefix: str = "aic_") -> tuple[Path, Any, list[str]]:
    """kernel_details with counters; the counters, and the type of each row."""
    rng = np.random.default_rng(3)
    kinds = ["FlashAttentionScore", "MatMulV3", "FlashAttentionScoreGrad", "FlashAttentionScore"]
    counts = rng.integers(0, 1000, (len(kinds), 2 * len(COUNTERS)))
    names = [f"{p}{c}" for p in (prefix, "aiv_") for c in COUNTERS]
    lines = [",".join(["Name,Type,Accelerator Core,Start Time(us),Duration(us)", *names])]
    for index, kind in enumerate(kinds):
        numbers = ",".join(map(str, counts[index]))
        lines.append(f"op{index},{kind},MIX_AIC,{index},{index + 1},{numbers}")
    return write(path, "\n".join(lines) + "\n"), counts, kinds


def test_l2_hits_are_weighted_by_accesses(tmp_path: Path) -> None:
    path, counts, kinds = l2_file(tmp_path / "kernel_details.csv")
    profile = read_profile(path)
    hit = np.array(["hit" in name for name in COUNTERS * 2])
    attention = np.array(["Attention" in kind for kind in kinds])
    want = counts[attention][:, hit].sum() / counts[attention].sum()
    assert profile.figures()["l2_hit_rate"] == pytest.approx(want)
    rates = profile.l2_by_operator()
    assert set(rates) == {"FlashAttentionScore", "FlashAttentionScoreGrad"}
    same = np.array([kind == "FlashAttentionScore" for kind in kinds])
    assert rates["FlashAttentionScore"] == pytest.approx(
        counts[same][:, hit].sum() / counts[same].sum()
    )


def test_low_hits_of_attention_are_told_with_the_operators(tmp_path: Path) -> None:
    header = f"{RUNS},aic_r0_read_cache_hit,aic_r0_read_cache_miss_allocate"
    text = f"{header}\na,FlashAttentionScore,MIX_AIC,1,2,40,60\nb,MatMulV3,AI_CORE,1,2,10,90\n"
    path = write(tmp_path / "k.csv", text)
    assert "FlashAttentionScore 40%" in show(path, code=1)
    assert "float32" in show(path, code=1)
    chinese = json.loads(show(path, "--json", "--lang", "zh", code=1))
    assert "掩码" in chinese[0]["findings"][0]["text"]
    assert chinese[0]["l2"] == {"FlashAttentionScore": 0.4}
    fine = write(tmp_path / "fine.csv", text.replace(",40,60", ",60,40"))
    assert "L2 hits: FlashAttentionScore 60.0%" in show(fine)


def test_counters_of_newer_chips(tmp_path: Path) -> None:
    header = ",".join([RUNS, *(f"aic_read_local_l2_{x}" for x in ("hit", "miss", "victim"))])
    path = write(tmp_path / "k.csv", f"{header}\na,MatMulV3,AI_CORE,1,2,30,10,999\n")
    assert read_profile(path).figures()["l2_hit_rate"] == 0.75


def test_rates_of_old_chips_without_the_first_operator(tmp_path: Path) -> None:
    text = (
        "Device_id,Stream Id,Task Id,Hit Rate,Victim Rate,Op Name\n"
        "0,1,1,0.01,0.1,first\n"
        "0,1,2,0.5,0.1,FlashAttentionScore1\n"
        "0,1,3,0.7,1.4,FlashAttentionScore1\n"
        "0,1,3,0.9,0.1,MatMul\n"
    )
    profile = read_profile(write(tmp_path / "l2_cache.csv", text))
    (rates,) = profile.of(CacheRates)
    assert rates.means(attention=True) == {"FlashAttentionScore1": pytest.approx(0.6)}
    assert "first" not in rates.rates
    assert rates.victims["FlashAttentionScore1"] == 1.4


@pytest.mark.parametrize(
    "header",
    ["Mode,TLB Hit Rate,Others", "Timestamp,Hit Rate(%),Throughput(MB/s)"],
)
def test_other_hit_rates_are_not_taken_for_l2(header: str, tmp_path: Path) -> None:
    path = write(tmp_path / "soc_pmu.csv", f"{header}\n1,2,3\n")
    with pytest.raises(UsageError, match="nothing in it was written by a profiler"):
        read_profile(path)


def test_bandwidth_of_the_main_memory_weighted_by_time(tmp_path: Path) -> None:
    header = f"{RUNS},aiv_main_mem_read_bw(GB/s),aiv_main_mem_write_bw(GB/s)"
    text = f"{header}\na,Cast,AI_VECTOR_CORE,1,1,100,10\nb,Cast,AI_VECTOR_CORE,1,3,20,N/A\n"
    figures = read_profile(write(tmp_path / "k.csv", text)).figures()
    assert figures["hbm_read_bandwidth"] == pytest.approx(40e9)
    assert figures["hbm_write_bandwidth"] == pytest.approx(10e9)


def test_bandwidth_of_the_device(tmp_path: Path) -> None:
    text = "Device_id,Metric,Read(MB/s),Write(MB/s)\n0,Average,1500.5,20\n0,0/HBM,3,4\n"
    profile = read_profile(write(tmp_path / "hbm_0.csv", text))
    (found,) = profile.of(DeviceBandwidth)
    assert found.mean == (1500.5e6, 20e6)
    without = read_profile(write(tmp_path / "ddr.csv", text.replace("Average", "1/HBM")))
    assert without.figures()["hbm_read_bandwidth"] == pytest.approx((1500.5 + 3) / 2 * 1e6)


def test_utilisation_is_weighted_by_time_and_without_communication(tmp_path: Path) -> None:
    header = f"{RUNS},aiv_vec_time(us),cube_utilization(%)"
    text = (
        f"{header}\na,M,AI_CORE,1,30,0,90\nb,C,AI_VECTOR_CORE,1,10,5,0\nc,hcom,HCCL,1,1000,N/A,0\n"
    )
    figures = read_profile(write(tmp_path / "k.csv", text)).figures()
    assert figures["cube_utilization"] == pytest.approx(0.9 * 30 / 40)
    assert figures["vector_utilization"] == pytest.approx(5 / 40)


def test_memory_in_kilobytes_and_what_lies_idle_at_the_peak(tmp_path: Path) -> None:
    text = (
        "Component,Timestamp(us),Total Allocated(KB),Total Reserved(KB),Device\n"
        "PTA,1,100,400,NPU:0\n"
        "PTA,2,300,400,NPU:0\n"
        "PTA,3,50,500,NPU:0\n"
        "APP,3,,900,NPU:0\n"
    )
    profile = read_profile(write(tmp_path / "memory_record.csv", text))
    (memory,) = profile.of(Memory)
    pool = memory.whole
    assert pool is not None
    assert (pool.allocated, pool.reserved, pool.idle_share) == (300 * 1024, 500 * 1024, 0.25)
    assert memory.pools["APP"].reserved == 900 * 1024
    assert math.isnan(memory.pools["APP"].allocated)


def test_shares_of_several_steps(tmp_path: Path) -> None:
    text = (
        "Step,Computing,Communication(Not Overlapped),Overlapped,"
        "Communication,Free,Stage,Bubble,Communication(Not Overlapped and Exclude Receive)\n"
        "1,5,3,0,3,2,10,0,3\n"
        "2,20,5,0,5,5,30,0,5\n"
    )
    profile = read_profile(write(tmp_path / "step_trace_time.csv", text))
    (steps,) = profile.of(Steps)
    assert [s.name for s in steps.rows] == ["1", "2"]
    assert profile.figures() == {
        "comm_not_overlapped_share": pytest.approx(8 / 40),
        "device_free_share": pytest.approx(7 / 40),
    }


def torch_folder(root: Path, rank: int) -> Path:
    folder = root / f"host_{rank}_ascend_pt"
    info = {"config": {"x": {"_profiler_level": "Level1"}}, "end_info": {}, "rank_id": str(rank)}
    write(folder / f"profiler_info_{rank}.json", json.dumps(info))
    output = folder / "ASCEND_PROFILER_OUTPUT"
    header, *rows = KERNELS.splitlines()
    write(
        output / "kernel_details.csv", "\n".join([f"Device_id,{header}", *(f"6,{r}" for r in rows)])
    )
    again = folder / "PROF_000001_x" / "mindstudio_profiler_output" / "op_summary_20250101.csv"
    write(again, KERNELS)
    write(output / "trace_view.json", json.dumps([{"ph": "X", "name": "a"}, {"ph": "M"}]))
    return folder


def test_folders_of_ranks_below_one(tmp_path: Path) -> None:
    first, second = torch_folder(tmp_path / "out", 0), torch_folder(tmp_path / "out", 11)
    assert sorted(profiles_below(tmp_path)) == sorted([first, second])
    profile = read_profile(second)
    assert (profile.rank, profile.devices) == (11, {"6"})
    (found,) = profile.of(Operators)
    assert found.total_us == 15.5  # not twice
    assert profile.told.events == 1
    told = json.loads(show(tmp_path, "--json"))
    assert [each["rank"] for each in told] == [0, 11]
    text = show(tmp_path)
    assert "rank 11  device 6" in text
    assert "MatMulV3" in text


def test_msprof_and_our_own_run(tmp_path: Path) -> None:
    prof = tmp_path / "PROF_000001_20250101_ABC"
    for part in range(2):  # msprof cuts long tables
        write(prof / "mindstudio_profiler_output" / f"op_summary_0_slice_{part}_2025.csv", KERNELS)
    assert operators(prof).total_us == 31.0
    run = tmp_path / "summary"
    write(run / "run.json", "{}")
    place = run / "attempt-0001" / "rank-0002" / "profiles" / "s000120"
    write(place / "h_ascend_ms" / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv", KERNELS)
    (found,) = profiles_below(run)
    assert found.name == "h_ascend_ms"
    assert read_profile(found).rank == 2


def test_paths_that_hold_nothing(tmp_path: Path) -> None:
    assert "no such file" in show(tmp_path / "missing", code=2)
    assert "nothing in it was written by a tool of Ascend" in show(tmp_path, code=2)
    write(tmp_path / "a.csv", "apples,pears\n1,2\n")
    assert "nothing in it was written by a profiler" in show(tmp_path, code=2)
    with pytest.raises(StoreError):
        read_profile(tmp_path / "missing")


def test_json_that_breaks_is_told(tmp_path: Path) -> None:
    write(tmp_path / "communication.json", '{"step1": {"p2p": ')
    profile = read_profile(tmp_path)
    assert "no JSON" in profile.files[0].problems[0]
    show(tmp_path, code=1)


SEEDS = [
    KERNELS.encode(),
    b"Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB)\nPTA,1,2,3\n",
    b"Step,Computing,Free,Stage\n1,2,3,4\n",
    b'{"step1": {"p2p": {"a": {"Communication Time Info": {}}}}}',
]


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_whatever_is_in_a_file_only_our_errors_come(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from(SEEDS)))
    for _ in range(data.draw(st.integers(0, 8))):
        at = data.draw(st.integers(0, len(content)))
        kind = data.draw(st.sampled_from(["cut", "put", "swap"]))
        if kind == "cut":
            del content[at : at + data.draw(st.integers(1, 20))]
        else:
            new = data.draw(st.binary(min_size=1, max_size=6))
            content[at : at + (len(new) if kind == "swap" else 0)] = new
    path = tmp_path / data.draw(st.sampled_from(["x.csv", "x.json"]))
    path.write_bytes(bytes(content))
    try:
        profile = read_profile(path)
        profile.figures(), profile.findings(), profile.l2_by_operator()
    except MindPulseError:
        return
    CliRunner().invoke(main, ["ascend", "show", str(path)], catch_exceptions=False)


def test_a_large_file_streams_through(tmp_path: Path) -> None:
    header, *rows = KERNELS.splitlines()
    path = write(tmp_path / "k.csv", header + "\n" + ("\n".join(rows) + "\n") * 60_000)
    tracemalloc.start()
    try:
        found = operators(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.total_us == pytest.approx(15.5 * 60_000)
    assert path.stat().st_size > 7_000_000
    assert peak < 1_000_000
