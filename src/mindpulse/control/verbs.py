"""The verbs: what may be asked of a training, with the bounds of each argument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mindpulse.errors import UsageError
from mindpulse.jsonlines import number

MAX_BURST_STEPS = 1000
MAX_SKIPPED_STEPS = 100
MAX_PROFILED_STEPS = 1000
LARGEST_STEP = 2.0**53


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an argument has to be: a number between two bounds, both excluded.

    With `whole` it is a whole number, and both bounds are included. An argument with a `default`
    may be left out.
    """

    low: float
    high: float
    whole: bool = False
    default: float | None = None

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, float):
            return False
        if self.whole:
            return self.low <= value <= self.high and value.is_integer()
        return self.low < value < self.high

    def __str__(self) -> str:
        if self.whole:
            return f"a whole number from {self.low:g} to {self.high:g}"
        return f"a number between {self.low:g} and {self.high:g}, both excluded"


VERBS: dict[str, dict[str, Bounds]] = {
    "scale_lr": {"factor": Bounds(0.0, 1e3)},
    "skip_step": {"steps": Bounds(1.0, MAX_SKIPPED_STEPS, whole=True, default=1.0)},
    "rollback": {
        "factor": Bounds(0.0, 10.0, default=1.0),
        "before": Bounds(0.0, LARGEST_STEP, whole=True, default=0.0),
    },
    "keep": {"every": Bounds(0.0, 1e6, whole=True)},
    "set_clip": {"limit": Bounds(0.0, 1e6)},
    "free_memory": {},
    "burst": {"steps": Bounds(1.0, MAX_BURST_STEPS, whole=True)},
    "snapshot": {},
    "profile": {
        "steps": Bounds(1.0, MAX_PROFILED_STEPS, whole=True, default=20.0),
        "rank": Bounds(-1.0, 1e6, whole=True, default=-1.0),
        "metrics": Bounds(0.0, 2.0, whole=True, default=0.0),
    },
    "checkpoint": {},
    "stop": {},
    "undo": {"seq": Bounds(1.0, LARGEST_STEP, whole=True)},
}
# These change a training, so all its ranks do them at the same step or none does.
CHANGING = frozenset({"scale_lr", "skip_step", "rollback", "keep", "set_clip", "stop", "undo"})
# Of these one at a time, so that the effect of each can be seen.
MOVING = frozenset({"scale_lr", "skip_step", "rollback", "set_clip"})


def check_args(verb: object, args: object) -> dict[str, float]:
    """The arguments as floats, with the defaults of those that were left out.

    Raises:
        UsageError: the verb is unknown, or an argument is missing, unknown or out of bounds.

    Example:
        >>> check_args("scale_lr", {"factor": 0.5}), check_args("skip_step", {})
        ({'factor': 0.5}, {'steps': 1.0})
    """
    if not isinstance(verb, str) or verb not in VERBS:
        raise UsageError(f"verb {verb!r}: use one of {', '.join(VERBS)}")
    wanted = VERBS[verb]
    needed = {name for name, bounds in wanted.items() if bounds.default is None}
    if not isinstance(args, Mapping) or not needed <= set(args) <= set(wanted):
        raise UsageError(f"arguments {args!r} of {verb}: {_wanted(wanted)}")
    values = {}
    for name, bounds in wanted.items():
        given = args.get(name, bounds.default)
        value = number(given)
        if value is None or value not in bounds:
            raise UsageError(f"{verb}: {name} is {given!r}, want {bounds}")
        values[name] = value
    return values


def _wanted(wanted: Mapping[str, Bounds]) -> str:
    needed = [name for name, bounds in wanted.items() if bounds.default is None]
    text = f"give exactly these: {', '.join(needed) or 'none'}"
    optional = [name for name, bounds in wanted.items() if bounds.default is not None]
    return f"{text}; may be left out: {', '.join(optional)}" if optional else text
