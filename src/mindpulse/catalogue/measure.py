"""What a measure is: a name, a formula, and the NumPy reference that probes are tested against."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from mindpulse.errors import NameTakenError
from mindpulse.series import SeriesSpec


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
        reference: the same in NumPy; one value per column.
    """

    tag: str
    formula: str
    unit: str
    axes: tuple[str, ...]
    reduction: str
    source: str
    reference: Callable[..., Any]

    def spec(self, columns: Iterable[tuple[str, ...]] = ()) -> SeriesSpec:
        """The series of this measure for a model with these columns.

        Example:
            >>> from mindpulse.catalogue import MEASURES
            >>> MEASURES["attn_focus"].spec([("0", "0"), ("0", "1")]).column_name(1)
            'layer=0 head=1'
        """
        return SeriesSpec(
            self.tag,
            plugin="vector" if self.axes else "scalar",
            unit=self.unit,
            axes=self.axes,
            columns=tuple(columns),
            dtype="float32" if self.axes else "float64",
            reduction=self.reduction,
        )


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
                f"measure {measure.tag!r} exists twice: {_place(other)} and {_place(measure)}; "
                "give one of them another tag"
            )
    return found


def _place(measure: Measure) -> str:
    return f"{measure.reference.__module__}.{measure.reference.__qualname__}"
