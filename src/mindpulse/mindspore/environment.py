"""Which software and which rank this process is; written into each run as its fingerprint."""

from __future__ import annotations

import os
import platform
import sys

import mindspore as ms
import numpy as np

from mindpulse import __version__
from mindpulse.ascend.versions import versions

# What of the machine's software goes into the fingerprint, where it is found.
FOUND = ("cann", "driver", "firmware", "mindformers", "mindnlp", "mindspore_commit", "protobuf")


def rank_of_process() -> int:
    """The rank that the launcher gave this process (RANK_ID), 0 where there is none."""
    text = os.environ.get("RANK_ID", "0")
    return int(text) if text.isdecimal() else 0


def ranks_of_launcher() -> int:
    """How many processes the launcher started together (RANK_SIZE), 1 where there is none."""
    text = os.environ.get("RANK_SIZE", "1")
    return max(1, int(text)) if text.isdecimal() else 1


def fingerprint() -> dict[str, str]:
    """Versions and settings that decide how a training behaves; read from files in milliseconds."""
    found = versions()
    mode = "graph" if ms.get_context("mode") == ms.GRAPH_MODE else "pynative"
    return {name: found[name] for name in FOUND if name in found} | {
        "mindpulse": __version__,
        "mindspore": ms.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": str(ms.get_context("device_target")),
        "mode": mode,
        "machine": platform.machine(),
        "program": os.path.basename(sys.argv[0]) or "python",
    }
