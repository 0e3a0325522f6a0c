"""The examples in the docstrings of the store run as they stand."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import mindpulse.store
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.folder import create_attempt
from mindpulse.store.writer import RankWriter

MODULES = [
    "mindpulse.recorder",
    "mindpulse.summary",
    *(
        f"mindpulse.store.{module.name}"
        for module in pkgutil.iter_modules(mindpulse.store.__path__)
    ),
]


def record_one_loss(folder: Path) -> None:
    writer = RankWriter(folder, 0, 1)
    writer.append(SeriesSpec("train_loss"), Rows.one(1, 1.7e9, 2.5))
    writer.close()


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str, tmp_path: Path) -> None:
    """`run` is a run with one row of a loss, `folder` a folder with such a file."""
    run, folder = tmp_path / "run", tmp_path / "folder"
    record_one_loss(create_attempt(run))
    record_one_loss(folder)
    module = import_module(name)
    names = {**vars(module), "run": run, "folder": folder, "Path": Path}
    names |= {"Rows": Rows, "SeriesSpec": SeriesSpec}
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder().find(module, globs=names):
        runner.run(example)
    assert runner.failures == 0
