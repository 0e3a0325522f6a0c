"""How much time the monitor takes, and by how much it must thin itself out to keep to a budget.

    share = dear part + host part
    dear part = sum over tiers of (how often the tier runs) x (median of its excess)
    excess    = time of a dear step / median of the cheap steps just before it - 1
    host part = seconds spent on the host / seconds of the steps without them

What tier 0 itself costs cannot be seen, as no step runs without it. Each dear step is compared with
its own neighbours, so that a drift of the step time is not taken for a cost. All medians come with
a standard error, and a decision is made only where the error leaves no doubt. A shrinking that had
to be undone doubles the patience before the next, so that noise cannot make the factor flap.
"""

from __future__ import annotations

import math
from collections import deque
from statistics import fmean, median

from mindpulse.errors import UsageError

MIN_DEAR_STEPS = 8  # before anything is judged
LONG_DEAR_STEPS = 32  # in a row below half the bound, before intervals shrink again
DOUBT = 2.0  # standard errors
MAX_FACTOR = 64
NEIGHBOURS = 8  # cheap steps that a dear one is compared with
NEAR_STEPS = 64  # within which the last of them must lie
KEPT = 64  # excesses per tier
BLOCK_STEPS = 128  # of the host part: longer than from one drain to the next
BLOCKS = 5


class Budget:
    """Keeps the monitor's share of the training time below a bound.

    Args:
        max_overhead: the bound, a share of the time without a monitor: 0.02 for 2 %.

    Attributes:
        factor: by what the intervals of dear measures must be multiplied now: 1 (as the user
            asked), 2, 4... 64.

    Raises:
        UsageError: the bound is not above 0 and at most 1.

    Example:
        >>> budget = Budget(0.02)
        >>> for step in range(500):  # a dear step takes half as long again: 5 % at each tenth
        ...     dear = step % (10 * budget.factor) == 0
        ...     changed = budget.add(tier=int(dear), seconds=0.15 if dear else 0.1)
        >>> budget.factor
        4
    """

    def __init__(self, max_overhead: float) -> None:
        if isinstance(max_overhead, bool) or not isinstance(max_overhead, (int, float)):
            raise UsageError(f"max_overhead {max_overhead!r}: use a number such as 0.02 for 2 %")
        if not 0 < max_overhead <= 1:
            raise UsageError(f"max_overhead {max_overhead!r}: use a share above 0 and at most 1")
        self.max_overhead = float(max_overhead)
        self.factor = 1
        self._cheap: deque[float] = deque(maxlen=NEIGHBOURS)
        self._since_cheap = 0
        self._excess: dict[int, deque[float]] = {}
        self._host: deque[float] = deque(maxlen=BLOCKS)
        self._block: list[tuple[float, float]] = []
        self._ran: dict[int, int] | None = None  # steps per tier, after the first dear one
        self._calm = 0
        self._patience = LONG_DEAR_STEPS
        self._shrank = False
        self._judged: float | None = None

    def add(self, tier: int, seconds: float, host_s: float = 0.0, *, burst: bool = False) -> bool:
        """Takes in one step.

        Args:
            tier: which variant of the step ran.
            seconds: from the end of the step before to the end of this one.
            host_s: what the monitor itself spent of that on the host.
            burst: the step was made dear by the user's wish; it says what a dear step costs, but
                not how often one comes.

        Returns:
            True if `factor` has changed.
        """
        bare = seconds - host_s
        if not (math.isfinite(bare) and bare > 0 and host_s >= 0):
            return False
        self._block.append((bare, host_s))
        if len(self._block) == BLOCK_STEPS:
            self._host.append(_host_share(self._block))
            self._block = []
        if not burst:
            self._count(tier)
        if tier == 0:
            self._cheap.append(bare)
            self._since_cheap = 0
            return False
        self._since_cheap += 1
        if len(self._cheap) >= NEIGHBOURS // 2 and self._since_cheap <= NEAR_STEPS:
            excess = self._excess.setdefault(tier, deque(maxlen=KEPT))
            excess.append(bare / median(self._cheap) - 1)
        return not burst and self._judge()

    @property
    def dear_share(self) -> float | None:
        """The dear part at the present factor; None while too few dear steps were seen."""
        found = self._dear()
        return None if found is None else found[0]

    @property
    def host_share(self) -> float:
        """The host part: the median over the last blocks of steps."""
        return median(self._host) if self._host else _host_share(self._block)

    @property
    def share(self) -> float | None:
        """The monitor's share of the time; None while too few dear steps were seen.

        Just after a change of the factor it is the share that led to the change.
        """
        dear = self.dear_share
        return self._judged if dear is None else dear + self.host_share

    def _count(self, tier: int) -> None:
        if self._ran is not None:
            self._ran[tier] = self._ran.get(tier, 0) + 1
        elif tier:
            self._ran = {}

    def _dear_steps(self) -> int:
        """How many dear steps were counted since the last change of the factor."""
        return sum(count for tier, count in (self._ran or {}).items() if tier)

    def _dear(self) -> tuple[float, float] | None:
        """(dear part, the doubt about it)."""
        if self._ran is None or self._dear_steps() < MIN_DEAR_STEPS:
            return None
        known = {t: e for t, e in self._excess.items() if len(e) >= MIN_DEAR_STEPS}
        if not known:
            return None
        total = sum(self._ran.values())
        often = {tier: self._ran.get(tier, 0) / total for tier in known}
        part = sum(often[tier] * median(excess) for tier, excess in known.items())
        variance = sum((often[tier] * _error(excess)) ** 2 for tier, excess in known.items())
        return max(0.0, part), DOUBT * math.sqrt(variance)

    def _judge(self) -> bool:
        found = self._dear()
        if found is None:
            blind = self._dear_steps() >= MIN_DEAR_STEPS and not self._cheap
            return blind and self.factor == 1 and self._become(2)  # no step to compare with
        (dear, doubt), host = found, self.host_share
        self._judged = dear + host
        self._calm = self._calm + 1 if dear + doubt + host < self.max_overhead / 2 else 0
        if dear - doubt + host > self.max_overhead:
            return self._grow(self._enough(dear - doubt, host))
        if self._calm < self._patience or self.factor == 1:
            return False
        self._shrank = True
        return self._become(self.factor // 2)

    def _grow(self, factor: int) -> bool:
        if factor > self.factor and self._shrank:
            self._patience *= 2
            self._shrank = False
        return self._become(factor)

    def _enough(self, dear: float, host: float) -> int:
        """The smallest factor that keeps to the bound.

        Where the host part leaves nothing, thinning cannot help; then dear steps may take a
        quarter of the bound, instead of never being taken at all.
        """
        left = max(self.max_overhead - host, self.max_overhead / 4)
        factor = self.factor
        while dear > left and factor < MAX_FACTOR:
            factor, dear = factor * 2, dear / 2
        return factor

    def _become(self, factor: int) -> bool:
        if factor == self.factor:
            return False
        self.factor = factor
        self._ran = None
        self._calm = 0
        return True


def _host_share(steps: list[tuple[float, float]]) -> float:
    return fmean(host for _, host in steps) / fmean(bare for bare, _ in steps) if steps else 0.0


def _error(values: deque[float]) -> float:
    """Standard error of the median, from the median distance to it."""
    middle = median(values)
    spread = 1.4826 * median(abs(value - middle) for value in values)
    return 1.2533 * spread / math.sqrt(len(values))
