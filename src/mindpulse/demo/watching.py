"""The watcher of a demo: `mindpulse watch` as a process of its own, its lines passed on."""

from __future__ import annotations

import atexit
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

PATIENCE_S, LOOK_S = 15.0, 0.05


class Watcher:
    """Runs beside the training for as long as the `with` block lasts.

    Args:
        directory: the run folder.
        act: let it change the learning rate and stop the training.
        say: takes each line that it prints.
    """

    def __init__(self, directory: Path, act: bool, say: Callable[[str], None]) -> None:
        self._directory = directory
        self._act = act
        self._say = say

    def __enter__(self) -> Watcher:
        options = ["--act"] if self._act else []
        self._process = _start(self._directory, options)
        atexit.register(self._process.terminate)  # a second Ctrl-C may interrupt `__exit__`
        self._reader = threading.Thread(
            target=self._pass_on, args=(self._process.stdout,), daemon=True
        )
        self._reader.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._wait_until_it_listens()
        self._process.send_signal(signal.SIGTERM)  # it takes one last look at the rows, then ends
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        atexit.unregister(self._process.terminate)
        self._reader.join()

    def _wait_until_it_listens(self) -> None:
        """A training of a few steps may end before the watcher has begun."""
        deadline = time.monotonic() + PATIENCE_S
        while self._process.poll() is None and time.monotonic() < deadline:
            if (self._directory / "watcher.json").exists():
                return
            time.sleep(LOOK_S)

    def _pass_on(self, lines: IO[str] | None) -> None:
        assert lines is not None
        with lines:
            for line in lines:
                if line.strip():
                    self._say(line.rstrip("\n"))


def _start(directory: Path, options: Sequence[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-u", "-m", "mindpulse.cli", "watch", str(directory), *options]
    # In a session of its own: Ctrl-C is for the training, which then ends the watcher in order.
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
