"""What a line of the control log may say: its fields, their types, the verbs and their bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mindpulse.errors import UsageError
from mindpulse.jsonlines import number

STATUSES = ("done", "refused", "expired", "failed")
MAX_TEXT = 4000


MAX_BURST_STEPS = 1000


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an argument has to be: a number between two bounds, both excluded.

    With `whole` it is a whole number, and both bounds are included.
    """

    low: float
    high: float
    whole: bool = False

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
    "stop": {},
    "burst": {"steps": Bounds(1.0, MAX_BURST_STEPS, whole=True)},
    "snapshot": {},
}


def check_args(verb: object, args: object) -> dict[str, float]:
    """The arguments as floats.

    Raises:
        UsageError: the verb is unknown, or an argument is missing, unknown or out of bounds.

    Example:
        >>> check_args("scale_lr", {"factor": 0.5})
        {'factor': 0.5}
    """
    if not isinstance(verb, str) or verb not in VERBS:
        raise UsageError(f"verb {verb!r}: use one of {', '.join(VERBS)}")
    wanted = VERBS[verb]
    if not isinstance(args, Mapping) or set(args) != set(wanted):
        names = ", ".join(wanted) or "none"
        raise UsageError(f"arguments {args!r} of {verb}: give exactly these: {names}")
    values = {}
    for name, bounds in wanted.items():
        value = number(args[name])
        if value not in bounds:
            raise UsageError(f"{verb}: {name} is {args[name]!r}, want {bounds}")
        values[name] = float(args[name])
    return values


def _whole(low: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value < 2**63:
            raise UsageError(f"want a whole number from {low} up")
        return value

    return read


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise UsageError(f"want a text of at most {MAX_TEXT} characters")
    return value


def _time(value: object) -> float:
    read = number(value)
    if read is None or not math.isfinite(read):
        raise UsageError("want seconds since the epoch")
    return read


def _numbers(value: object) -> dict[str, float]:
    if not isinstance(value, dict) or len(value) > 100:
        raise UsageError("want an object of at most 100 numbers")
    numbers = {_text(key): number(item) for key, item in value.items()}
    if None in numbers.values():
        raise UsageError("want an object whose values are numbers")
    return {key: float(item) for key, item in numbers.items() if item is not None}


def _status(value: object) -> str:
    if value not in STATUSES:
        raise UsageError(f"want one of {', '.join(STATUSES)}")
    return str(value)


Fields = dict[str, Callable[[object], object]]

REQUEST_FIELDS: Fields = {
    "seq": _whole(1),
    "wall_time": _time,
    "verb": _text,
    "args": _numbers,
    "rule": _text,
    "reason": _text,
    "evidence": _numbers,
    "step": _whole(0),
    "expires_step": _whole(0),
    "attempt": _whole(1),
    "alert": _text,
}
ANSWER_FIELDS: Fields = {
    "seq": _whole(1),
    "wall_time": _time,
    "rank": _whole(0),
    "attempt": _whole(1),
    "step": _whole(0),
    "status": _status,
    "detail": _text,
    "data": _numbers,
}


def check_fields(fields: Mapping[str, object], wanted: Fields) -> dict[str, object]:
    """The fields, each read by its reader; all of `wanted` and nothing else.

    Raises:
        UsageError: a field is missing, unknown or has a wrong value; the message names it.
    """
    if set(fields) != set(wanted):
        missing, unknown = set(wanted) - set(fields), set(fields) - set(wanted)
        raise UsageError(f"fields missing: {sorted(missing)}, unknown: {sorted(unknown)}")
    checked = {}
    for name, read in wanted.items():
        try:
            checked[name] = read(fields[name])
        except UsageError as error:
            raise UsageError(f"{name} is {str(fields[name])[:80]!r}: {error}") from None
    return checked
