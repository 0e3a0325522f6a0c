"""MindPulse watches a Transformer while it trains: probes, rules, and actions by contract.

The names below are loaded when they are first used, so that importing the package is cheap.
The monitor for MindSpore is `mindpulse.mindspore`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mindpulse.catalogue.user import measure
    from mindpulse.debugging.peek import peek
    from mindpulse.debugging.snap import snap
    from mindpulse.interop import open_run
    from mindpulse.store.run import Run
    from mindpulse.summary import SummaryReader, SummaryRecord

__version__ = "0.1.0"
__all__ = [
    "Run", "SummaryReader", "SummaryRecord", "__version__", "measure", "open_run", "peek", "snap",
]  # fmt: skip

_HOMES = {
    "Run": "mindpulse.store.run",
    "SummaryReader": "mindpulse.summary",
    "SummaryRecord": "mindpulse.summary",
    "measure": "mindpulse.catalogue.user",
    "open_run": "mindpulse.interop",
    "peek": "mindpulse.debugging.peek",
    "snap": "mindpulse.debugging.snap",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
