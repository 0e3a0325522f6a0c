"""What a recipe is, and the table of all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.faults.script import STEPS, Script, middle
from benchmarks.faults.settings import VARIANTS
from mindpulse.rules.rule import PARTS

START, MIDDLE = "start", "middle"
LEVELS = ("low", "medium", "high")
# "loss": the clean held-out loss at the end; what harms nobody's loss is judged by what it costs.
JUDGES = ("loss", "step_time", "memory", "rank")
Apply = Callable[[Script, Any], None]


@dataclass(frozen=True)
class Recipe:
    """Something that is done to a training.

    Attributes:
        name: as in the index of the recordings.
        category: the part of health that it ails, one of `mindpulse.rules.rule.PARTS`; None for a
            healthy recipe.
        levels: severity -> the knob's value; {"": value} where there are none.
        apply: changes the script of a run, given the knob's value.
        variants: names of the structures that it is done to.
        when: "start", "middle" (a step that differs from seed to seed), or a step: where a fault
            that is there from the start cannot be told from a healthy beginning before.
        layers: severity -> the layer that it is in, 0-based.
        judged_by: one of `JUDGES`.
        steps: of a run.
        seeds: how many runs of each variant are wanted of a healthy recipe.
        what: one line.
    """

    name: str
    category: str | None
    levels: Mapping[str, Any]
    apply: Apply
    variants: tuple[str, ...]
    what: str
    when: str | int = START
    layers: Mapping[str, int] = field(default_factory=dict)
    judged_by: str = "loss"
    steps: int = STEPS
    seeds: int = 7

    @property
    def kind(self) -> str:
        """ "fault" or "healthy", as it is meant."""
        return "fault" if self.category else "healthy"

    def script(self, variant: str, severity: str, seed: int, steps: int | None = None) -> Script:
        """The script of one run.

        Args:
            steps: fewer steps than the recipe's own, for a trial.
        """
        length = steps or self.steps
        label = middle(seed, self.name, length) if self.when == MIDDLE else 1
        script = Script(VARIANTS[variant], seed, length, label)
        self.apply(script, self.levels[severity])
        if isinstance(self.when, int):
            script.label = min(self.when, length)
        return script


RECIPES: dict[str, Recipe] = {}


def fault(
    name: str,
    category: str,
    levels: tuple[Any, ...],
    *,
    variants: tuple[str, ...] = ("decoder",),
    when: str | int = START,
    layer: int | tuple[int | None, ...] | None = None,
    **more: Any,
) -> Callable[[Apply], Apply]:
    """Enters a fault; its one-line docstring says what is done. One level means "high" only."""
    names = LEVELS if len(levels) == len(LEVELS) else LEVELS[-len(levels) :]
    layers = layer if isinstance(layer, tuple) else (layer,) * len(names)

    def enter(apply: Apply) -> Apply:
        assert category in PARTS
        placed = {n: x for n, x in zip(names, layers, strict=True) if x is not None}
        return _enter(
            Recipe(
                name, category, dict(zip(names, levels, strict=True)), apply, variants,
                _what(apply), when, placed, **more,
            )
        )  # fmt: skip

    return enter


def healthy(
    name: str, *, variants: tuple[str, ...] = ("decoder",), value: Any = None, **more: Any
) -> Callable[[Apply], Apply]:
    """Enters a healthy recipe: one that a rule may take for a fault."""

    def enter(apply: Apply) -> Apply:
        return _enter(
            Recipe(name, None, {"": value}, apply, variants, _what(apply), MIDDLE, **more)
        )

    return enter


def _what(apply: Apply) -> str:
    return (apply.__doc__ or "").strip().splitlines()[0]


def _enter(recipe: Recipe) -> Apply:
    if recipe.name in RECIPES:
        raise ValueError(f"{recipe.name!r}: there are two recipes of that name")
    unknown = set(recipe.variants) - set(VARIANTS)
    if unknown or recipe.judged_by not in JUDGES:
        raise ValueError(f"{recipe.name!r}: unknown {unknown or recipe.judged_by!r}")
    RECIPES[recipe.name] = recipe
    return recipe.apply
