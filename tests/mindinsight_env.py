"""MindInsight 2.3.1 in a virtual environment of its own.

It needs a protobuf and a NumPy that are too old for ours.
"""

from __future__ import annotations

from pathlib import Path

import environments

# Newer versions of the last three do not start with it: protobuf's generated code is older,
# it uses names that NumPy 2 dropped, and `pkg_resources`.
REQUIREMENTS = ("mindinsight==2.3.1", "protobuf==3.20.1", "numpy<2", "pandas<3", "setuptools<81")


def environment() -> Path:
    """The folder of the environment; without it the test is skipped, on CI it fails."""
    return environments.environment("mindinsight-2.3.1", REQUIREMENTS)
