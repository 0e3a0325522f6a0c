"""The examples in the docstrings of the readers run as they stand."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import mindpulse.interop.logs
import mindpulse.interop.tables

MODULES = [
    "mindpulse.cli.import_",
    *(
        f"{room.__name__}.{module.name}"
        for room in (mindpulse.interop, mindpulse.interop.logs, mindpulse.interop.tables)
        for module in pkgutil.iter_modules(room.__path__)
    ),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    module = import_module(name)
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder().find(module, globs={**vars(module), "Path": Path}):
        runner.run(example)
    assert runner.failures == 0
