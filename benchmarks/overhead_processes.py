"""Starts workers of overhead.py and takes what they print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
LIMIT_S = 3600


def told_by(worker: str, *arguments: str, python: Path = Path(sys.executable)) -> Any:
    """What the last line says that `worker` prints, as JSON; the last line of its error as text."""
    command = [str(python), str(FOLDER / worker), *arguments]
    environment = {**os.environ, "GLOG_v": "3"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=LIMIT_S)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return lines[-1] if lines else f"exit status {done.returncode}"
    return json.loads(done.stdout.strip().splitlines()[-1])
