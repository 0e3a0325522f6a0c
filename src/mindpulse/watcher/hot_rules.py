"""Rules that may change while they are used: a file is read again when it was written."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from mindpulse.rules.reload import RulesFile
from mindpulse.rules.rule import Rule

LOOK_S = 1.0


@runtime_checkable
class RuleSource(Protocol):
    """Where rules come from."""

    @property
    def rules(self) -> Sequence[Rule]:
        """The rules as they are now."""

    def changed(self) -> bool:
        """Whether they are others than at the call before."""


class Fixed:
    """Rules that stay as they are."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)

    def changed(self) -> bool:
        """Never."""
        return False


class FromFile:
    """The shipped rules under those of a file.

    A file that cannot be used after a change is told about, and the rules stay as they were.

    Args:
        path: TOML file, None for the shipped rules alone.
        tell: takes a sentence about a change.
        clock: seconds that only grow.

    Raises:
        RuleError: the file cannot be used.

    Example:
        >>> FromFile(None, print).changed()
        False
    """

    def __init__(
        self,
        path: Path | None,
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = RulesFile(path)
        self._path = path
        self._tell = tell
        self._clock = clock
        self._looked_at = clock()

    @property
    def rules(self) -> Sequence[Rule]:
        """The rules as they are now."""
        return self._file.rules

    def changed(self) -> bool:
        """Reads the file again if it was written since; looks once a second."""
        if self._path is None or self._clock() - self._looked_at < LOOK_S:
            return False
        self._looked_at = self._clock()
        if not self._file.changed():
            return False
        found = self._file.reload()
        if found.problem:
            self._tell(f"{found.problem}; the rules stay as they were")
        changed = bool(found.added or found.removed or found.changed)
        if changed:
            self._tell(f"{self._path} has changed: {len(self.rules)} rules from now on")
        return changed
