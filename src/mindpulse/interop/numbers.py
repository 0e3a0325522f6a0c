"""Numbers and times as texts write them: read as they stand, or refused; never guessed."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, timezone

# What a text log may hold as one number. "0." and "1e-" are what a cut line leaves of a number.
NUMBER = r"[-+]?(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|NaN|inf|Infinity)"
_ALL = re.compile(rf"[ \t\r\n]*{NUMBER}[ \t\r\n]*", re.IGNORECASE)
MAX_TEXT = 64
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[-+]\d\d:?\d\d)?"
)
_MIN_EPOCH, _MAX_EPOCH = 1e8, 1e11  # 1973 to 5138: seconds since 1970, not a duration
MAX_STEP = 2**63 - 1


def number(text: str) -> float | None:
    """The number that a text is, None where it is none or was cut.

    Example:
        >>> number("1.203115E+01"), number(" nan"), number("0."), number("1_000")
        (12.03115, nan, None, None)
    """
    if len(text) > MAX_TEXT or not _ALL.fullmatch(text) or not text.isascii():
        return None
    return float(text)


def step_of(value: float | int | None) -> int | None:
    """The step that a number is, None where it is no whole number that fits 64 bits.

    Example:
        >>> step_of(100.0), step_of(0.5), step_of(float("nan"))
        (100, None, None)
    """
    if value is None or not -MAX_STEP <= value <= MAX_STEP or value != int(value):
        return None
    return int(value)


def step_text(text: str) -> int | None:
    """The step that a text is: digits are read exactly, "100.0" is 100.

    Example:
        >>> step_text("9007199254740993"), step_text("1e3"), step_text("x")
        (9007199254740993, 1000, None)
    """
    stripped = text.strip()
    if len(stripped) <= 20 and stripped.lstrip("-").isdecimal() and stripped.isascii():
        found = int(stripped) if stripped.count("-") <= 1 else None
        return step_of(found)
    return step_of(number(stripped))


def whole(digits: str) -> int:
    """The number that digits are; more than 19 of them are one that is no step.

    Example:
        >>> whole("0042"), whole("9" * 5000) > MAX_STEP
        (42, True)
    """
    return int(digits) if len(digits) <= 19 else MAX_STEP + 1


def epoch_seconds(value: float) -> float | None:
    """The value where it can be seconds since 1970, else None."""
    return value if math.isfinite(value) and _MIN_EPOCH <= value < _MAX_EPOCH else None


def wall_time(text: str) -> float:
    """Seconds since 1970 of the first time stamp in a text, NaN where there is none.

    A time without a zone, which is what logs write, is taken as UTC.

    Example:
        >>> wall_time("2020-05-29 11:31:45.763470 - Training"), wall_time("no time")
        (1590751905.76347, nan)
    """
    found = _TIME.search(text)
    if found is None:
        return math.nan
    *date, fraction, zone = found.groups()
    try:
        moment = datetime(*(int(part) for part in date), tzinfo=timezone.utc)  # type: ignore[misc,arg-type]
    except ValueError:  # 2020-13-45 has the shape of a date and is none
        return math.nan
    moment += timedelta(microseconds=int((fraction or "0").ljust(6, "0")[:6]))
    return moment.timestamp() - _offset(zone)


def _offset(zone: str | None) -> float:
    if zone in (None, "Z"):
        return 0.0
    digits = zone[1:].replace(":", "")
    seconds = 3600.0 * int(digits[:2]) + 60.0 * int(digits[2:])
    return -seconds if zone[0] == "-" else seconds
