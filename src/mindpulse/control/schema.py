"""What a line of the control log may say: its kinds, their fields and the types of these."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from mindpulse.control.verbs import MAX_BURST_STEPS, VERBS, Bounds, check_args
from mindpulse.errors import UsageError
from mindpulse.jsonlines import number

__all__ = ["MAX_BURST_STEPS", "VERBS", "Bounds", "check_args", "check_fields"]

STATUSES = ("ready", "done", "refused", "expired", "failed")
EFFECTS = ("helped", "better", "none", "unknown")
MAX_TEXT = 4000


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


def _one_of(*allowed: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value not in allowed:
            raise UsageError(f"want one of {', '.join(allowed)}")
        return str(value)

    return read


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise UsageError("want true or false")
    return value


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
    "ranks": _whole(1),
}
ANSWER_FIELDS: Fields = {
    "seq": _whole(1),
    "wall_time": _time,
    "rank": _whole(0),
    "attempt": _whole(1),
    "step": _whole(0),
    "status": _one_of(*STATUSES),
    "detail": _text,
    "data": _numbers,
}
DECISION_FIELDS: Fields = {
    "seq": _whole(1),
    "wall_time": _time,
    "go": _truth,
    "step": _whole(0),
    "expires_step": _whole(0),
    "reason": _text,
}
JUDGEMENT_FIELDS: Fields = {
    "seq": _whole(1),
    "wall_time": _time,
    "step": _whole(0),
    "effect": _one_of(*EFFECTS),
    "before": _numbers,
    "after": _numbers,
}
# What a line of an earlier version does not have.
OPTIONAL: Mapping[str, object] = {"ranks": 1}


def check_fields(fields: Mapping[str, object], wanted: Fields) -> dict[str, object]:
    """The fields, each read by its reader; all of `wanted` and nothing else.

    Raises:
        UsageError: a field is missing, unknown or has a wrong value; the message names it.
    """
    filled = {name: value for name, value in OPTIONAL.items() if name in wanted} | dict(fields)
    if set(filled) != set(wanted):
        missing, unknown = set(wanted) - set(filled), set(filled) - set(wanted)
        raise UsageError(f"fields missing: {sorted(missing)}, unknown: {sorted(unknown)}")
    checked = {}
    for name, read in wanted.items():
        try:
            checked[name] = read(filled[name])
        except UsageError as error:
            raise UsageError(f"{name} is {str(filled[name])[:80]!r}: {error}") from None
    return checked
