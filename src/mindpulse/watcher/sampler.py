"""Asks `npu-smi info` every few seconds, in a thread of its own: it may take seconds, or hang."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from mindpulse.ascend.npu_smi import NpuSmi, parse

TOOL = "npu-smi"
INTERVAL_S = 15.0
TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Sample:
    """What the tool told, and when, in seconds since the epoch."""

    wall_time: float
    smi: NpuSmi


def _nobody(sentence: str) -> None:
    """Nobody wants to know."""


class Sampler:
    """Keeps the newest sample.

    Args:
        interval_s: seconds from one question to the next.
        command: what prints the table.
        timeout_s: so long an answer is waited for; then the tool is killed.
        tell: takes a sentence, once, when the tool does not answer or prints no chips.

    Attributes:
        newest: the last sample, None before the first one.
    """

    def __init__(
        self,
        interval_s: float = INTERVAL_S,
        command: Sequence[str] = (TOOL, "info"),
        *,
        timeout_s: float = TIMEOUT_S,
        tell: Callable[[str], None] = _nobody,
    ) -> None:
        self.newest: Sample | None = None
        self._interval_s, self._timeout_s = interval_s, timeout_s
        self._command, self._tell = list(command), tell
        self._told = False
        self._stop = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._run, name="mindpulse-npu-smi", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread, and the tool if it is running."""
        self._stop.set()
        self._kill()
        self._thread.join(1.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            text = self._ask()
            if text:
                smi = parse(text)
                if smi.chips:
                    self.newest, self._told = Sample(time.time(), smi), False
                else:
                    self._complain(f"printed no chips but {text.strip()[:100]!r}")
            self._stop.wait(self._interval_s)

    def _ask(self) -> str:
        """What the tool prints, "" where it fails."""
        if self._process is not None and self._process.poll() is None:
            return ""  # it hangs in the driver, where no signal reaches it
        try:
            process = self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                errors="replace",
                start_new_session=True,
                env={**os.environ, "LC_ALL": "C"},
            )
            text, _ = process.communicate(timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            self._kill()
            self._complain(f"gave no answer within {self._timeout_s:g} s")
            return ""
        except (OSError, ValueError) as error:
            self._complain(f"cannot be run: {error}")
            return ""
        if process.returncode and not self._stop.is_set():
            self._complain(f"ended with code {process.returncode}")
            return ""
        return text

    def _kill(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
            if process.poll() is not None and process.stdout is not None:
                process.stdout.close()

    def _complain(self, why: str) -> None:
        if not self._told:
            self._told = True
            self._tell(f"{' '.join(self._command)} {why}; the devices are not recorded meanwhile")


def sampler(interval_s: float, tell: Callable[[str], None] = _nobody) -> Sampler | None:
    """What asks the tool, None where it is not installed or not wanted (0 s)."""
    if not interval_s or shutil.which(TOOL) is None:
        return None
    return Sampler(interval_s, tell=tell)
