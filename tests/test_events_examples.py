"""The examples in the docstrings of the event files run as they stand."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import mindpulse.interop.events
from event_samples import scalars, write
from mindpulse.series import Rows, SeriesSpec

MODULES = [
    f"mindpulse.interop.events.{module.name}"
    for module in pkgutil.iter_modules(mindpulse.interop.events.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str, tmp_path: Path) -> None:
    """`events` is a folder with an event file of one loss, `folder` an empty one."""
    events = tmp_path / "events"
    write(events, "tensorboard", [scalars("tensorboard", 1, 1.7e9, [("train/loss", 2.5)])])
    module = import_module(name)
    names = {**vars(module), "events": events, "folder": tmp_path / "folder", "Path": Path}
    names |= {"Rows": Rows, "SeriesSpec": SeriesSpec, "np": np}
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder().find(module, globs=names):
        runner.run(example)
    assert runner.failures == 0
