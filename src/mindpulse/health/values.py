"""What a health score is made of, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mindpulse.messages import text


@dataclass(frozen=True, slots=True)
class Reason:
    """Why points were lost, or why a part is unknown: a text of the catalogue and its values."""

    key: str
    values: Mapping[str, str | int] = field(default_factory=dict)

    def text(self, lang: str = "en") -> str:
        """The sentence in a language."""
        return text(f"health.{self.key}", lang, **self.values)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the score.

    Attributes:
        score: 100 without findings; else how likely health is with the findings of this part
            alone, in percent of what it is without findings. None if nothing is known.
        state: "ok", "unknown", or the gravest severity that was met.
        reasons: why points were lost, or why it is unknown.
        concern: what no rule says: how the loss went over the whole run; None where it went well.
    """

    score: float | None
    state: str
    reasons: tuple[Reason, ...] = ()
    concern: Reason | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a run.

    Attributes:
        score: 100 x the probability that the run is healthy; None if no part is known.
        parts: by name, see `rules.rule.PARTS`.
        at_best: the score that a run has of which the same parts are known and nothing is found.
        calibrated: whether that probability was measured with the rules that judged here: the
            shipped ones as they were when it was fitted, and no alert of any other rule.
        unknown: sentences on what could not be judged.
    """

    score: float | None
    parts: dict[str, Part]
    at_best: float | None = None
    calibrated: bool = False
    unknown: tuple[str, ...] = ()
