"""Every error that MindPulse raises.

    MindPulseError
    |-- UsageError (also ValueError)     a caller gave something that cannot be used
    |   |-- RuleError                    a rule or its expression is wrong; points at the character
    |   `-- NameTakenError               a measure of this name exists already
    |-- StoreError (also OSError)        the run folder cannot be written or read
    |   `-- FormatError                  the bytes are not what the format says
    `-- PlantError                       a probe cannot be planted or did not run

A message quotes the value seen, says what was wanted, and what to do next.
"""

from __future__ import annotations


class MindPulseError(Exception):
    """Base of all errors of this package."""


class UsageError(MindPulseError, ValueError):
    """A caller gave something that cannot be used."""


class RuleError(UsageError):
    """A rule cannot be used. `text` and `column` (0-based) point at the character."""

    def __init__(self, message: str, text: str = "", column: int = 0) -> None:
        self.message = message
        self.text = text
        self.column = column
        pointer = f"\n  {text}\n  {' ' * column}^" if text else ""
        super().__init__(message + pointer)


class NameTakenError(UsageError):
    """A measure of this name exists already; the message names both definitions."""


class StoreError(MindPulseError, OSError):
    """The run folder cannot be written or read."""


class FormatError(StoreError):
    """The bytes of a file are not what the format says."""


class PlantError(MindPulseError):
    """A probe cannot be planted, or was planted and did not run."""
