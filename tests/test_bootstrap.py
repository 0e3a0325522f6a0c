"""The bootstrap says clearly what is missing before it installs anything."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def bootstrap() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "tools" / "bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("version", "system", "machine", "said"),
    [
        ((3, 11, 7), "Linux", "x86_64", ""),
        ((3, 10, 0), "Linux", "aarch64", ""),
        ((3, 13, 0), "Linux", "x86_64", "Python 3.13: MindSpore 2.10 has wheels for 3.10"),
        ((3, 9, 2), "Linux", "x86_64", "Python 3.9: MindSpore 2.10 has wheels for 3.10"),
        ((3, 11, 7), "Darwin", "arm64", "Darwin on arm64: MindSpore has wheels for Linux"),
        ((3, 11, 7), "Linux", "riscv64", "Linux on riscv64"),
    ],
)
def test_machine(
    bootstrap: ModuleType, version: tuple[int, ...], system: str, machine: str, said: str
) -> None:
    found = bootstrap.check_machine(version, system, machine)
    assert found.startswith(said)
    assert bool(found) is bool(said)


def test_space(bootstrap: ModuleType) -> None:
    assert bootstrap.check_space(5 * 1024**3, "/data") == ""
    assert bootstrap.check_space(10**9, "/data").startswith("1.0 GB free in /data")


def test_an_unfit_python_hands_over_or_explains() -> None:
    """Run by a Python without wheels, with no other one on PATH, it ends with a message and 2."""
    code = (
        "import sys; sys.version_info = (3, 13, 0); sys.argv = ['tools/bootstrap.py'];"
        "exec(compile(open('tools/bootstrap.py').read(), 'tools/bootstrap.py', 'exec'))"
    )
    environment = {**os.environ, "PATH": ""}
    code = code.replace(
        "exec(compile", "globals()['__file__'] = 'tools/bootstrap.py'; exec(compile"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=False, cwd=ROOT, env=environment,
    )  # fmt: skip
    assert result.returncode == 2
    assert "Cannot set up MindPulse: Python 3.13" in result.stderr
    assert "make PYTHON=python3.11" in result.stderr


def test_wrong_numpy_is_named(tmp_path: Path, bootstrap: ModuleType) -> None:
    (tmp_path / "numpy.py").write_text("__version__ = '2.1.0'")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", bootstrap.VERIFY],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert result.returncode == 1
    assert "NumPy 2.1.0 is installed" in result.stderr
    assert "pip install 'numpy<2'" in result.stderr


def test_stamp_follows_the_project_file(bootstrap: ModuleType) -> None:
    assert bootstrap.stamp_text("demo") != bootstrap.stamp_text("demo,dev")
    assert bootstrap.stamp_text("demo") == bootstrap.stamp_text("demo")
