"""When to sample: a small value object that both the training side and tests share."""

from __future__ import annotations

from dataclasses import dataclass

from mindpulse.errors import UsageError


@dataclass(frozen=True, slots=True)
class Every:
    """True on the first step and then on each `interval`-th: 1, 1 + interval, 1 + 2 interval...

    Example:
        >>> [step for step in range(1, 12) if Every(5)(step)]
        [1, 6, 11]
    """

    interval: int

    def __post_init__(self) -> None:
        if not isinstance(self.interval, int) or self.interval < 1:
            raise UsageError(f"interval {self.interval!r}: use a whole number of steps from 1 up")

    def __call__(self, step: int) -> bool:
        return (step - 1) % self.interval == 0
