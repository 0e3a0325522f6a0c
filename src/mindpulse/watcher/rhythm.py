"""How long a training may say nothing before it counts as stalled: learnt from its own rhythm.

Trainings pause: to compile (once or twice at the beginning, for minutes), to evaluate, to save a
checkpoint. What a run has done before is nothing to worry about, so the limit grows with the
pauses that were seen; a single pause counts for less than one that comes again.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

# Bounds of the limit. Few evaluations of a training that is watched take longer than the first.
SHORTEST_S, LONGEST_S = 180.0, 3600.0
# While so few steps are known, graphs may still be compiled.
FEW_STEPS, COMPILING_S = 10, 1800.0
COMPILED = 2  # pauses
# The process that wrote is gone: there is nothing to wait for but the last rows.
GONE_S = 15.0
TYPICAL, RECURRING, ONCE = 30.0, 3.0, 1.5
REMEMBERED = 1024


class Rhythm:
    """The pauses between the steps of one rank.

    Example:
        >>> rhythm = Rhythm()
        >>> rhythm.add(np.arange(100) * 20.0)
        >>> rhythm.limit_s()
        600.0
    """

    def __init__(self) -> None:
        self._last = -np.inf
        self._steps = 0
        self._pauses: deque[float] = deque(maxlen=REMEMBERED)
        self._longest = [0.0, 0.0]

    def begin(self) -> None:
        """A new attempt: what is usual stays known, but there may be something to compile."""
        self._last, self._steps = -np.inf, 0

    def add(self, wall_times: NDArray[np.float64]) -> None:
        """Takes in when steps were recorded, in seconds since the epoch."""
        times = np.unique(wall_times[np.isfinite(wall_times)])
        times = times[times > self._last]
        if not len(times):
            return
        known = np.append(self._last, times) if np.isfinite(self._last) else times
        pauses = np.diff(known)
        # The first steps compile; how long they take says nothing about the others.
        pauses = pauses[max(0, COMPILED - max(0, self._steps - 1)) :]
        pauses = pauses[pauses <= LONGEST_S]  # else it had stopped
        self._steps += len(times)
        self._last = float(times[-1])
        self._pauses.extend(pauses[-REMEMBERED:].tolist())
        self._longest = sorted([*self._longest, *pauses.tolist()])[-2:]

    def typical_s(self) -> float:
        """The median pause, 0.0 while none is known."""
        return float(np.median(self._pauses)) if self._pauses else 0.0

    def limit_s(self, gone: bool = False) -> float:
        """How long the rank may say nothing.

        Args:
            gone: the process that wrote is known to have ended.
        """
        if gone:
            return GONE_S
        again, once = self._longest
        usual = max(TYPICAL * self.typical_s(), RECURRING * again, ONCE * once)
        if self._steps < FEW_STEPS:
            usual = max(usual, COMPILING_S)
        return min(max(usual, SHORTEST_S), LONGEST_S)
