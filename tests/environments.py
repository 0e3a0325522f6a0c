"""Virtual environments of their own for packages that do not go together with ours.

Each is made once and kept in `$MINDPULSE_TEST_CACHE` or `~/.cache/mindpulse-tests`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

_INSTALL_S = 900


def environment(
    name: str, requirements: Sequence[str], *, alone: Sequence[str] = (), layered: bool = False
) -> Path:
    """The folder of the environment; its Python is `bin/python`.

    Where it cannot be installed the test is skipped with the reason; on CI it fails.

    Args:
        name: what it is called in the cache.
        requirements: for pip.
        alone: more of them, installed without what they ask for.
        layered: whether it sees our own packages below its own: saves MindSpore's 3 GB.
    """
    below = sysconfig.get_path("purelib") if layered else ""
    wanted = repr((tuple(alone), tuple(requirements), sys.version, below))
    folder = _cache() / f"{name}-{hashlib.sha256(wanted.encode()).hexdigest()[:10]}"
    try:
        with _only_one(folder.with_name(f"{folder.name}.lock")):
            if not (folder / "ready").exists():
                _make(folder, requirements, alone, below)
    except (OSError, subprocess.SubprocessError) as error:
        if os.environ.get("CI"):
            raise
        told = getattr(error, "stderr", None) or str(error)
        pytest.skip(f"{name} cannot be installed: {told.strip().splitlines()[-1]}")
    return folder


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("MINDPULSE_TEST_CACHE") or Path(home) / "mindpulse-tests")


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Waits until no other process makes the same environment."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make(folder: Path, requirements: Sequence[str], alone: Sequence[str], below: str) -> None:
    """An environment that was left half made has no `ready` and is begun anew."""
    venv.create(folder, with_pip=True, clear=True)
    if below:  # addsitedir, because a path alone would not read the .pth files there
        line = f"import site; site.addsitedir({below!r})\n"
        own = next((folder / "lib").glob("python*/site-packages"))
        (own / "ours_below.pth").write_text(line, "utf-8")
    if alone:
        _install(folder, "--no-deps", *alone)
    _install(folder, *requirements)
    (folder / "ready").touch()


def _install(folder: Path, *arguments: str) -> None:
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *arguments]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=_INSTALL_S)
