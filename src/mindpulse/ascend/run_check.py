"""What `mindspore.run_check()` printed, saved as text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_VERSION = re.compile(r"MindSpore version:\s*(\S+)")
_PASSED = re.compile(r"calculation is correct.{0,200}?on platform \[?(\w+)\]?", re.IGNORECASE)
_FAILED = "MindSpore running check failed"
_ERROR = re.compile(r"^\[(?:ERROR|CRITICAL|EXCEPTION)\]")
_PLACE = re.compile(r"\[[^\[\]]*:\d+\]\s*\w+\]\s*")


@dataclass(frozen=True, slots=True)
class RunCheck:
    """The outcome of the check.

    Attributes:
        result: "failed" also where it only reported errors, "unknown" where it said neither.
        version: of MindSpore, "" if not printed.
        platform: where the calculation was right, "" if it was not.
        errors: the messages of the error lines, without time and place; they may stand beside a
            check that passed.
        cut: whether the text ends within a line.
    """

    result: Literal["passed", "failed", "unknown"]
    version: str = ""
    platform: str = ""
    errors: tuple[str, ...] = ()
    cut: bool = False


def read_run_check(text: str) -> RunCheck:
    """The outcome out of the text that the check printed, whatever stands around it.

    Example:
        >>> read_run_check("MindSpore version:  2.10.0").result
        'unknown'
    """
    errors = [line for line in text.splitlines() if _ERROR.match(line)]
    version, passed = _VERSION.search(text), _PASSED.search(text)
    failed = _FAILED in text or (errors and not passed)
    return RunCheck(
        result="passed" if passed else "failed" if failed else "unknown",
        version=version.group(1) if version else "",
        platform=passed.group(1) if passed else "",
        errors=tuple(_message(line) for line in errors),
        cut=any(_PLACE.search(line) is None for line in errors),
    )


def _message(line: str) -> str:
    place = _PLACE.search(line)
    return line[place.end() :] if place else line
