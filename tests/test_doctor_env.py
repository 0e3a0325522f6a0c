"""The doctor's look at the software: each fault is made, and has to be found."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import ascend_trees as trees
from mindpulse.doctor.env import check_env
from mindpulse.doctor.env_settings import SETTINGS
from mindpulse.doctor.result import Result
from mindpulse.messages import CATALOGUE
from mindpulse.messages.doctor_env_texts import DOCTOR_ENV_TEXTS

HERE = platform.machine()
OTHER = "aarch64" if HERE == "x86_64" else "x86_64"


class Machine:
    """A machine that is well: Python packages, CANN, driver, firmware and the variables."""

    def __init__(self, folder: Path) -> None:
        self.site, self.root = folder / "site", folder / "Ascend"
        trees.mindspore(self.site, accepts='"8.2", "8.3", "8.5"')
        trees.package(self.site, "numpy", "1.26.4")
        trees.package(self.site, "protobuf", "7.36.2")
        self.home = trees.toolkit(self.root / "ascend-toolkit" / "latest", machine=HERE)
        (self.home.parent / "set_env.sh").write_text("")
        trees.driver(self.root)
        trees.firmware(self.root)
        self.environ = {
            "ASCEND_HOME_PATH": str(self.home),
            "ASCEND_OPP_PATH": str(self.home / "opp"),
            "LD_LIBRARY_PATH": f"{self.home / 'lib64'}:/no/such/folder",
            "PYTHONPATH": str(self.home / "opp/built-in/op_impl/ai_core/tbe"),
        }

    def check(self, **environ: str) -> list[Result]:
        return check_env(self.environ | environ, [self.root], [str(self.site)])

    def remove(self, name: str) -> None:
        for info in self.site.glob(f"{name}-*.dist-info"):
            (info / "METADATA").unlink()
            info.rmdir()

    def replace(self, name: str, version: str) -> None:
        self.remove(name)
        trees.package(self.site, name, version)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def wrong(results: list[Result]) -> dict[str, Result]:
    """By finding, everything that is not well; both languages can say it."""
    for result in results:
        for lang in ("en", "zh"):
            assert result.evidence(lang)
            assert bool(result.cure(lang)) == (result.status != "ok")
        assert f"doctor.check.{result.check}" in CATALOGUE
    return {result.finding: result for result in results if result.status != "ok"}


def test_a_machine_that_is_well(machine: Machine) -> None:
    results = machine.check()
    assert wrong(results) == {}
    told = {result.check: result.evidence() for result in results}
    assert told["env.cann"] == "cann 8.3.RC2"
    assert told["env.driver"] == "driver 24.1.rc2.2"
    assert {"env.python", "env.mindspore", "env.numpy", "env.paths", "env.settings"} <= set(told)


def test_a_machine_without_npu(tmp_path: Path) -> None:
    results = check_env({}, [tmp_path], None)
    assert next(r for r in results if r.check == "env.cann").finding == "env_no_ascend"


Fault = Callable[[Machine], object]
FAULTS: list[tuple[str, str, Fault]] = [
    ("env_numpy", "env.numpy", lambda m: m.replace("numpy", "2.2.6")),
    ("env_protobuf", "env.protobuf", lambda m: m.replace("protobuf", "5.29.0")),
    ("env_pair_missing", "env.numpy", lambda m: m.remove("numpy")),
    ("env_mindspore_missing", "env.mindspore", lambda m: m.remove("mindspore")),
    (
        "env_mindformers_dependency",
        "env.mindformers",
        lambda m: trees.package(m.site, "mindformers", "2.0.0"),
    ),
    ("env_pair", "env.mindformers", lambda m: trees.package(m.site, "mindformers", "1.9.0")),
    ("env_pair", "env.mindnlp", lambda m: trees.package(m.site, "mindnlp", "0.5.1")),
    ("env_pair_unknown", "env.mindnlp", lambda m: trees.package(m.site, "mindnlp", "0.3.0")),
    ("env_pair_unknown", "env.python", lambda m: m.replace("mindspore", "2.12.0")),
    (
        "env_pair",
        "env.cann",
        lambda m: trees.toolkit(m.home, "8.0.0", machine=HERE, compiler="7.6.0.1.220"),
    ),
    (
        "env_custom_op",
        "env.cann",
        lambda m: trees.toolkit(m.home, "8.5.0", machine=HERE, compiler="8.5.0.1.220"),
    ),
    ("env_machine", "env.machine", lambda m: _other_machine(m)),
    ("env_driver", "env.driver", lambda m: _old_driver(m)),
    ("env_firmware", "env.firmware", lambda m: trees.firmware(m.root, "8.1.0.1", "[25.0,25.0.]")),
    ("env_cann_missing", "env.cann", lambda m: m.home.rename(m.home.parent / "moved")),
    ("env_cann_unreadable", "env.cann", lambda m: _emptied(m)),
    ("env_cann_not_set", "env.cann", lambda m: m.environ.pop("ASCEND_HOME_PATH")),
    (
        "env_cann_no_compiler",
        "env.cann",
        lambda m: (m.home / "compiler" / "version.info").unlink(),
    ),
    ("env_cann_mixed", "env.cann", lambda m: _mixed(m)),
    (
        "env_paths_nowhere",
        "env.paths",
        lambda m: m.environ.update(LD_LIBRARY_PATH="/usr/local/Ascend/gone/lib64"),
    ),
    ("env_paths_lacking", "env.paths", lambda m: m.environ.pop("PYTHONPATH")),
]


def _other_machine(machine: Machine) -> None:
    info = machine.home / f"{HERE}-linux" / "ascend_toolkit_install.info"
    info.write_text(info.read_text().replace(f"arch={HERE}", f"arch={OTHER}"))


def _old_driver(machine: Machine) -> None:
    trees.driver(machine.root, "22.0.4", "V100R001C10SPC001", "[V100R001C10]", "[7.1.0,7.1.99]")


def _emptied(machine: Machine) -> None:
    for path in machine.home.rglob("*.info"):
        path.write_text("path=/x\n")


def _mixed(machine: Machine) -> None:
    other = trees.toolkit(machine.root / "8.2.RC1", "8.2.RC1", machine=HERE)
    machine.environ["ASCEND_OPP_PATH"] = str(other / "opp")


@pytest.mark.parametrize(("finding", "check", "fault"), FAULTS)
def test_each_fault_is_found(machine: Machine, finding: str, check: str, fault: Fault) -> None:
    fault(machine)
    found = [r for r in machine.check() if r.status != "ok" and r.finding == finding]
    assert check in {result.check for result in found}
    wrong(machine.check())


def test_what_was_seen_and_what_to_do(machine: Machine) -> None:
    machine.replace("numpy", "2.2.6")
    result = wrong(machine.check())["env_numpy"]
    assert result.evidence().startswith(
        "NumPy 2.2.6 is installed, MindSpore 2.10.0 needs >=1.25,<2"
    )
    assert "pip install 'numpy<2'" in result.cure("zh")
    machine.environ.pop("ASCEND_HOME_PATH")
    assert wrong(machine.check())["env_cann_not_set"].command == (
        f"source {machine.home.parent / 'set_env.sh'}"
    )


@pytest.mark.parametrize("version", ["3.9.18", "3.13.1"])
def test_a_python_that_is_too_old_or_too_new(version: str) -> None:
    results = check_env({}, [], found={"python": version})
    assert wrong(results)["env_python"].values["version"] == version


SWITCHES: list[tuple[Mapping[str, str], str]] = [
    ({"MS_SIMULATION_LEVEL": "0"}, "env_simulation"),
    ({"MS_KERNEL_LAUNCH_SKIP": "all"}, "env_simulation"),
    ({"MS_DEV_PRECOMPILE_ONLY": "1"}, "env_compile_only"),
    ({"MS_ASCEND_CHECK_OVERFLOW_MODE": "SATURATION_MODE"}, "env_saturation"),
    ({"MS_ASCEND_CHECK_OVERFLOW_MODE": "1"}, "env_overflow_value"),
    ({"MINDSPORE_DUMP_CONFIG": "/x/dump.json"}, "env_dump"),
    ({"ASCEND_LAUNCH_BLOCKING": "1"}, "env_blocking"),
    ({"GLOG_v": "0"}, "env_log_loud"),
    ({"GLOG_v": "4"}, "env_log_silent"),
    ({"ASCEND_GLOBAL_LOG_LEVEL": "1"}, "env_log_loud"),
    ({"ASCEND_GLOBAL_LOG_LEVEL": "4"}, "env_log_silent"),
    ({"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "cpp"}, "env_protobuf_cpp"),
    ({"PYTHONOPTIMIZE": "1"}, "env_optimize"),
    ({"MS_DEV_GRAPH_KERNEL_FLAGS": "--opt_level=2"}, "env_developer"),
]


@pytest.mark.parametrize(("environ", "finding"), SWITCHES)
def test_each_switch_is_found(machine: Machine, environ: Mapping[str, str], finding: str) -> None:
    assert list(wrong(machine.check(**environ))) == [finding]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MS_ASCEND_CHECK_OVERFLOW_MODE", "INFNAN_MODE"),
        ("GLOG_v", "3"),
        ("GLOG_v", ""),
        ("MS_KERNEL_LAUNCH_SKIP", "0"),
        ("MS_DEV_RUNTIME_CONF", "memory_statistics:True"),
        ("MS_DEV_TENSOR_INDEX_BOOST", "0"),
        ("ASCEND_GLOBAL_LOG_LEVEL", "3"),
    ],
)
def test_a_value_that_does_no_harm_is_not_told(machine: Machine, name: str, value: str) -> None:
    assert wrong(machine.check(**{name: value})) == {}


def test_every_text_is_used_and_every_switch_is_tested() -> None:
    told = {finding for finding, _, _ in FAULTS} | {finding for _, finding in SWITCHES}
    told |= {"env_python", "env_fits", "env_no_ascend", "env_paths_fine", "env_settings_fine"}
    told.add("env_pair_unknown_but")  # below
    findings = {key.split(".")[0] for key in DOCTOR_ENV_TEXTS if not key.startswith("check.")}
    assert findings == told
    assert {setting.finding for setting in SETTINGS} <= {finding for _, finding in SWITCHES}


def test_an_unknown_pair_names_what_is_known(machine: Machine) -> None:
    machine.replace("mindspore", "2.7.1")
    (machine.site / "mindspore" / "run_check" / "_check_version.py").unlink()
    (machine.home / "compiler" / "version.info").unlink()
    result = wrong(machine.check())["env_pair_unknown_but"]
    assert (result.status, result.values["wanted"]) == ("unknown", "8.3.RC1")


def test_protobuf_that_is_too_old_really_refuses_generated_code(tmp_path: Path) -> None:
    """What MindSpore's summary_pb2 does first, run against the protobuf that is installed."""
    pytest.importorskip("google.protobuf.runtime_version")
    code = """
from google.protobuf import runtime_version as r
r.ValidateProtobufRuntimeVersion(r.Domain.PUBLIC, r.MAJOR + 1, 0, 0, "", "summary.proto")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "VersionError" in run.stderr


def test_this_machine_and_no_surprise() -> None:
    results = check_env(os.environ)
    wrong(results)
    assert next(r for r in results if r.check == "env.python").status == "ok"
