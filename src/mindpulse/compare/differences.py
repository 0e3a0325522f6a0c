"""What two runs say differently about themselves: texts of the fingerprint, and series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mindpulse.store.asked import ALIAS
from mindpulse.store.run import Run


@dataclass(frozen=True, slots=True)
class Differences:
    """What differs between two runs.

    Attributes:
        tags: (key, text of A, text of B) in order of keys; None where a run does not say.
        equal: how many texts are the same.
        only_a, only_b: series that the other run does not have.
    """

    tags: tuple[tuple[str, str | None, str | None], ...]
    equal: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


def find_differences(a: Run, b: Run) -> Differences:
    """The differences of two runs."""
    series_a, series_b = set(a.specs()), set(b.specs())
    return Differences(
        *differing(a.tags, b.tags),
        only_a=tuple(sorted(series_a - series_b)),
        only_b=tuple(sorted(series_b - series_a)),
    )


def differing(
    a: Mapping[str, str], b: Mapping[str, str]
) -> tuple[tuple[tuple[str, str | None, str | None], ...], int]:
    """The texts that differ, and how many do not.

    How another tool calls a series ("alias.NAME") is no difference of the trainings.

    Example:
        >>> differing({"lr": "1e-4", "model": "bert"}, {"lr": "2e-4", "model": "bert"})
        ((('lr', '1e-4', '2e-4'),), 1)
    """
    keys = sorted(key for key in {*a, *b} if not key.startswith(ALIAS))
    found = tuple((key, a.get(key), b.get(key)) for key in keys if a.get(key) != b.get(key))
    return found, len(keys) - len(found)
