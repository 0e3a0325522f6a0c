"""What an action is, and how it says no."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

Args = Mapping[str, float]
Data = dict[str, float]


class RefusedError(Exception):
    """This training cannot do it; the text says why, and what would make it possible."""


class Verb(Protocol):
    """One action of a training."""

    def consider(self, args: Args) -> Data:
        """Whether it could be done now.

        Returns:
            what has to be the same on all ranks, as {"state_step": 40}.

        Raises:
            RefusedError: it cannot.
        """

    def do(self, args: Args, step: int) -> tuple[str, Data]:
        """Does it before optimizer step `step`.

        Returns:
            a sentence, and the numbers that an undo needs.

        Raises:
            RefusedError: it cannot.
        """

    def undo(self, args: Args, data: Data) -> tuple[str, Data]:
        """Takes it back.

        Args:
            args, data: of the request, and what `do` returned for it.

        Raises:
            RefusedError: it cannot be taken back.
        """
