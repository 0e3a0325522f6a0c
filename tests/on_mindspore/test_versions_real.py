"""What MindSpore itself says about versions and memory, beside what is read of it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import mindspore as ms
import pytest
from mindspore.run_check import _check_version

import ascend_trees as trees
from environments import environment
from mindpulse import open_run
from mindpulse.ascend.fit import misfits, rows
from mindpulse.ascend.memory_block import is_memory_block
from mindpulse.ascend.memory_log import memory_events
from mindpulse.ascend.memory_replay import replay_file
from mindpulse.ascend.run_check import read_run_check
from mindpulse.ascend.versions import versions
from mindpulse.compare.differences import find_differences
from mindpulse.mindspore import attach
from mindpulse.mindspore.environment import FOUND, fingerprint
from nets import batches, make_training

SOURCE = Path(__file__).parent.parent.parent / "src"
MIB = 1 << 20


def test_the_list_of_cann_is_mindspores_own() -> None:
    found = versions()
    checker = _check_version.AscendEnvChecker(None)
    assert found["mindspore_accepts"].split() == checker.version
    assert found["mindspore"] == ms.__version__
    assert found["mindspore_commit"] in (Path(ms.__file__).parent / ".commit_id").read_text()


@pytest.mark.parametrize(
    "compiler", ["8.0.0.1", "8.1.0.1", "8.2.0.0.201", "8.5.0.2", "9.1.0", "9.2.1"]
)
def test_the_verdict_is_mindspores_own(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = trees.toolkit(tmp_path / "latest", "8.0.0", compiler=compiler)
    monkeypatch.setenv("ASCEND_HOME_PATH", str(home))
    told: list[str] = []
    monkeypatch.setattr(_check_version.logger, "warning", told.append)
    checker = _check_version.AscendEnvChecker(None)
    checker.check_version()
    custom = checker.check_custom_version()
    names = {misfit.name for misfit in misfits(versions(os.environ, []))}
    assert ("mindspore-cann" in names) == any("version of software package" in t for t in told)
    assert ("mindspore-custom-op" in names) == (not custom)


def test_the_table_agrees_with_the_metadata_of_the_installed_mindspore() -> None:
    wanted = {
        line.split(">=")[0]: line.partition(">=")[2]
        for line in metadata.requires("mindspore") or []
    }
    about = [row for row in rows() if row.of == "mindspore" and row.about(ms.__version__)]
    protobuf = next(row for row in about if row.other == "protobuf")
    assert protobuf.needs == f">={wanted['protobuf']}"
    generated = (Path(ms.__file__).parent / "train" / "summary_pb2.py").read_text()
    assert f"Protobuf Python Version: {wanted['protobuf']}" in generated
    python = next(row for row in about if row.other == "python")
    assert python.needs == metadata.metadata("mindspore")["Requires-Python"]


def test_a_real_run_check(capfd: pytest.CaptureFixture[str]) -> None:
    ms.run_check()
    found = read_run_check(capfd.readouterr().out)
    assert (found.result, found.version, found.platform) == ("passed", ms.__version__, "CPU")


TINY = """
import numpy as np, mindspore as ms
from mindspore import nn
ms.set_context(mode=ms.GRAPH_MODE)
nn.Dense(4, 4)(ms.Tensor(np.ones((2, 4), np.float32)))
"""


def test_a_real_tracker_file_and_real_lines_about_pools(tmp_path: Path) -> None:
    environ = os.environ | {
        "MS_ALLOC_CONF": "memory_tracker:True",
        "MS_DEV_RUNTIME_CONF": "memory_statistics:True",
    }
    run = subprocess.run(
        [sys.executable, "-c", TINY],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    (path,) = tmp_path.rglob("memory_block.csv")
    assert is_memory_block(path)
    found = replay_file(path)
    assert (found.pools, found.problems.rows) == ([], 0)  # the CPU's blocks are not tracked
    pools = [event for event in memory_events(run.stdout.splitlines()) if event.kind == "pool"]
    assert {event.reserved for event in pools} == {1024 * MIB}
    assert pools[0].block_idle == (1024 * MIB,)
    assert pools[0].fragmentation == 0.0


def test_every_run_names_the_software_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = []
    for version in ("8.3.RC2", "8.5.0"):
        home = trees.toolkit(tmp_path / version, version)
        monkeypatch.setenv("ASCEND_HOME_PATH", str(home))
        training = make_training("pynative")
        monitor = attach(training.net, training.optimizer, summary_dir=tmp_path / f"run-{version}")
        for ids, labels in batches(2):
            monitor.step(training.step(ids, labels))
        monitor.close()
        folders.append(tmp_path / f"run-{version}")
    one, other = (open_run(folder) for folder in folders)
    assert one.tags["cann"] == "8.3.RC2"
    assert one.tags["protobuf"] == metadata.version("protobuf")
    assert one.tags["mindspore_commit"]
    assert ("cann", "8.3.RC2", "8.5.0") in find_differences(one, other).tags


def test_the_fingerprint_never_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASCEND_HOME_PATH", "/nowhere")
    plain = fingerprint()
    assert {"mindspore", "numpy", "python", "device", "mode"} <= set(plain)
    assert set(FOUND) & set(plain) >= {"mindspore_commit", "protobuf"}
    (tmp_path / "compiler").mkdir()
    (tmp_path / "compiler" / "version.info").write_bytes(b"\xff\xfe" * 40000)
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    assert "cann" not in fingerprint()


GRADIENT = """
import mindspore as ms
from mindspore import Tensor, nn
ms.set_context(mode=ms.PYNATIVE_MODE)
net = nn.Dense(4, 4)
forward = ms.value_and_grad(lambda x: net(x).reshape(-1).sum(), None, net.trainable_params())
print(forward(Tensor([[1.0, 2.0, 3.0, 4.0]], ms.float32))[0].shape)
"""
CHECK = """
from mindpulse.doctor.env import check_env
print(*[r.finding for r in check_env() if r.status == "problem"])
"""


def in_environment(place: Path, code: str) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {"PYTHONPATH": str(SOURCE), "GLOG_v": "3"}
    command = [str(place / "bin" / "python"), "-c", code]
    return subprocess.run(
        command, env=environ, capture_output=True, text=True, check=False, timeout=300
    )


def test_numpy_2_really_breaks_gradients_and_the_doctor_says_so() -> None:
    place = environment("mindspore-numpy2", ["numpy==2.2.6"], layered=True)
    failed = in_environment(place, GRADIENT)
    assert failed.returncode != 0
    assert "numpy.core.multiarray failed to import" in failed.stderr
    assert "env_numpy" in in_environment(place, CHECK).stdout.split()


def test_an_older_protobuf_really_refuses_and_the_doctor_says_so() -> None:
    place = environment("mindspore-protobuf5", ["protobuf==5.29.5"], layered=True)
    failed = in_environment(place, "import mindspore")
    assert failed.returncode != 0
    assert "VersionError" in failed.stderr
    assert "env_protobuf" in in_environment(place, CHECK).stdout.split()
