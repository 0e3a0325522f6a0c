"""Is everything there that a demo needs? Asked before anything slow is imported."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable
from importlib.util import find_spec

from mindpulse.errors import UsageError

MINDSPORE, NUMPY, SKLEARN = "mindspore>=2.7,<2.11", "numpy>=1.26,<2", "scikit-learn>=1.4"
LAST_PYTHON = (3, 12)


def check_packages(
    kind: str,
    *,
    has: Callable[[str], bool] = lambda module: find_spec(module) is not None,
    version: Callable[[str], str] = importlib.metadata.version,
    python: tuple[int, int] = (sys.version_info.major, sys.version_info.minor),
) -> None:
    """Refuses with the command that helps.

    Args:
        kind: "bert" or "vit"; only the latter needs scikit-learn.
        has, version, python: what is installed; given in tests.

    Raises:
        UsageError: a package is missing, or NumPy is 2.x.
    """
    if not has("mindspore"):
        if python > LAST_PYTHON:
            raise UsageError(
                f"there is no MindSpore for Python {python[0]}.{python[1]}: make the environment "
                f"with Python 3.10 to 3.12, for example: python3.11 -m venv .venv"
            )
        raise UsageError(f"the demo needs MindSpore, which is not installed; {_install(MINDSPORE)}")
    if int(version("numpy").partition(".")[0]) >= 2:
        raise UsageError(
            f"NumPy {version('numpy')} breaks the gradients of MindSpore in PyNative mode; "
            f"{_install(None)}"
        )
    if kind == "vit" and not has("sklearn"):
        raise UsageError(
            "the digits of the ViT demo come with scikit-learn, which is not installed; "
            f"{_install(SKLEARN)}"
        )


def _install(package: str | None) -> str:
    wanted = " ".join(f'"{name}"' for name in (package, NUMPY) if name)
    return f"install it with: {sys.executable} -m pip install {wanted}"
