"""The health of the run while it trains, for the display: computed aside, never waited for."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from mindpulse import health, open_run
from mindpulse.errors import MindPulseError
from mindpulse.rules.load import load_rules

PAUSE_S = 3.0
# After a look that took 0.5 s it rests 5 s: both cores are needed for training.
PAUSE_TO_WORK = 10.0


class Pulse:
    """Looks at the run folder again and again in a thread; `text` is the latest finding."""

    def __init__(self, directory: Path) -> None:
        self.text = "not known yet"
        self._directory = directory
        self._rules = load_rules()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-pulse", daemon=True)

    def __enter__(self) -> Pulse:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        pause_s = PAUSE_S
        while not self._stop.wait(pause_s):
            began = time.monotonic()
            self.text = self.look()
            pause_s = max(PAUSE_S, PAUSE_TO_WORK * (time.monotonic() - began))

    def look(self) -> str:
        """The score, and what ails the run: "100", or "62 (loss: error)"."""
        try:
            found = health.score(open_run(self._directory), self._rules)
        except MindPulseError:
            return "not known yet"  # nothing has been written so far
        if found.score is None:
            return "not known yet"
        ailing = [
            f"{name}: {part.state}"
            for name, part in found.parts.items()
            if part.state in ("warning", "error", "critical")
        ]
        return f"{found.score:.0f}" + (f" ({', '.join(ailing)})" if ailing else "")
