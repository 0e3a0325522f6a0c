"""What one run does, step by step: healthy unless a recipe changes it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.faults.data import Batch, Source, Text, from_step, held_out_part, train_part
from benchmarks.faults.settings import BATCH, HEALTHY, LENGTH, Variant

STEPS = 240
WARM_UP, LAST_SHARE = 30, 0.1  # steps until the peak; share of the peak that is left at the end
EVALUATE_EVERY = 50
Weights = NDArray[np.float32]


class Live(Protocol):
    """The training as a script sees it between two steps."""

    wait_s: list[float]  # that each rank's loader takes longer
    step_s: float  # that a step takes longer, whatever its data does
    held: list[Any]  # what stays in memory to the end of the run
    controls: list[dict[str, float]]  # of each rank
    overflowed: bool  # whether the last step was skipped

    def set(self, rank: int | None = None, **controls: float) -> None:
        """Changes controls of one rank, or of all, from now on."""

    def edit(self, pattern: str, change: Callable[[Weights], Weights], rank: int = 0) -> None:
        """Changes the weights whose names match a glob."""

    def gate(self, pattern: str, value: float) -> None:
        """Multiplies the gradients of the weights whose names match; 0 cuts them."""

    def hold(self, pattern: str, value: float) -> None:
        """Multiplies the learning rate of the weights whose names match; 0 holds them."""

    def forget_moments(self) -> None:
        """The optimizer as it was before the first step."""

    def resume(self, step: int) -> None:
        """As after an interruption: a new attempt that begins at a step."""

    def lose(self, rank: int) -> None:
        """A rank writes nothing any more, and the others go on without it."""


Action = Callable[[Live], None]


def cosine(peak: float, steps: int, warm_up: int = WARM_UP) -> Callable[[int], float]:
    """Learning rate of a 1-based step: linear warm-up, then half a cosine to a tenth."""

    def rate(step: int) -> float:
        if step <= warm_up:
            return peak * step / warm_up
        done = (step - warm_up) / max(1, steps - warm_up)
        return peak * (LAST_SHARE + (1 - LAST_SHARE) * 0.5 * (1 + float(np.cos(np.pi * done))))

    return rate


@dataclass
class Script:
    """One run.

    Attributes:
        label: the step before which a fault of this run strikes, 1-based.
        sources: the training data of each rank.
        judged_on: held-out data for the evaluation in the run, as a user would make it.
        schedule: learning rate of a step.
        controls: what differs from `HEALTHY` in all steps.
        initial: changes to the initial weights, name and values -> values.
        events: actions before the step they belong to.
        each: called before each step.
        calls_per_step: calls of the cell that make an optimizer step; `steps` counts calls.
    """

    variant: Variant
    seed: int
    steps: int = STEPS
    label: int = 1
    evaluate_every: int = EVALUATE_EVERY
    calls_per_step: int = 1
    sources: list[Source] = field(default_factory=list)
    judged_on: Source | None = None
    schedule: Callable[[int], float] | None = None
    controls: dict[str, float] = field(default_factory=dict)
    initial: list[Callable[[str, Weights, np.random.Generator], Weights]] = field(
        default_factory=list
    )
    events: list[tuple[int, Action]] = field(default_factory=list)
    each: list[Callable[[Live, int], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.sources:
            self.sources = [self.text(rank=rank) for rank in range(self.variant.ranks)]
        self.judged_on = self.judged_on or held_out(self.variant.kind)
        self.schedule = self.schedule or cosine(HEALTHY["rate"], self.steps)

    @property
    def rng(self) -> np.random.Generator:
        """Always the same one for a seed, for what a recipe draws."""
        return np.random.default_rng((self.seed, 7))

    def text(self, domain: str = "reference", rank: int = 0, share: float = 1.0) -> Text:
        """Batches of the first `share` of a domain's training part."""
        characters = train_part(domain)
        kept = characters[: max(LENGTH + 1, int(len(characters) * share))]
        return Text(self.variant.kind, kept, BATCH, LENGTH, self.seed * 10 + rank)

    def change_data(self, change: Callable[[Batch, int], Batch], since: int | None = None) -> None:
        """Each rank's batches from a step on (the label's, unless told) go through `change`."""
        step = self.label if since is None else since
        self.sources = [from_step(source, step, change) for source in self.sources]

    def at(self, step: int, action: Action) -> None:
        """Does something before a step."""
        self.events.append((step, action))

    def set_at(self, step: int, **controls: float) -> None:
        """Changes controls before a step."""
        self.at(step, lambda live: live.set(**controls))

    def scale_rate(self, since: int, factor: float, until: int | None = None) -> None:
        """Multiplies the learning rate from a step on."""
        plain = self.schedule
        assert plain is not None
        end = self.steps + 1 if until is None else until
        self.schedule = lambda step: plain(step) * (factor if since <= step < end else 1.0)


def held_out(kind: str, domain: str = "reference") -> Text:
    """The same held-out batches for every run of a model."""
    return Text(kind, held_out_part(domain), BATCH, LENGTH, seed=999_983)


def middle(seed: int, name: str, steps: int) -> int:
    """A step in the middle of a run that differs from seed to seed, for faults that strike then."""
    rng = np.random.default_rng((seed, zlib.crc32(name.encode())))
    return int(steps * 0.4) + int(rng.integers(0, max(1, int(steps * 0.2))))
