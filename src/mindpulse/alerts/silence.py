"""`silences.jsonl`: alerts that somebody asked not to be told for a time. Append only.

A silence covers one rule of a run or all of them, and always has an end. A later line on the same
rule takes the place of an earlier one; to end a silence is to give it an end that has passed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from mindpulse.errors import StoreError, UsageError
from mindpulse.jsonlines import LineTail, append, encode_line, locked, number

SILENCES_FILE = "silences.jsonl"
LONGEST_S = 30 * 86400.0
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+")
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


@dataclass(frozen=True, slots=True)
class Silence:
    """A time in which alerts are kept but not told.

    Attributes:
        rule: whose alerts, "" for those of all rules.
        until: end, in seconds since the epoch, UTC.
        created: when it was asked for.
        reason: why.
    """

    rule: str
    until: float
    created: float
    reason: str = ""


class Silences:
    """The silences of a run, read again when the file has grown.

    Example:
        >>> import tempfile
        >>> silences = Silences(Path(tempfile.mkdtemp()))
        >>> silences.add(Silence("gradient-spike", until=200.0, created=100.0))
        >>> silences.until("gradient-spike", now=150.0), silences.until("nonfinite", now=150.0)
        (200.0, 0.0)
    """

    def __init__(self, run_dir: Path | str) -> None:
        self._path = Path(run_dir) / SILENCES_FILE
        self._tail = LineTail(self._path)
        self._last: dict[str, Silence] = {}

    def add(self, silence: Silence) -> None:
        """Writes a silence down.

        Raises:
            StoreError: the file cannot be written.
        """
        try:
            with locked(self._path, mode=0o644) as descriptor:
                append(descriptor, encode_line(asdict(silence)))
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror or error}") from error

    def in_force(self, now: float) -> list[Silence]:
        """The silences that have not ended."""
        for line in self._tail.poll():
            silence = _silence(line)
            if silence:
                self._last[silence.rule] = silence
        return [silence for silence in self._last.values() if silence.until > now]

    def until(self, rule: str, now: float) -> float:
        """When the silence that covers a rule ends, 0.0 if none does."""
        ends = [found.until for found in self.in_force(now) if found.rule in ("", rule)]
        return max(ends, default=0.0)


def seconds_of(text: str) -> float:
    """A duration such as "90s", "30m", "2h" or "1d12h" in seconds.

    Raises:
        UsageError: it is none, or not between a second and 30 days.

    Example:
        >>> seconds_of("1h30m")
        5400.0
    """
    total = 0.0
    if _DURATION.fullmatch(text.strip()):
        total = sum(float(count) * _SECONDS[unit] for count, unit in _PART.findall(text))
    if not 1 <= total <= LONGEST_S:
        raise UsageError(f"{text!r}: use a time from 1s to 30d, such as 30m, 2h or 1d12h")
    return total


def iso(seconds: float) -> str:
    """A time in seconds since the epoch as ISO 8601.

    Example:
        >>> iso(1.7e9)
        '2023-11-14T22:13:20+00:00'
    """
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")


def _silence(line: bytes) -> Silence | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return _from_fields(found) if isinstance(found, dict) else None


def _from_fields(found: Mapping[str, Any]) -> Silence | None:
    until, created = number(found.get("until")), number(found.get("created"))
    rule, reason = found.get("rule"), found.get("reason", "")
    if until is None or created is None or not isinstance(rule, str):
        return None
    # A line that was written by hand must not silence a run for ever.
    if not 0 <= until - created <= LONGEST_S:
        return None
    return Silence(rule, until, created, str(reason))
