"""What the benchmarks share: options, the machine they ran on, a table, a JSON file."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

PACKAGES = ("mindpulse", "mindspore", "numpy")


def parser(description: str) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--quick", action="store_true", help="fewer repetitions: under a minute")
    options.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    return options


def machine() -> dict[str, Any]:
    """Where and when the figures were taken; the load tells how far to trust them."""
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "versions": {name: version(name) for name in PACKAGES},
    }


def cpu_model() -> str:
    """The processor's name out of /proc/cpuinfo, or what the platform module knows."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def version(package: str) -> str:
    """Installed version, or "not installed"."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; numbers are set to the right.

    Example:
        >>> print(table(("what", "us"), [("a", 1.5)]))
        | what |  us |
        | :--- | --: |
        | a    | 1.5 |
    """
    body = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(head), *body]) for i in range(len(head))]
    numeric = [i > 0 for i in range(len(head))]
    rule = [
        "-" * (width - 1) + ":" if right else ":" + "-" * (width - 1)
        for width, right in zip(widths, numeric, strict=True)
    ]
    lines = [list(head), rule, *body]
    return "\n".join("| " + " | ".join(_cells(line, widths, numeric)) + " |" for line in lines)


def _cells(line: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> list[str]:
    return [
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(line, widths, numeric, strict=True)
    ]


def finish(name: str, figures: dict[str, Any], path: Path | None) -> None:
    """Writes `figures` with the machine they belong to, if a file was asked for."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"benchmark": name, "machine": machine(), **figures}
    path.write_text(json.dumps(document, indent=2) + "\n")
    print(f"\nfigures written to {path}", file=sys.stderr)
