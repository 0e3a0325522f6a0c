"""What an evaluation reads and what it is asked for, for one step and for many alike."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mindpulse.rules.columns import columns_by_layer
from mindpulse.rules.functions import Steps
from mindpulse.rules.lanes import Values
from mindpulse.series import MIN_STEP, Rows, SeriesSpec

UNKNOWN_VALUE = np.full(1, np.nan)
UNKNOWN_VALUE.setflags(write=False)
# Rows x columns of one window: 32 MiB of numbers, sorted in half a second.
MAX_WINDOW_VALUES = 1 << 22

Read = Callable[[str], Rows | None]
ReadSpec = Callable[[str], SeriesSpec | None]
Reduction = Callable[[NDArray[Any], Steps], Values]


class ViewLike(Protocol):
    """What an expression reads; `window.View` is one."""

    @property
    def step(self) -> int: ...

    def window(self, tag: str, skip: int, length: int) -> tuple[Steps, NDArray[Any]]: ...

    def spec(self, tag: str) -> SeriesSpec | None: ...


def no_spec(tag: str) -> SeriesSpec | None:
    """For expressions that do not ask what a column is."""
    return None


def layers_of(spec: ReadSpec, tags: tuple[str, ...], width: int) -> dict[int, list[int]]:
    """Columns by layer of the first of these series that has so many and names layers, else {}."""
    for tag in tags:
        found = spec(tag)
        if found is not None and found.width == width and (layers := columns_by_layer(found)):
            return layers
    return {}


class RecordLike(Protocol):
    """A derived series; `derived.Record` is one."""

    def rows(self, read: Read, spec: ReadSpec, first: int, last: int, most: int) -> Rows:
        """Its rows up to step `last`, and of those up to step `first` the last `most`."""
        ...


@dataclass(frozen=True, slots=True)
class WindowRef:
    """`tag[length]`, without its newest `skip` rows.

    Attributes:
        fewest: rows that the function around it needs.
        partial: fewer rows than `length` are welcome (`upto`).
        in_steps: `skip` and `length` count steps, not rows (`steps`).
        record: what derives the series; None for one that is measured.
    """

    tag: str
    skip: int
    length: int
    fewest: int = 1
    partial: bool = False
    in_steps: bool = False
    record: RecordLike | None = None

    @property
    def end(self) -> int:
        """How far it looks back."""
        return self.skip + self.length

    @property
    def wanted(self) -> int:
        """Rows that there have to be before it can be known."""
        return self.fewest if self.partial or self.in_steps else self.length

    def too_large(self, width: int) -> bool:
        """Whether it has more values than are looked at."""
        return self.length * width > MAX_WINDOW_VALUES

    def bounds(self, steps: Steps, now: Any) -> tuple[Any, Any]:
        """Where in the `steps` of a series the window in steps begins and ends, seen at `now`."""
        begin = steps.searchsorted(_back(now, self.end), "right")
        return begin, steps.searchsorted(_back(now, self.skip), "right")


def _back(now: Any, by: int) -> Any:
    return np.maximum(now, MIN_STEP + by) - by


class RunLike(Protocol):
    """An evaluation under way, of one step (`single.Run`) or of many (`sweep.Sweep`)."""

    def step(self) -> Values:
        """The steps (..., 1)."""
        ...

    def age(self, tag: str, text: str) -> Values:
        """Steps since the newest row (..., 1), NaN while there is none."""
        ...

    def reduced(self, window: WindowRef, call: Reduction, text: str) -> Values:
        """The window reduced by `call`, noted under `text`; NaN if rows are missing."""
        ...

    def layers(self, tags: tuple[str, ...], width: int) -> dict[int, list[int]]:
        """Columns by layer of the first of these series that has so many and names them."""
        ...

    def where(self, chosen: NDArray[np.bool_]) -> RunLike:
        """The evaluation of some of the steps."""
        ...

    def misfit(self, message: str) -> None:
        """Something in it does not go together."""
        ...

    def withheld(self, message: str) -> None:
        """It is unknown because the rule says so."""
        ...

    def tentatively(self) -> AbstractContextManager[None]:
        """What is missing within the block is no reason: there is something to fall back on."""
        ...

    def note(self, text: str, values: Values) -> None:
        """Keeps the value of a term as evidence."""
        ...

    def remember(self, inner: Values) -> None:
        """Keeps a condition over columns that is about to be reduced to one value."""
        ...


Node = Callable[[RunLike], Values]
