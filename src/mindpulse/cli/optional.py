"""Packages that only some commands need, loaded when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from mindpulse.errors import UsageError

# What each package is installed by, and by what if the one that is there does not load.
COMMANDS = {
    "duckdb": ("pip install 'mindpulse[analyze]'", "pip install --upgrade duckdb"),
    # From 23 on pyarrow refuses the NumPy 1 that MindSpore needs.
    "pyarrow": ("pip install 'mindpulse[analyze]'", "pip install 'pyarrow>=17,<23'"),
}


def load(module: str) -> Any:
    """The module.

    Raises:
        UsageError: its package is missing or does not load; the message has the command to run.
    """
    package = module.partition(".")[0]
    install, repair = COMMANDS[package]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise UsageError(f"this needs {package}; run: {install}") from None
    except ImportError as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(f"{package} does not load: {reason}; run: {repair}") from error
