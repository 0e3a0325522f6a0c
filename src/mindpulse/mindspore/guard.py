"""The one place in a training where every error is caught: ours must never become theirs."""

from __future__ import annotations

import logging
from collections.abc import Callable

log = logging.getLogger("mindpulse")


class Guard:
    """Runs our code inside the user's training; counts what fails, tells it once, reports the rest.

    Args:
        report: called with (what failed, error as text) for each failure, to be kept in the run.
    """

    def __init__(self, report: Callable[[str, str], None]) -> None:
        self.failures = 0
        self._report = report
        self._told: set[str] = set()

    def __call__(self, what: str, function: Callable[[], object]) -> bool:
        """Runs `function`; returns whether it came through."""
        try:
            function()
        except Exception as error:
            self.failures += 1
            lines = str(error).strip().splitlines()
            text = f"{type(error).__name__}: {lines[0] if lines else ''}"
            if what not in self._told:
                self._told.add(what)
                log.warning("%s failed, the training goes on without it: %s", what, text)
            self._report(what, text)
            return False
        return True
