"""Every n-th step."""

from __future__ import annotations

from dataclasses import dataclass

from mindpulse.errors import UsageError


@dataclass(frozen=True, slots=True)
class Every:
    """True on the first step and then on each `interval`-th: 1, 1 + interval, 1 + 2 interval...

    Raises:
        UsageError: the interval is no whole number from 1 up.

    Example:
        >>> [step for step in range(1, 12) if Every(5)(step)]
        [1, 6, 11]
    """

    interval: int

    def __post_init__(self) -> None:
        whole_steps("interval", self.interval)

    def __call__(self, step: int) -> bool:
        return (step - 1) % self.interval == 0


def whole_steps(name: str, value: object) -> int:
    """The value, if it is a number of steps.

    Raises:
        UsageError: it is no whole number from 1 up.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UsageError(f"{name} {value!r}: use a whole number of steps from 1 up")
    return value
