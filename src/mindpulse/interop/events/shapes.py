"""The shapes of records that a scan has met, and how it tells the shape of a new one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mindpulse.interop.events.frame import Bytes
from mindpulse.interop.events.layout import Layout, Period

_MAX_PERIODS = 16
# Up to so many layouts rows are compared with each of them, beyond it they are looked up.
_FEW = 4
_MAX_TABLES = 16
_UNKNOWN = -1

Numbers = NDArray[np.int64]


class Family:
    """Layouts whose varying bits stand at the same places: they differ in their tags only."""

    def __init__(self, keep: Bytes) -> None:
        self.keep = keep
        self.numbers: dict[bytes, int] = {}

    def keys(self, rows: Bytes) -> list[bytes]:
        """What does not vary, of each of (T, size) records."""
        size = rows.shape[1]
        raw = (rows & self.keep).tobytes()
        return [raw[at : at + size] for at in range(0, len(raw), size)]

    def find(self, rows: Bytes) -> Numbers:
        """(T,) numbers of the layouts of (T, size) records, -1 for those of another family."""
        if len(self.numbers) > _FEW:
            get = self.numbers.get
            return np.array([get(key, _UNKNOWN) for key in self.keys(rows)], np.int64)
        kept = rows & self.keep
        found = np.full(len(rows), _UNKNOWN, np.int64)
        for blank, number in self.numbers.items():
            found[(kept == np.frombuffer(blank, np.uint8)).all(axis=1)] = number
        return found


class Shapes:
    """The layouts and periods met so far in a file."""

    def __init__(self) -> None:
        self.layouts: list[Layout] = []
        self._families: dict[int, dict[bytes, Family]] = {}
        self._periods: dict[tuple[int, ...], Period] = {}

    def period(self, numbers: tuple[int, ...]) -> Period:
        """The period of some layouts."""
        if numbers not in self._periods:
            if len(self._periods) >= _MAX_PERIODS:
                self._periods.clear()
            self._periods[numbers] = Period(tuple(self.layouts[n] for n in numbers))
        return self._periods[numbers]

    def clear(self) -> None:
        """Forgets everything."""
        self.layouts.clear()
        self._families.clear()
        self._periods.clear()

    def find(self, rows: Bytes, parse: Callable[[int], Layout | None]) -> Numbers:
        """(T,) numbers of the layouts of (T, size) records; -1 for one that has none.

        Args:
            parse: makes the layout of the record at a place, or deals with it on its own.
        """
        found = np.full(len(rows), _UNKNOWN, np.int64)
        for family in self._families.get(rows.shape[1], {}).values():
            left = np.flatnonzero(found == _UNKNOWN)
            if len(left):
                found[left] = family.find(rows[left])
        left = np.flatnonzero(found == _UNKNOWN)
        tables: dict[int, dict[bytes, list[int]]] = {}
        for place in left.tolist():
            layout = parse(place) if found[place] == _UNKNOWN else None
            if layout is not None:
                found[self._alike(layout, place, rows, left, tables)] = self._add(layout)
        return found

    def _alike(
        self,
        layout: Layout,
        place: int,
        rows: Bytes,
        left: Numbers,
        tables: dict[int, dict[bytes, list[int]]],
    ) -> list[int]:
        """The places of all records that have a new layout; each family is looked at once."""
        family = self._family(layout)
        if id(family) not in tables:
            if len(tables) >= _MAX_TABLES:
                return [place]
            table = tables[id(family)] = {}
            for at, key in zip(left.tolist(), family.keys(rows[left]), strict=True):
                table.setdefault(key, []).append(at)
        return tables[id(family)][layout.blank.tobytes()]

    def _family(self, layout: Layout) -> Family:
        families = self._families.setdefault(layout.size, {})
        return families.setdefault(layout.keep.tobytes(), Family(layout.keep))

    def _add(self, layout: Layout) -> int:
        self.layouts.append(layout)
        number = len(self.layouts) - 1
        self._family(layout).numbers[layout.blank.tobytes()] = number
        return number
