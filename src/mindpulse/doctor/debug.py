"""A breakpoint does not stop: Python, MindSpore, device and model, one layer after the other."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mindpulse.doctor.checked import checked, made
from mindpulse.doctor.debug_graph import check_reading
from mindpulse.doctor.debug_python import check_environment, check_launch
from mindpulse.doctor.debug_reading import GRAPH
from mindpulse.doctor.debug_source import read_script
from mindpulse.doctor.result import Result


def check_debug(
    scripts: Sequence[Path] = (),
    environ: Mapping[str, str] = os.environ,
    launch: Sequence[Mapping[str, Any]] = (),
    launch_path: Path | None = None,
) -> list[Result]:
    """Why a breakpoint does not stop, or stops where nobody expects it.

    Args:
        scripts: the training script and those that hold its model; nothing of them is run.
        environ: the variables under which the training is debugged.
        launch: the configurations of `.vscode/launch.json`.
        launch_path: where they stand.
    """
    found = checked("debug.python", lambda: check_environment(environ))
    readings = []
    for script in scripts:
        reading, failed = made("debug.source", partial(read_script, script))
        found += failed
        if reading is not None:
            readings.append(reading)
    if any(reading.mode == GRAPH for reading in readings):
        for reading in readings:
            reading.assumed = GRAPH
    children = [reading.path for reading in readings if reading.children or reading.workers]
    path = launch_path or Path(".vscode/launch.json")
    found += checked("debug.launch", lambda: check_launch(launch, path, children))
    for reading in readings:
        found += checked("debug.graph", partial(check_reading, reading, environ))
    return found
