"""npu-smi in the shapes that people post: values of real texts, own ones, and cut ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mindpulse.ascend.npu_smi import MB, looks_like, parse
from mindpulse.cli import main

REAL = Path(__file__).parent.parent.parent / "shared" / "real" / "npu_smi"
real = pytest.mark.skipif(not REAL.is_dir(), reason=f"{REAL} is not here")
OWN = """+------------------------------------------------+
| npu-smi 25.0.1          Version: 25.0.2        |
+-----------------+----------+-------------------+
| NPU   Name      | Health   | Power(W) Temp(C)  Hugepages-Usage(page) |
| Chip  Phy-ID    | Bus-Id   | AICore(%) Memory-Usage(MB)  HBM-Usage(MB) |
+=================+==========+===================+
| 3     Ascend910 | Warning  | 201.5    62   0 / 0 |
| 0     6         | 0000:9D:00.0 | 97   0 / 0   60000/ 65536 |
+-----------------+----------+-------------------+
| 3     Ascend910 | OK       | -        61   0 / 0 |
| 1     7         | NA       | NA   0 / 0   123 / 65536 |
+=================+==========+===================+
+-----------------+----------+-------------------+
| NPU     Chip    | Process id | Process name | Process memory(MB) |
+=================+==========+===================+
| 3       0       | 4711     |              | 59000 |
| 3       1       | 4711     | python3.11   | 100   |
| No running processes found in NPU 4               |
+=================+==========+===================+
"""


def test_two_chips_and_their_processes() -> None:
    found = parse(OWN)
    assert (found.tool, found.driver, found.problems) == ("25.0.1", "25.0.2", [])
    first, second = found.chips
    assert (first.npu, first.chip, first.device, first.name) == (3, 0, 6, "Ascend910")
    assert (first.health, first.power_w, first.temperature_c) == ("Warning", 201.5, 62.0)
    assert (first.ai_core, first.bus) == (0.97, "0000:9D:00.0")
    assert (first.hbm, first.memory) == ((60000 * MB, 65536 * MB), (0, 0))
    assert (second.power_w, second.ai_core, second.bus) == (None, None, "")
    assert [(p.npu, p.chip, p.pid, p.name) for p in found.processes] == [
        (3, 0, 4711, ""), (3, 1, 4711, "python3.11"),
    ]  # fmt: skip
    assert found.processes[0].memory == 59000 * MB


def test_a_table_without_hbm() -> None:
    text = OWN.replace("  HBM-Usage(MB)", "").replace("0 / 0   60000/ 65536", "3628 / 15609")
    chip = parse(text).chips[0]
    assert (chip.hbm, chip.memory) == (None, (3628 * MB, 15609 * MB))


@pytest.mark.parametrize("lines", range(6, 18))
def test_a_cut_table_keeps_what_is_known(lines: int) -> None:
    text = "\n".join(OWN.splitlines()[:lines])[:-15]
    found = parse(text)
    whole = parse(OWN)
    for chip, same in zip(found.chips, whole.chips, strict=False):
        assert (chip.npu, chip.name) == (same.npu, same.name)
        assert chip.hbm in (None, same.hbm)


@given(st.data())
def test_no_text_raises(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(OWN)))
    text = OWN[:at] + data.draw(st.text(max_size=30)) + OWN[data.draw(st.integers(at, len(OWN))) :]
    parse(text)


# file -> versions, chips as (npu, name, health, W, C, chip, device, bus, AICore %, memory, HBM)
TABLES: dict[str, tuple[str, str, list[tuple[Any, ...]], int]] = {
    "nputop_910B2C_23.0.2.1.txt": ("23.0.2.1", "23.0.2.1", [
        (0, "910B2C", "OK", 88.6, 51, 0, None, "0000:5A:00.0", 0, (0, 0), (20701, 65536)),
        (1, "910B2C", "OK", 99.6, 50, 0, None, "0000:19:00.0", 0, (0, 0), (20687, 65536))], 1),
    "nputop_310B4_23.0.0_alarm_no_hbm.txt": ("23.0.0", "23.0.0", [
        (0, "310B4", "Alarm", 0.0, 65, 0, 0, "", 0, (3628, 15609), None)], 0),
    "npu_smi_910B3_25.0.rc1.b010_busy_truncated.txt": ("25.0.rc1.b010", "25.0.rc1.b010", [
        (0, "910B3", "OK", 124.9, 41, 0, None, "0000:C1:00.0", 27, (0, 0), (59718, 65536)),
        (1, "910B3", "OK", 122.0, 40, 0, None, "0000:C2:00.0", 29, (0, 0), (59715, 65536))], 0),
    "npu_smi_910B4_25.5.2_single_npu5.txt": ("25.5.2", "25.5.2", [
        (5, "910B4", "OK", 89.9, 39, 0, None, "0000:41:00.0", 0, (0, 0), (2922, 32768))], 0),
    "npu_smi_910B2C_25.5.1_npu2_noproc.txt": ("25.5.1", "25.5.1", [
        (2, "910B2C", "OK", 87.8, 31, 0, None, "0000:52:00.0", 0, (0, 0), (3406, 65536))], 0),
    "npu_smi_310P3_22.0.0_version22.0.2.txt": ("22.0.0", "22.0.2", [
        (0, "310P3", "OK", 16.7, 57, 0, 0, "0000:5E:00.0", 0, (932, 21534), None)], 0),
    "npu_smi_310P3_22.0.4_vm_npu7.txt": ("22.0.4", "22.0.4", [
        (7, "310P3", "OK", None, 28, 0, 0, "0000:00:07.0", 0, (1805, 21527), None)], 0),
    "npu_smi_910B2_23.0.7_busy_truncated.txt": ("23.0.7", "23.0.7", [
        (0, "910B2", "OK", 96.5, 36, 0, None, "0000:C1:00.0", 0, (0, 0), (29954, 65536)),
        (1, "910B2", "OK", 98.7, 37, 0, None, "0000:01:00.0", 0, (0, 0), (29951, 65536))], 0),
    "npu_smi_a3_24.1.rc3.7_truncated.txt": ("24.1.rc3.7", "24.1.rc3.7", [
        (0, "Ascend910", "OK", 178.8, 36, 0, 0, "0000:9D:00.0", 0, (0, 0), (3397, 65536)),
        (0, "Ascend910", "OK", None, 36, 1, 1, "0000:9F:00.0", 0, (0, 0), (3186, 65536)),
        (1, "Ascend910", "OK", 185.4, 36, 0, 2, "0000:99:00.0", 0, (0, 0), None)], 0),
}  # fmt: skip


def megabytes(pair: tuple[int, int] | None) -> tuple[float, float] | None:
    return None if pair is None else (pair[0] / MB, pair[1] / MB)


@real
@pytest.mark.parametrize("name", TABLES)
def test_real_tables(name: str) -> None:
    tool, driver, chips, processes = TABLES[name]
    text = (REAL / name).read_text()
    found = parse(text)
    assert looks_like(text)
    assert (found.tool, found.driver, len(found.processes)) == (tool, driver, processes)
    assert [
        (c.npu, c.name, c.health, c.power_w, c.temperature_c, c.chip, c.device, c.bus,
         None if c.ai_core is None else round(c.ai_core * 100),
         megabytes(c.memory), megabytes(c.hbm))
        for c in found.chips
    ] == chips  # fmt: skip


@real
def test_sixteen_chips_of_an_a3() -> None:
    found = parse((REAL / "npu_smi_a3_25.3.rc1_full.txt").read_text())
    assert (found.tool, len(found.chips), len(found.processes)) == ("25.3.rc1", 16, 10)
    first, last = found.chips[0], found.chips[-1]
    assert (first.npu, first.chip, first.device, first.power_w) == (0, 0, 0, 166.6)
    assert megabytes(first.hbm) == (3150, 65536)
    assert (last.npu, last.chip, last.device, last.power_w, last.bus) == (
        7, 1, 15, None, "0000:83:00.0",
    )  # fmt: skip
    assert megabytes(last.hbm) == (57132, 65536)
    assert [(p.npu, p.chip, p.pid, (p.memory or 0) // MB) for p in found.processes] == [
        (4, 0, 1534604, 54963), (4, 1, 1539371, 55217), (5, 0, 1545073, 54963),
        (5, 1, 1550598, 55217), (6, 0, 1756550, 116), (6, 0, 1732918, 53740),
        (6, 1, 1756550, 54252), (7, 0, 3910682, 116), (7, 0, 3896157, 53798),
        (7, 1, 3910682, 54310),
    ]  # fmt: skip
    assert {p.name for p in found.processes} == {""}
    assert found.problems == []


@real
def test_usages_and_health() -> None:
    idle = parse((REAL / "usages_910A_driver23.0.5.txt").read_text()).values
    assert (idle["NPU ID"], idle["HBM Capacity(MB)"], idle["DDR Capacity(MB)"]) == (
        "0", "32768", "13553",
    )  # fmt: skip
    assert len(idle) == 14
    busy = parse((REAL / "usages_a2_busy_tabs.txt").read_text()).values
    assert busy == {
        "NPU ID": "4", "Aicore Usage Rate(%)": "83", "Aivector Usage Rate(%)": "9",
        "HBM Bandwidth Usage Rate(%)": "40", "NPU Utilization(%)": "96",
        "Aicube Usage Rate(%)": "46",
    }  # fmt: skip
    health = parse((REAL / "health_910A.txt").read_text()).values
    assert health == {"Health Status": "OK", "Error Code": "NA", "Error Information": "NA"}


def test_ascend_show_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "npu.txt"
    path.write_text(OWN)
    shown = CliRunner().invoke(main, ["ascend", "show", str(path)])
    assert shown.exit_code == 1  # a chip that is not well
    for text in ("npu-smi 25.0.1", "201.5 W", "62 C", "Warning", "4711"):
        assert text in shown.output
    path.write_text(OWN.replace("Warning", "OK"))
    assert CliRunner().invoke(main, ["ascend", "show", str(path), "--json"]).exit_code == 0
