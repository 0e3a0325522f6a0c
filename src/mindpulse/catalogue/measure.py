"""What a measure is: a name, a formula, and the NumPy reference that probes are tested against."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from mindpulse.errors import NameTakenError, UsageError
from mindpulse.series import SeriesSpec, check_tag

PLACES = (
    "attention", "norm", "ffn", "logits", "router", "gradient", "clipping", "weight", "optimizer",
    "loss", "host", "watcher", "",
)  # fmt: skip
WITHIN = ("mean", "max", "sum", "last")
COSTS = ("cheap", "dear")
LEVELS = ("cheap", "default", "all")


@dataclass(frozen=True, slots=True)
class Measure:
    """A measured quantity.

    Attributes:
        tag: its name everywhere: file, rule, metric.
        formula: how it is computed, in words and symbols.
        unit: unit of the values, "" for a pure number.
        axes: axes of its columns, () for one value per step.
        reduction: how ranks are merged: mean, max, min, sum, none.
        source: paper or document that it comes from.
        reference: the same in NumPy; one value per column. None for a user's measure without one.
        family: loss, attention, gradient, weight, activation, optimizer, output, moe, memory,
            hardware; or user.
        place: where it is taken (`PLACES`); "host" by the training loop, "watcher" beside the
            training by the process that watches, "" from other series.
        within: how several calls within one optimizer step are merged: mean, max, sum, last.
        cost: "cheap" is measured on each step by default, "dear" on each tenth.
        level: the smallest selection that holds it: cheap, default, all.

    Raises:
        UsageError: the tag cannot be one, or a field has a value that does not exist.
    """

    tag: str
    formula: str
    unit: str
    axes: tuple[str, ...]
    reduction: str
    source: str
    reference: Callable[..., Any] | None
    family: str
    place: str
    within: str = "mean"
    cost: str = "dear"
    level: str = "default"

    def __post_init__(self) -> None:
        check_tag(self.tag)
        for field, known in (
            ("place", PLACES), ("within", WITHIN), ("cost", COSTS), ("level", LEVELS),
        ):  # fmt: skip
            value = getattr(self, field)
            if value not in known:
                raise UsageError(f"{field} {value!r} of measure {self.tag!r}: use one of {known}")

    def spec(self, columns: Iterable[tuple[str, ...]] = ()) -> SeriesSpec:
        """The series of this measure for a model with these columns.

        Example:
            >>> from mindpulse.catalogue import MEASURES
            >>> MEASURES["attn_focus"].spec([("0", "0"), ("0", "1")]).column_name(1)
            'layer=0 head=1'
        """
        return SeriesSpec(
            self.tag,
            plugin=self._plugin(),
            unit=self.unit,
            axes=self.axes,
            columns=tuple(columns),
            dtype="float32" if self.axes else "float64",
            reduction=self.reduction,
        )

    def _plugin(self) -> str:
        if "bin" in self.axes:
            return "histogram"
        return "vector" if self.axes else "scalar"


def index(measures: Iterable[Measure]) -> dict[str, Measure]:
    """The measures by tag.

    Raises:
        NameTakenError: two measures have the same tag; the message names both.
    """
    found: dict[str, Measure] = {}
    for measure in measures:
        other = found.setdefault(measure.tag, measure)
        if other is not measure:
            raise NameTakenError(
                f"measure {measure.tag!r} exists twice: {definition(other)} and "
                f"{definition(measure)}; give one of them another tag"
            )
    return found


def definition(measure: Measure) -> str:
    """Where a measure is defined, "module.qualname"."""
    if measure.reference is None:
        return f"one of family {measure.family!r} without a reference"
    return f"{measure.reference.__module__}.{measure.reference.__qualname__}"
