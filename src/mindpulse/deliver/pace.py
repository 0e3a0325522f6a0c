"""How often: a bucket of tokens, and growing pauses between attempts. The time is an argument."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0


@dataclass(slots=True)
class Bucket:
    """At most `burst` messages at once, and one each `every_s` seconds in the long run.

    Example:
        >>> bucket = Bucket(every_s=10.0, burst=2)
        >>> bucket.take(0.0), bucket.take(0.0)
        (None, None)
        >>> bucket.free_at(0.0), bucket.free_at(30.0)
        (10.0, 30.0)
    """

    every_s: float
    burst: int
    _left: float = field(init=False)
    _at: float | None = None

    def __post_init__(self) -> None:
        self._left = float(self.burst)

    def free_at(self, now: float) -> float:
        """When the next message may go, `now` at the earliest."""
        self._fill(now)
        return now if self._left >= 1 - 1e-9 else now + (1 - self._left) * self.every_s

    def take(self, now: float) -> None:
        """One message goes."""
        self._fill(now)
        self._left = max(0.0, self._left - 1)

    def _fill(self, now: float) -> None:
        passed = 0.0 if self._at is None else max(0.0, now - self._at)
        gained = passed / self.every_s if self.every_s else float(self.burst)
        self._left, self._at = min(float(self.burst), self._left + gained), now


def pause_s(failures: int, rng: random.Random) -> float:
    """The pause after so many failures in a row: it doubles, and is spread by jitter over its
    upper half, so that many watchers do not come back at the same moment.

    Example:
        >>> 4.0 <= pause_s(4, random.Random(0)) <= 8.0, pause_s(99, random.Random(0)) <= 60.0
        (True, True)
    """
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures - 1, 30))
    return longest * rng.uniform(0.5, 1.0)
