"""Rows as a reader meets them become a `LoadedRun`: attempts, our names, what was left out."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from mindpulse.catalogue import MEASURES
from mindpulse.errors import FormatError, UsageError
from mindpulse.interop.aliases import Alias, resolve
from mindpulse.interop.loaded import MAX_ATTEMPTS, Key, LoadedRun, ReadFile
from mindpulse.interop.numbers import MAX_STEP
from mindpulse.series import Rows, Series, SeriesSpec, check_tag
from mindpulse.store.asked import ALIAS
from mindpulse.store.notes import Note

MAX_RANK = 999_999
NO_ZONE = "not stated in the file; read as UTC"


class _Points:
    """The growing rows of one scalar series: 24 bytes a row."""

    __slots__ = ("steps", "values", "wall_times")

    def __init__(self) -> None:
        self.steps, self.wall_times, self.values = array("q"), array("d"), array("d")

    def append(self, step: int, wall_time: float, value: float) -> None:
        self.steps.append(step)
        self.wall_times.append(wall_time)
        self.values.append(value)

    def rows(self, divide: float) -> Rows:
        values = np.array(self.values, np.float64)
        return Rows(
            np.array(self.steps, np.int64),
            np.array(self.wall_times, np.float64),
            (values if divide == 1.0 else values / divide)[:, None],
        )

    def extend(self, other: _Points) -> None:
        self.steps.extend(other.steps)
        self.wall_times.extend(other.wall_times)
        self.values.extend(other.values)


class Collector:
    """Takes rows under the names of the other tool, in the order of the file.

    Args:
        path: the file.
        tool: whose names they are, for `aliases`.
    """

    def __init__(self, path: Path, tool: str = "") -> None:
        self.path, self.tool = path, tool
        self.tags: dict[str, str] = {}
        self.notes: list[Note] = []
        self.attempt = 1
        self.rows = self.left_out = self.torn_bytes = 0
        self.created = math.nan
        self._points: dict[tuple[str, int, int], _Points] = {}
        self._wide: dict[Key, Series] = {}
        self._highest: dict[int, int] = {}
        self._before: dict[int, int] = {}
        self._repeats: set[int] = set()
        self._alone: dict[tuple[str, int], tuple[int, int]] = {}
        self._unordered = 0
        self._refused: Counter[str] = Counter()
        self._examples: dict[str, str] = {}
        self._remarks: dict[str, None] = {}

    def add(
        self,
        step: int,
        values: Mapping[str, float],
        wall_time: float = math.nan,
        rank: int = 0,
        leads: bool = True,
    ) -> None:
        """Takes the values of one step.

        Args:
            leads: a step below the one before tells that the training was started again. False
                for what is printed besides, in its own time: evaluations, memory.
        """
        if abs(step) > MAX_STEP or not 0 <= rank <= MAX_RANK:
            self.refuse("rows with a step or rank that is none", f"step {step}, rank {rank}")
            return
        if leads:
            self._see(step, rank)
        if not values:
            return
        self.rows += len(values)
        if math.isnan(self.created):
            self.created = wall_time
        for name, value in values.items():
            key = (name, rank, self.attempt)
            points = self._points.get(key)
            if points is None:
                points = self._points[key] = _Points()
            points.append(step, wall_time, value)

    def add_wide(self, series: Series, rank: int = 0, attempt: int = 1) -> None:
        """Takes a whole series that has our shape already, under the name that it bears."""
        self._wide[series.spec.tag, rank, attempt] = series
        self.rows += len(series)

    def note(self, kind: str, text: str, wall_time: float = math.nan) -> None:
        """Takes what a line told beside numbers."""
        self.notes.append(Note(0, self.attempt, kind, None, wall_time, {"text": text[:500]}))

    def refuse(self, what: str, example: str, count: int = 1) -> None:
        """Counts values or lines that cannot be trusted; the first example is quoted."""
        self.left_out += count
        self._refused[what] += count
        self._examples.setdefault(what, example[:80])

    def remark(self, text: str) -> None:
        """Keeps something worth knowing that costs no value; said once."""
        self._remarks.setdefault(text)

    def torn(self, text: str, what: str = "the last line has no line end: it may be cut") -> None:
        """The file ends in the middle of a line."""
        self.torn_bytes = len(text.encode("utf-8", "replace"))
        self.remark(f"{what}, its last value is left out")

    def add_alone(
        self, name: str, step: int, value: float, wall_time: float = math.nan, rank: int = 0
    ) -> None:
        """Takes one value of a table in which each name has its own place and attempts."""
        highest, attempt = self._alone.get((name, rank), (step, 1))
        if step < highest and attempt < MAX_ATTEMPTS:
            highest, attempt = step, attempt + 1
        self._alone[name, rank] = max(step, highest), attempt
        self.attempt, kept = attempt, self.attempt
        self.add(step, {name: value}, wall_time, rank, leads=False)
        self.attempt = kept

    def finish(self) -> LoadedRun:
        """The run.

        Raises:
            FormatError: nothing was found in the file.
        """
        if not self._points and not self._wide:
            told = self._told()
            raise FormatError(f"{self.path} holds no numbers of a training{told and ': ' + told}")
        by_key = self._named()
        if not math.isnan(self.created):
            self.tags.setdefault("time_zone", NO_ZONE)
        done = ReadFile(self.path, self.rows, self.left_out, self.torn_bytes, self._told())
        return LoadedRun(
            self.path, by_key, (done,), self.tags, tuple(self.notes), created=self.created
        )

    def _see(self, step: int, rank: int) -> None:
        highest = self._highest.get(rank)
        if highest is not None and step < highest and not self._is_late(step, rank):
            self._restart(step, rank)
        elif step == highest:
            # Ranks that print into one file: a slow one may be a step behind.
            self._repeats.add(rank)
        elif highest is None or step > highest:
            if highest is not None:
                self._before[rank] = highest
            self._highest[rank] = step

    def _is_late(self, step: int, rank: int) -> bool:
        return rank in self._repeats and step == self._before.get(rank)

    def _restart(self, step: int, rank: int) -> None:
        self._highest, self._before, self._repeats = {rank: step}, {}, set()
        if self._unordered or self.attempt >= MAX_ATTEMPTS:
            self._join_attempts()
            self._unordered += 1
        else:
            self.attempt += 1

    def _join_attempts(self) -> None:
        """Takes back the attempts: the rows stand in no order."""
        if self.attempt == 1:
            return
        self._unordered += self.attempt - 1
        joined: dict[tuple[str, int, int], _Points] = {}
        for (name, rank, _), points in sorted(self._points.items(), key=lambda item: item[0][2]):
            joined.setdefault((name, rank, 1), _Points()).extend(points)
        self._points, self.attempt = joined, 1

    def _named(self) -> dict[Key, Series]:
        names = dict.fromkeys(name for name, _, _ in self._points)
        names.update(dict.fromkeys(tag for tag, _, _ in self._wide))
        usable = [name for name in names if self.is_usable(name)]
        found, told = resolve(usable, self.tool)
        self._remarks.update(dict.fromkeys(told))
        for name, alias in found.items():
            if alias.ours != name:
                self.tags[ALIAS + alias.ours] = name
        scalars = {
            (found[name].ours, rank, attempt): _scalar(points, found[name])
            for (name, rank, attempt), points in self._points.items()
            if name in found
        }
        wide = {
            (found[tag].ours, rank, attempt): _renamed(series, found[tag])
            for (tag, rank, attempt), series in self._wide.items()
            if tag in found
        }
        return {**scalars, **wide}

    def is_usable(self, name: str) -> bool:
        """Whether a name can be a tag; if not, that is counted."""
        try:
            check_tag(name)
        except UsageError as error:
            self.refuse("names that cannot be a tag", str(error))
            return False
        return True

    def _told(self) -> str:
        refused = [
            f"{count} {what} left out, the first: {self._examples[what]!r}"
            for what, count in self._refused.items()
        ]
        if self._unordered:
            refused.append(
                f"steps go back {self._unordered} times: taken as rows in no order, not as restarts"
            )
        return "; ".join([*refused, *self._remarks])


def _scalar(points: _Points, alias: Alias) -> Series:
    measure = MEASURES.get(alias.ours)
    known = measure is not None and not measure.axes
    spec = measure.spec() if measure and known else SeriesSpec(alias.ours, unit=alias.unit)
    return Series(spec, points.rows(alias.divide))


def _renamed(series: Series, alias: Alias) -> Series:
    spec = replace(series.spec, tag=alias.ours, unit=series.spec.unit or alias.unit)
    return Series(spec, series.rows)
