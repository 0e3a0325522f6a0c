"""Same, better, worse, different or unknown: what the numbers of a comparison come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mindpulse.compare.scale import Goal
from mindpulse.messages import text

State = Literal["same", "better", "worse", "different", "unknown"]
STATES: tuple[State, ...] = ("same", "better", "worse", "different", "unknown")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison comes to, and why, as a text of the catalogue with its values.

    Attributes:
        reason: the key below "compare.verdict.".
    """

    state: State
    reason: str
    values: Mapping[str, str]

    def sentence(self, lang: str = "en") -> str:
        """The verdict in one sentence."""
        return text(f"compare.verdict.{self.reason}", lang, **self.values)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a verdict is made of.

    Attributes:
        a_broken, b_broken: first step of the NaNs in which a run ends.
        distance, limit: of the courses.
        widest_seed: the largest distance of a seed to the mean of the others.
        difference: B less A at the end of the common range, in the unit of the values.
        told_difference: the same without caps on rows that explode.
        bound: what the difference may be by chance, or without mattering.
        apart: whether the courses lie apart beyond chance anywhere.
    """

    goal: Goal
    a_broken: int | None
    b_broken: int | None
    distance: float
    limit: float
    widest_seed: float | None
    difference: float
    told_difference: float
    bound: float
    apart: bool


def judge(evidence: Evidence) -> Verdict:
    """The verdict on two courses that could be compared.

    A run that ends in NaN is worse than one that does not. Otherwise the level at the end decides,
    if it differs by more than the bound; then the distance of the courses.
    """
    e = evidence
    values = {
        "distance": f"{e.distance:.3g}",
        "limit": f"{e.limit:g}",
        "difference": f"{abs(e.told_difference):.3g}",
        "bound": f"{e.bound:.2g}",
        "seed": "" if e.widest_seed is None else f"{e.widest_seed:.3g}",
    }
    if (e.a_broken is None) != (e.b_broken is None):
        state: State = "worse" if e.a_broken is None else "better"
        step = e.b_broken if e.a_broken is None else e.a_broken
        return Verdict(state, f"{state}.broken", {"step": str(step)})
    if abs(e.difference) > e.bound:
        return _by_level(e, values)
    if e.distance < e.limit:
        return Verdict("same", "same.near", values)
    if e.widest_seed is None and not e.apart:
        return Verdict("same", "same.noise", values)
    if e.widest_seed is not None and e.distance <= e.widest_seed:
        return Verdict("same", "same.seeds", values)
    return Verdict("different", "different.course", values)


def _by_level(e: Evidence, values: Mapping[str, str]) -> Verdict:
    above = e.difference > 0
    if e.goal == "none":
        return Verdict("different", f"different.{'above' if above else 'below'}", values)
    state: State = "worse" if above == (e.goal == "min") else "better"
    return Verdict(state, f"{state}.{'above' if above else 'below'}", values)
