"""MindSpore in the tests: quiet, synchronous on a small CPU, and marked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("GLOG_v", "3")

import mindspore as ms
import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.mindspore)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """MindSpore writes rank_0/ and the like into the working folder."""
    monkeypatch.chdir(tmp_path)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.fixture(scope="session", autouse=True)
def _blocking() -> None:
    """On few cores the asynchronous PyNative queue is many times slower."""
    ms.runtime.launch_blocking()
