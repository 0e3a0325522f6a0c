"""Environments of their own: made once, begun anew when half made, skipped where they cannot be."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from environments import environment

pytestmark = pytest.mark.slow
TESTS = Path(__file__).parent


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package of one line, and a cache of its own."""
    monkeypatch.setenv("MINDPULSE_TEST_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CI", raising=False)
    path = tmp_path / "tiny-1.0-py3-none-any.whl"
    info = "tiny-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny.py", "answer = 42\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return str(path)


def answer(folder: Path, code: str) -> str:
    command = [str(folder / "bin" / "python"), "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_it_is_made_once_and_sees_ours_only_where_asked(wheel: str) -> None:
    folder = environment("tiny", [wheel], layered=True)
    assert answer(folder, "import tiny, mindpulse; print(tiny.answer)") == "42"
    made = (folder / "ready").stat().st_mtime_ns
    assert environment("tiny", [wheel], layered=True) == folder
    assert (folder / "ready").stat().st_mtime_ns == made
    (folder / "ready").unlink()
    (folder / "lib").rename(folder / "broken")
    assert environment("tiny", [wheel], layered=True) == folder
    assert answer(folder, "import tiny; print(tiny.answer)") == "42"
    apart = environment("tiny", [wheel])
    assert apart != folder
    assert answer(apart, "import importlib.util as u; print(u.find_spec('mindpulse'))") == "None"


def test_two_processes_do_not_make_it_at_once(wheel: str) -> None:
    code = f"from environments import environment; print(environment('tiny', [{wheel!r}]))"
    command = [sys.executable, "-c", code]
    with ThreadPoolExecutor() as threads:
        runs = [
            threads.submit(
                subprocess.run, command, cwd=TESTS, check=True, capture_output=True, text=True
            )
            for _ in range(3)
        ]
    folders = {run.result().stdout for run in runs}
    assert len(folders) == 1
    assert answer(Path(folders.pop().strip()), "import tiny; print(tiny.answer)") == "42"


def test_what_cannot_be_installed_skips_and_on_ci_fails(
    wheel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = wheel.replace("tiny-1.0", "gone-1.0")
    with pytest.raises(pytest.skip.Exception, match=r"gone cannot be installed: .*gone-1\.0"):
        environment("gone", [missing])
    monkeypatch.setenv("CI", "true")
    with pytest.raises(subprocess.CalledProcessError):
        environment("gone", [missing])
