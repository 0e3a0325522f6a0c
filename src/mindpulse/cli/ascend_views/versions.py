"""Files in which CANN, driver and firmware say which version they are."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from mindpulse.ascend.info_files import read_cann, read_pairs
from mindpulse.cli.ascend_views.view import View

NAMES = {"version.info", "version.cfg", "ascend_install.info", "ascend_toolkit_install.info"}
SUFFIXES = (".info", ".cfg")


def is_one(path: Path) -> bool:
    """Whether a file is one of them by its name."""
    return path.name in NAMES or path.suffix in SUFFIXES


def view(path: Path) -> View | None:
    """The pairs of a file, None where there are none."""
    pairs = read_pairs(path)
    if not pairs:
        return None
    lines = [str(path), *(f"  {key}: {value}" for key, value in pairs.items())]
    return View(lines, {"what": "versions", "path": str(path), "pairs": pairs})


def view_of_cann(home: Path) -> View | None:
    """What a folder of CANN says about itself, None where it is none."""
    found = read_cann(home)
    if found is None:
        return None
    values = {key: value for key, value in asdict(found).items() if key != "home" and value}
    lines = [f"{home}  CANN"]
    lines += [
        f"  {key}: {', '.join(value) if isinstance(value, tuple) else value}"
        for key, value in values.items()
    ]
    return View(lines, {"what": "cann", "path": str(home), **values})
