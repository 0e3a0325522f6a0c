"""What a check of the doctor found."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mindpulse.messages import text

Status = Literal["ok", "problem", "unknown"]


@dataclass(frozen=True, slots=True)
class Result:
    """One finding of one check.

    Attributes:
        check: which check, by part and name: "env.numpy".
        status: "unknown" where the check could not tell; its evidence says why.
        finding: which text of the catalogue says it: `doctor.FINDING.evidence` and `.cure`.
        values: what the text quotes.
        command: to run next, "" for none.
        weight: how likely it is behind the symptom, 0 to 1; problems are told in this order.
    """

    check: str
    status: Status
    finding: str
    values: Mapping[str, object] = field(default_factory=dict)
    command: str = ""
    weight: float = 0.5

    def evidence(self, lang: str = "en") -> str:
        """What was seen, with the values."""
        return text(f"doctor.{self.finding}.evidence", lang, **self.values)

    def cure(self, lang: str = "en") -> str:
        """What to do; "" for a check that is ok."""
        if self.status == "ok":
            return ""
        return text(f"doctor.{self.finding}.cure", lang, **self.values)


def quoted(path: Path) -> str:
    """A path as a shell takes it, for a command to run next."""
    return shlex.quote(str(path))


def in_order(results: Sequence[Result]) -> list[Result]:
    """Problems first, the likeliest first; then what could not be told; then what is well."""
    rank = {"problem": 0, "unknown": 1, "ok": 2}
    return sorted(results, key=lambda result: (rank[result.status], -result.weight))
