"""Reads the keys of one table of a rule file; goes on after a mistake, so that all are told."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from mindpulse.errors import RuleError
from mindpulse.rules.nearest import nearest

MAX_STEPS = 1_000_000
Made = TypeVar("Made")


class Fields:
    """The keys of a table.

    Args:
        table: as TOML gives it.
        known: the keys that there are.

    Attributes:
        problems: what is wrong, in the order in which it was found.

    Example:
        >>> fields = Fields({"name": "a", "for_steps": -1, "prt": "loss"}, ("name", "for_steps"))
        >>> fields.text("name"), fields.whole("for_steps", 1)
        ('a', 1)
        >>> [problem.message[:24] for problem in fields.problems]
        ["unknown key 'prt'; keys ", 'for_steps is -1: want a ']
    """

    def __init__(self, table: Mapping[str, object], known: Sequence[str]) -> None:
        self._table = table
        self.problems: list[RuleError] = []
        for key in table:
            if key not in known:
                keys = ", ".join(known)
                self.wrong(f"unknown key {key!r}{nearest(key, list(known))}; keys are {keys}")

    def wrong(self, message: str) -> None:
        """Notes a mistake."""
        self.problems.append(RuleError(message))

    def make(self, key: str, make: Callable[[object], Made], default: Made) -> Made:
        """What `make` makes of the value; `default` without the key, or if it refuses."""
        if key not in self._table:
            return default
        try:
            return make(self._table[key])
        except RuleError as error:
            self.problems.append(error)
            return default

    def text(self, key: str, default: str | None = None) -> str:
        """A text; without a default it must be there and say something."""
        value = self._table.get(key, default)
        if isinstance(value, str) and (default is not None or value.strip()):
            return value
        self.wrong(
            f"{key} is {shown(value)}: want a text" if key in self._table else f"{key} is missing"
        )
        return default or ""

    def whole(self, key: str, default: int) -> int:
        """A number of steps."""
        value = self._table.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_STEPS:
            return value
        self.wrong(f"{key} is {shown(value)}: want a whole number, 0 to {MAX_STEPS}")
        return default

    def one_of(self, key: str, allowed: Sequence[str], default: str) -> str:
        """One of a few words."""
        value = self._table.get(key, default)
        if value in allowed:
            return str(value)
        self.wrong(f"{key} is {shown(value)}: want one of {', '.join(allowed)}")
        return default

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        value = self._table.get(key, [])
        if isinstance(value, list) and all(isinstance(item, str) and item for item in value):
            return tuple(value)
        self.wrong(f'{key} is {shown(value)}: want a list of names, for example ["nonfinite"]')
        return ()


def shown(value: object) -> str:
    """A value as a message quotes it: not all of a long or deep one."""
    return _SHORT.repr(value)


_SHORT = reprlib.Repr()
_SHORT.maxlevel = 3
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 100
