"""Versions: their order, the files that hold them, and what goes together."""

from __future__ import annotations

import doctest
import importlib
import itertools
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

import ascend_trees as trees
from mindpulse.ascend.fit import misfits, pairs, rows
from mindpulse.ascend.info_files import MAX_BYTES, driver_root, read_cann, read_pairs
from mindpulse.ascend.info_files import pairs as pairs_of
from mindpulse.ascend.run_check import read_run_check
from mindpulse.ascend.version import Version, listed, ranges, satisfies
from mindpulse.ascend.versions import versions

REAL = Path(__file__).parent.parent.parent / "shared" / "real" / "cann_version"
real = pytest.mark.skipif(not REAL.is_dir(), reason="needs ../shared/real")

ORDER = [
    "6.3.RC2",
    "8.0.T63",
    "8.0.RC1",
    "8.0.0",
    "8.2.0.0.201",
    "8.3.RC1.alpha001",
    "8.3.RC1.alpha003",
    "8.3.RC1",
    "8.3.RC2",
    "8.3.0",
    "8.3.0.1.200",
    "8.3.1",
    "8.5.0",
    "8.10",
    "24.1.rc2",
    "24.1.rc2.2",
    "24.1.RC3",
    "25.0.rc1",
    "25.0.rc1.b010",
    "25.0.rc1.1",
    "V100R001C17SPC001B240",
    "V100R001C20SPC001B251",
    "V100R001C23SPC002B210",
]


def test_versions_are_in_order() -> None:
    shuffled = ORDER[:]
    random.Random(1).shuffle(shuffled)
    assert sorted(shuffled, key=Version) == ORDER
    for low, high in itertools.pairwise(ORDER):
        assert Version(low) < Version(high)
        assert not Version(high) <= Version(low)


def test_equal_versions_are_equal_however_they_are_written() -> None:
    for one, other in [("8.3", "8.3.0"), ("24.1.rc3", "24.1.RC3"), ("2.6.0-rc1", "2.6.0rc1")]:
        assert Version(one) == Version(other)
        assert hash(Version(one)) == hash(Version(other))
    assert Version("2.1.0+cpu") == Version("2.1.0")
    assert Version("8.3") != "8.3"
    assert not Version("unknown").known


@settings(deadline=None)
@given(st.text(max_size=30), st.text("0123456789.rcRCVB[],-", max_size=30))
def test_no_text_makes_them_fail(one: str, other: str) -> None:
    a, b = Version(one), Version(other)
    assert (a < b) + (b < a) + (a == b) == 1
    assert listed(one, other) in (True, False, None)
    assert listed(other, f"[{one}]") in (True, False, None)
    assert read_run_check(one).result in ("passed", "failed", "unknown")
    for pair in pairs_of(f"{one}={other}\n{other}").items():
        assert pair[0] == pair[0].strip()
    misfits(dict.fromkeys(("mindspore", "numpy", "cann", "driver", "firmware"), other))


def test_a_number_of_five_thousand_digits() -> None:
    assert Version("9" * 5000) > Version("8.3")


numbers = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(
    lambda parts: ".".join(str(part) for part in parts)
)


@settings(deadline=None)
@given(numbers, st.sampled_from([">=", "<=", "==", "!=", ">", "<"]), numbers)
def test_conditions_hold_as_pips_do(version: str, operator: str, wanted: str) -> None:
    condition = f"{operator}{wanted}"
    assert satisfies(version, condition) == SpecifierSet(condition).contains(version)


@settings(deadline=None)
@given(numbers, st.sampled_from(["==", "!="]), numbers)
def test_a_star_at_the_end_stands_for_the_rest(version: str, operator: str, wanted: str) -> None:
    condition = f"{operator}{wanted}.*"
    padded = f"{version}.0.0.0.0"  # pip fills up with zeros
    assert satisfies(padded, condition) == SpecifierSet(condition).contains(padded)


def test_a_condition_that_cannot_be_understood_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'about 2'"):
        satisfies("2.0", "about 2")


