"""MindInsight 2.3.1 in a virtual environment of its own, made once and kept.

It needs a protobuf and a NumPy that are too old for ours. `$MINDPULSE_TEST_CACHE` or
`~/.cache/mindpulse-tests` holds it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

# Newer versions of the last three do not start with it: protobuf's generated code is older,
# it uses names that NumPy 2 dropped, and `pkg_resources`.
REQUIREMENTS = ("mindinsight==2.3.1", "protobuf==3.20.1", "numpy<2", "pandas<3", "setuptools<81")
_INSTALL_S = 900


def environment() -> Path:
    """The folder of the environment.

    Where it cannot be installed the test is skipped with the reason; on CI it fails.
    """
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache = Path(os.environ.get("MINDPULSE_TEST_CACHE") or Path(home) / "mindpulse-tests")
    folder = cache / f"mindinsight-2.3.1-py{sys.version_info.major}{sys.version_info.minor}"
    if not (folder / "ready").exists():
        try:
            _make(folder)
        except (OSError, subprocess.SubprocessError) as error:
            told = getattr(error, "stderr", None) or str(error)
            if os.environ.get("CI"):
                raise
            pytest.skip(f"MindInsight cannot be installed: {told.strip().splitlines()[-1]}")
    return folder


def _make(folder: Path) -> None:
    venv.create(folder, with_pip=True, clear=True)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *REQUIREMENTS]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=_INSTALL_S)
    (folder / "ready").touch()
