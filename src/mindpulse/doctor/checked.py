"""A check that fails itself could not tell: it costs itself, and no other check."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from mindpulse.doctor.result import Result

Made = TypeVar("Made")


def checked(check: str, look: Callable[[], Iterable[Result]]) -> list[Result]:
    """What a check found; "unknown" with the error where it could not be carried out.

    Example:
        >>> checked("run.files", lambda: [1 / 0])[0].evidence()
        'this check failed: ZeroDivisionError: division by zero'
    """
    found, failed = made(check, lambda: list(look()))
    return failed if found is None else found


def made(check: str, make: Callable[[], Made]) -> tuple[Made | None, list[Result]]:
    """What several checks look at; None, and why, where it cannot be had."""
    try:
        return make(), []
    except Exception as error:  # whatever lies in a user's folder: the other checks still help
        lines = str(error).strip().splitlines()
        told = f"{type(error).__name__}: {lines[0] if lines else ''}"
        return None, [Result(check, "unknown", "check_failed", {"error": told}, weight=0.1)]