def test_lists_of_versions() -> None:
    text = "[V100R001C15,V100R001C18],[V100R001C30]"
    assert ranges(text) == (("V100R001C15", "V100R001C18"), ("V100R001C30", "V100R001C30"))
    assert listed("V100R001C17SPC001B240", text) is True  # between the two ends
    assert listed("V100R001C30", text) is True
    assert listed("V100R001C19", text) is False
    assert listed("", text) is None
    assert listed("V100R001C19", "") is None
    assert listed("V100R001C19", "[],garbage") is None
    assert listed("24.1.rc2.2", "[23.0.0,23.0.0.],[24.1,24.1.]") is True
    assert listed("24.10", "[24.1,24.1.]") is False
    assert listed("7.5.0.1.129", "[6.4.0,6.4.99],[7.0.0,7.7.99]") is True


def test_files_in_whatever_writing(tmp_path: Path) -> None:
    path = tmp_path / "version.info"
    path.write_bytes(
        b"\xef\xbb\xbf# a comment\r\nVersion = 24.1.rc2 \r\nversion=other\r\nnothing\r\n"
    )
    assert read_pairs(path) == {"version": "24.1.rc2"}
    path.write_bytes(b"Version=1\nName=\xff\xfe\0x\n" + b"y" * MAX_BYTES + b"\nlate=1\n")
    assert read_pairs(path)["version"] == "1"
    assert "late" not in read_pairs(path)
    assert read_pairs(tmp_path) == {}
    assert read_pairs(tmp_path / "missing") == {}
    path.write_text('Driver_Install_Path_Param="/opt/Ascend"\n')
    assert driver_root(path) == Path("/opt/Ascend")


def test_cann_by_its_install_file(tmp_path: Path) -> None:
    found = read_cann(trees.toolkit(tmp_path, machine="aarch64"))
    assert found is not None
    assert (found.version, found.inner) == ("8.3.RC2", "V100R001C23SPC002B210")
    assert (found.compiler, found.machine) == ("8.3.0.2.210", "aarch64")
    assert len(found.files) == 2


def test_cann_by_its_version_cfg_alone(tmp_path: Path) -> None:
    (tmp_path / "version.cfg").write_text(
        "# version: 1.0\nruntime_running_version=[7.6.0.1.220:8.0.0]\n"
        "compiler_running_version=[7.6.0.1.220:8.0.0]\n"
        "toolkit_running_version=[7.6.0.1.220:8.0.0]\n"
    )
    found = read_cann(tmp_path)
    assert found is not None
    assert (found.version, found.compiler, found.machine) == ("8.0.0", "7.6.0.1.220", "")
    (tmp_path / "version.cfg").write_text("runtime_running_version=[9.9]\n")
    found = read_cann(tmp_path)
    assert found is not None
    assert found.version == ""
    assert read_cann(tmp_path / "missing") is None


def test_everything_is_found(tmp_path: Path) -> None:
    root, packages = tmp_path / "Ascend", tmp_path / "site"
    trees.toolkit(root / "ascend-toolkit" / "latest")
    trees.driver(root)
    trees.firmware(root)
    trees.mindspore(packages)
    trees.package(packages, "hyper-parallel", "1.0.0")
    trees.package(packages, "torch", None)
    found = versions({}, [root], [str(packages)])
    expected = {
        "mindspore": "2.10.0",
        "mindspore_commit": "2d550373",
        "mindspore_accepts": "8.2 8.3 8.5",
        "mindspore_custom_op": "8.3.0",
        "hyper_parallel": "1.0.0",
        "cann": "8.3.RC2",
        "cann_inner": "V100R001C23SPC002B210",
        "cann_compiler": "8.3.0.2.210",
        "cann_machine": "x86_64",
        "driver": "24.1.rc2.2",
        "driver_inner": "V100R001C18SPC001B233",
        "driver_firmware": "[7.0.0,7.2.99]",
        "firmware": "7.1.0.11.220",
    }
    assert expected.items() <= found.items()
    assert "torch" not in found
    assert "numpy" not in found
    assert found["python"] == ".".join(str(part) for part in sys.version_info[:3])
    assert all(found.values())


