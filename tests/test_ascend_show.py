"""`mindpulse ascend show` on what is no profile, and on folders that hold several things."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ascend_trees
from mindpulse.cli import main
from test_ascend_memory_block import row, written
from test_ascend_npu_smi import OWN
from test_ascend_profile import KERNELS, write

REAL = Path(__file__).parent.parent.parent / "shared" / "real"
real = pytest.mark.skipif(not REAL.is_dir(), reason=f"{REAL} is not here")
MIB = 1 << 20


def show(path: Path, *words: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["ascend", "show", str(path), *words])
    assert result.exit_code == code, result.output
    return result.output


def values(path: Path, code: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(show(path, "--json", code=code))
    return found


# Versions.


def test_a_version_file(tmp_path: Path) -> None:
    ascend_trees.driver(tmp_path)
    path = tmp_path / "driver" / "version.info"
    assert "version: 24.1.rc2.2" in show(path)
    (found,) = values(path)
    assert found["what"] == "versions"
    assert found["pairs"]["compatible_version_fw"] == "[7.0.0,7.2.99]"


def test_a_folder_of_cann(tmp_path: Path) -> None:
    (found,) = values(ascend_trees.toolkit(tmp_path / "latest"))
    assert (found["what"], found["version"], found["machine"]) == ("cann", "8.3.RC2", "x86_64")
    assert found["compiler"] == "8.3.0.2.210"
    assert "version: 8.3.RC2" in show(tmp_path / "latest")


def test_all_version_files_of_an_installation(tmp_path: Path) -> None:
    ascend_trees.driver(tmp_path)
    ascend_trees.firmware(tmp_path)
    assert [found["pairs"]["version"] for found in values(tmp_path)] == [
        "24.1.rc2.2", "7.1.0.11.220",
    ]  # fmt: skip


@real
def test_real_version_files() -> None:
    names = {Path(found["path"]).name: found["pairs"] for found in values(REAL / "cann_version")}
    assert names["ascend_toolkit_install_8.3.RC2_aarch64.info"]["version"] == "8.3.RC2"
    assert names["driver_version_24.1.rc2.2.info"]["innerversion"] == "V100R001C18SPC001B233"


# Memory.


def test_a_log_that_tells_of_a_refusal(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        "epoch: 1 step: 1, loss is 2.3\n"
        "RuntimeError: NPU out of memory. Tried to allocate 3.00 GiB (NPU 2; 60.00 GiB total "
        "capacity; 40.00 GiB already allocated; 40.00 GiB current active; 10.00 GiB free; "
        "50.00 GiB reserved in total by PyTorch)\n"
    )
    text = show(log, code=1)
    assert "line 2: memory refused (torch-npu), device 2, asked 3,072.0 MB" in text
    assert "cause: fragmented" in text
    (found,) = values(log, code=1)
    (event,) = found["events"]
    assert (event["asks"], event["cause"]) == ([3072 * MIB], "fragmented")
    assert event["fragmentation"] == pytest.approx(1 - 3 / 10)


@real
@pytest.mark.parametrize(
    ("name", "told", "code"),
    [
        ("memstat_dryrun_nofrag.txt", "peak 48,874.0 MB, 48,874.0 MB with fragments", 0),
        ("oom_memory_statistic.log", "cause: too large", 1),
        ("oom_torch_npu_1987.txt", "cause: full", 1),
        ("oom_EE9999_halMemAlloc_30GB.log", "asked 30,720.0 MB, cause: occupied", 1),
    ],
)
def test_real_logs(name: str, told: str, code: int) -> None:
    assert told in show(REAL / "ms_logs" / name, code=code)


def test_the_blocks_of_the_memory_tracker(tmp_path: Path) -> None:
    rows = [
        row(1, 4, 0, 4 * MIB, node="Add"), row(2, 9, 4 * MIB, 8 * MIB, node="MatMul"),
        row(3, 6, 12 * MIB, MIB, node="Cast"),
    ]  # fmt: skip
    path = written(tmp_path / "memory_block.csv", rows)
    text = show(path)
    assert "3 blocks of memory" in text
    assert "13.0 MB in use" in text
    assert "8.0 MB at the peak  MatMul" in text
    (found,) = values(path)
    (pool,) = found["pools"]
    assert (pool["blocks"], pool["peak"]["used"]) == (3, 13 * MIB)
    assert len(pool["curve"]) > 1


def test_rows_of_blocks_that_cannot_be_used(tmp_path: Path) -> None:
    path = written(tmp_path / "memory_block.csv", [row(1, 4, 0, MIB), "1,2,3"])
    assert "1 rows cannot be used" in show(path, code=1)


# Several things at once.


def test_a_folder_with_everything(tmp_path: Path) -> None:
    write(tmp_path / "p_ascend_ms" / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv", KERNELS)
    (tmp_path / "chips.txt").write_text(OWN.replace("Warning", "OK     "))
    (tmp_path / "notes.txt").write_text("nothing of interest\n")
    (tmp_path / "binary.log").write_bytes(bytes(range(256)) * 40)
    written(tmp_path / "memory_block.csv", [row(1, 4, 0, MIB)])
    ascend_trees.driver(tmp_path)
    assert sorted(found["what"] for found in values(tmp_path)) == [
        "memory_blocks", "npu-smi", "profile", "versions",
    ]  # fmt: skip
    assert show(tmp_path).count("\n\n") == 3


@pytest.mark.parametrize("name", ["empty.log", "empty.txt", "version.info"])
def test_files_that_say_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert "nothing in it was written" in show(tmp_path / name, code=2)


# More of a profile.


def test_blocks_of_operators_old_steps_and_bandwidth(tmp_path: Path) -> None:
    write(
        tmp_path / "operator_memory.csv",
        "Name,Size(KB),Allocation Time(us),Release Time(us),Allocation Total Allocated(MB)\n"
        "Add,512,1,5,1\nMatMul,2048,2,,3\nCast,1,3,N/A,3\n",
    )
    write(
        tmp_path / "step_trace_raw_0_detail_time.csv",
        "step_num,start_point,end_point,total\n1,0,100000,100000\n2,0,300000,300000\n-,0,0,200000\n",
    )
    write(
        tmp_path / "kernel_details.csv",
        "Name,Type,Accelerator Core,Start Time(us),Duration(us),aic_main_mem_read_bw(GB/s),"
        "aic_main_mem_write_bw(GB/s)\na,MatMulV3,AI_CORE,1,10,100,50\nb,MatMulV3,AI_CORE,20,30,20,10\n",
    )
    text = show(tmp_path)
    assert "blocks of operators: 3, the largest 2.0 MB (MatMul), 2 not given back" in text
    assert "steps: 2, 2.000 ms on average, 2.000 ms by the file itself" in text
    assert "MatMulV3  main_mem_read 40.0 GB/s, main_mem_write 20.0 GB/s" in text
    (found,) = values(tmp_path)
    assert found["old_steps_us"] == [1000.0, 3000.0]
    assert found["blocks"][0]["never_released"] == 2
    assert found["operators"][0]["bandwidth"]["main_mem_read"] == pytest.approx(40e9)