@pytest.mark.parametrize("name", ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH"])
def test_the_environment_comes_before_the_usual_folder(tmp_path: Path, name: str) -> None:
    trees.toolkit(tmp_path / "root" / "ascend-toolkit" / "latest", "8.0.0")
    mine = trees.toolkit(tmp_path / "mine", "8.5.0")
    value = mine / "opp" if name == "ASCEND_OPP_PATH" else mine
    assert versions({name: str(value)}, [tmp_path / "root"], [])["cann"] == "8.5.0"
    nowhere = {name: str(tmp_path / "nowhere" / "opp")}
    assert versions(nowhere, [tmp_path / "root"], [])["cann"] == "8.0.0"


def test_the_install_file_names_another_root(tmp_path: Path) -> None:
    trees.driver(tmp_path / "elsewhere", "25.3.rc1")
    info = tmp_path / "ascend_install.info"
    info.write_text(f"UserName=HwHiAiUser\nDriver_Install_Path_Param={tmp_path / 'elsewhere'}\n")
    assert versions({}, [info, tmp_path / "usual"], [])["driver"] == "25.3.rc1"


def test_nothing_is_found_and_nothing_fails(tmp_path: Path) -> None:
    found = versions({"ASCEND_HOME_PATH": "\0/x"}, [tmp_path / "none"], [str(tmp_path)])
    assert set(found) == {"python", "machine", "os"}


def test_no_process_and_no_framework_is_started() -> None:
    code = """
import sys
def told(event, arguments):
    if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork"):
        raise AssertionError(event)
sys.addaudithook(told)
from mindpulse.ascend.versions import versions
assert versions()["python"]
print({"mindspore", "torch", "numpy", "mindformers"} & set(sys.modules))
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "set()"


PASSED = """MindSpore version:  2.1.1
The result of multiplication calculation is correct, MindSpore has been installed on platform \
[Ascend] successfully!
[ERROR] KERNEL(1,fff,python):2023-10-13-09:30:47.546.313 [mindspore/ccsrc/a.cc:172] Load] No json
"""
FAILED = """[ERROR] DEVICE(384,ff,python):2025-10-20-09:54:58 [ms/b.cc:557] Set] Get soc failed.
[ERROR] DEVICE(384,ff,python):202"""


def test_run_check() -> None:
    found = read_run_check(PASSED)
    assert (found.result, found.version, found.platform) == ("passed", "2.1.1", "Ascend")
    assert (found.errors, found.cut) == (("No json",), False)
    found = read_run_check(FAILED)
    assert (found.result, found.version, found.cut) == ("failed", "", True)
    assert found.errors[0] == "Get soc failed."
    assert read_run_check("MindSpore running check failed.\nno device").result == "failed"
    assert read_run_check("MindSpore version:  2.1.1\n").result == "unknown"


def test_every_row_of_the_table_has_a_source_and_can_be_used() -> None:
    assert len(rows()) > 20
    for row in rows():
        assert row.source, row
        assert row.wanted, row
        row.about("2.10.0")
        row.fits("2.10.0")
    assert all(set(pair) == {"mindspore", "cann", "driver"} for pair in pairs())


def names(found: dict[str, str]) -> set[tuple[str, str]]:
    return {(misfit.name, misfit.status) for misfit in misfits(found)}


FINE = {"mindspore": "2.10.0", "numpy": "1.26.4", "protobuf": "7.36.2", "python": "3.11.7"}


def test_what_fits_is_not_told() -> None:
    assert names(FINE) == set()
    assert names({"python": "3.11"}) == set()
    assert names({}) == set()


@pytest.mark.parametrize(
    ("changed", "name", "status"),
    [
        ({"numpy": "2.0.0"}, "mindspore-numpy", "misfit"),
        ({"numpy": "1.24.4"}, "mindspore-numpy", "misfit"),
        ({"mindspore": "2.8.0", "numpy": "2.2.6"}, "mindspore-numpy", "misfit"),
        ({"protobuf": "6.31.1"}, "mindspore-protobuf", "misfit"),
        ({"python": "3.13.1"}, "mindspore-python", "misfit"),
        ({"pyarrow": "23.0.1"}, "pyarrow-numpy", "misfit"),
        ({"mindformers": "2.0.0"}, "mindformers-hyper-parallel", "misfit"),
        ({"mindformers": "1.9.0"}, "mindformers-mindspore", "misfit"),
        ({"mindformers": "1.4.0"}, "mindformers-mindspore", "unknown"),
        ({"mindnlp": "0.5.1"}, "mindnlp-mindspore", "misfit"),
        ({"mindnlp": "0.4.1"}, "mindnlp-mindspore", "unknown"),
        ({"mindspore": "2.11.0"}, "mindspore-numpy", "unknown"),
        ({"cann": "8.0.0", "cann_compiler": "7.6.0.1.220"}, "mindspore-cann", "misfit"),
        ({"cann": "8.5.0"}, "mindspore-cann", "unknown"),
        ({"cann_machine": "aarch64", "machine": "x86_64"}, "cann-machine", "misfit"),
        (
            {"mindspore_custom_op": "9.1.0", "cann_compiler": "8.5.0.1", "cann": "8.5.0"},
            "mindspore-custom-op",
            "misfit",
        ),
    ],
)
def test_what_does_not_fit(changed: dict[str, str], name: str, status: str) -> None:
    assert (name, status) in names(FINE | changed)


def test_an_unknown_package_is_told_once() -> None:
    old = {"mindnlp": "0.4.1", "pyarrow": "22.0.0", "transformers": "4.40.0"}
    assert names(FINE | old) == {("mindnlp-mindspore", "unknown")}
    assert names(FINE | {"mindformers": "1.4.0"}) == {("mindformers-mindspore", "unknown")}
    assert names(FINE | {"mindspore": "2.8.0", "protobuf": "4.25.3"}) == set()


def test_the_list_in_the_installed_mindspore_comes_first() -> None:
    cann = {"cann": "9.9.0", "cann_compiler": "9.9.0.1", "mindspore_accepts": "9.8 9.9"}
    assert names(FINE | cann) == set()
    misfit = next(m for m in misfits(FINE | cann | {"mindspore_accepts": "9.8"}))
    assert (misfit.wanted, misfit.other_version) == ("9.8", "9.9.0 (9.9.0.1)")
    assert "installed MindSpore" in misfit.source


def test_the_manual_is_asked_where_the_compiler_says_nothing() -> None:
    base = {"mindspore": "2.7.1", "numpy": "1.26.4", "protobuf": "4.25"}
    assert names(base | {"cann": "8.3.RC1"}) == set()
    found = misfits(base | {"cann": "8.0.0"})
    assert [(m.name, m.status, m.wanted) for m in found] == [
        ("mindspore-cann", "unknown", "8.3.RC1")
    ]


PAIR = {
    "cann": "8.3.RC2",
    "cann_inner": "V100R001C23SPC002B210",
    "cann_compatible": trees.LIST_8_3,
    "driver": "24.1.rc2.2",
    "driver_inner": "V100R001C18SPC001B233",
    "driver_compatible": trees.LIST_24_1,
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, set()),  # CANN lists the older driver
        ({"cann_compatible": "[V100R001C23]"}, {("driver-cann", "misfit")}),
        ({"cann_compatible": "[V100R001C23]", "driver_inner": ""}, {("driver-cann", "unknown")}),
        ({"cann_inner": "V100R001C17SPC1", "cann_compatible": "[V100R001C16]"}, set()),
        ({"driver_inner": "", "driver_compatible": ""}, {("driver-cann", "unknown")}),
    ],
)
def test_driver_and_cann(changed: dict[str, str], expected: set[tuple[str, str]]) -> None:
    assert names(PAIR | changed) == expected


@pytest.mark.parametrize(
    ("firmware", "by_driver", "by_firmware", "expected"),
    [
        ("7.1.0.11.220", "[7.0.0,7.2.99]", "[23.0.0,23.0.0.]", set()),
        ("7.5.0.1.129", "[7.0.0,7.2.99]", "[24.1,24.1.]", {("firmware-driver", "misfit")}),
        ("7.5.0.1.129", "", "[24.1,24.1.]", set()),
        ("7.5.0.1.129", "", "[23.0.0,23.0.0.]", {("firmware-driver", "misfit")}),
        ("7.5.0.1.129", "", "", {("firmware-driver", "unknown")}),
    ],
)
def test_firmware_and_driver(
    firmware: str, by_driver: str, by_firmware: str, expected: set[tuple[str, str]]
) -> None:
    found = {
        "driver": "24.1.rc2.2",
        "firmware": firmware,
        "driver_firmware": by_driver,
        "firmware_driver": by_firmware,
    }
    assert names(found) == expected


DOCS = Path(__file__).parent.parent / "docs"


def test_the_page_has_the_table_and_nothing_else() -> None:
    text = (DOCS / "versions.md").read_text("utf-8")
    table = re.search(r"<!-- fit -->(.*)<!-- /fit -->", text, re.DOTALL)
    assert table is not None
    assert table.group(1).strip().splitlines()[2:] == [
        f"| {row.of} | {row.when} | {row.other} | {row.wanted} | {row.source} |" for row in rows()
    ]
    table = re.search(r"<!-- pairs -->(.*)<!-- /pairs -->", text, re.DOTALL)
    assert table is not None
    assert table.group(1).strip().splitlines()[2:] == [
        f"| {pair['mindspore']} | {pair['cann']} | {pair['driver']} |" for pair in pairs()
    ]


@pytest.mark.parametrize("page", ["versions.md", "memory.md"])
def test_what_the_pages_show_runs(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / page).read_text("utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, page, "exec"), {})
        for line in re.findall(r"print\(.*\)  # (.*)", block):
            assert line in capsys.readouterr().out


@pytest.mark.parametrize(
    "module", ["version", "info_files", "run_check", "versions", "fit", "memory_log"]
)
def test_examples(module: str) -> None:
    found = doctest.testmod(importlib.import_module(f"mindpulse.ascend.{module}"))
    assert found.failed == 0


@real
@pytest.mark.parametrize(
    ("file", "version", "inner", "count", "machine"),
    [
        ("8.0.0_aarch64", "8.0.0", "V100R001C20SPC001B251", 5, "aarch64"),
        ("8.3.RC2_aarch64", "8.3.RC2", "V100R001C23SPC002B210", 6, "aarch64"),
        ("8.1.RC1_x86_64", "8.1.RC1", "V100R001C21SPC001B238", 5, "x86_64"),
        ("8.0.RC1_oddlist", "8.0.RC1", "V100R001C17SPC001B240", 6, "aarch64"),
    ],
)
def test_real_toolkits(
    tmp_path: Path, file: str, version: str, inner: str, count: int, machine: str
) -> None:
    text = (REAL / f"ascend_toolkit_install_{file}.info").read_text()
    (tmp_path / "ascend_toolkit_install.info").write_text(text)
    found = read_cann(tmp_path)
    assert found is not None
    assert (found.version, found.inner, found.machine) == (version, inner, machine)
    assert len(ranges(found.compatible)) == count
    assert listed(found.inner, found.compatible) is True  # each goes with its own generation


@real
def test_a_real_driver() -> None:
    found = read_pairs(REAL / "driver_version_24.1.rc2.2.info")
    assert found["version"] == "24.1.rc2.2"
    assert found["innerversion"] == "V100R001C18SPC001B233"
    assert found["compatible_version_fw"] == "[7.0.0,7.2.99]"
    assert found["ascendhal_version"] == "7.35.23"
    assert len(ranges(found["compatible_version"])) == 5


@real
def test_real_run_checks() -> None:
    found = read_run_check((REAL / "runcheck_2.1.1_ok_but_errors.txt").read_text())
    assert (found.result, found.version, len(found.errors)) == ("passed", "2.1.1", 2)
    found = read_run_check((REAL / "runcheck_910B4-1_soc_failed_truncated.txt").read_text())
    assert (found.result, found.version, len(found.errors)) == ("failed", "", 2)
    assert found.cut
