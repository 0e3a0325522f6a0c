"""The last rows of each series, and the view of them that a rule sees at one step.

Rows arrive in chunks of any size and the rules look at every step in turn, so a window keeps what
the longest rule needs before the first step that was not judged yet, and all that follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mindpulse.series import Rows, SeriesSpec


class ChunkLike(Protocol):
    """New rows of one series, as `store.reader.RunTail` hands them out."""

    @property
    def rank(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def spec(self) -> SeriesSpec: ...
    @property
    def rows(self) -> Rows: ...


class Track:
    """The kept rows of one series of one rank, steps strictly increasing."""

    def __init__(self, spec: SeriesSpec) -> None:
        self.spec = spec
        self.rows = Rows.empty(spec.width, spec.dtype)
        self.attempt = 0
        self.first_step = 0

    @property
    def last_step(self) -> int:
        """The newest step, or -1 while there is none."""
        return int(self.rows.steps[-1]) if len(self.rows) else -1

    @property
    def settled_step(self) -> float:
        """The step before the one that the next row is due for, judged by the last two rows."""
        if len(self.rows) < 2:
            return inf
        return float(2 * self.rows.steps[-1] - self.rows.steps[-2] - 1)

    def steps_between(self, after: int, end: int) -> NDArray[np.int64]:
        """The steps above `after`, up to and with `end`."""
        steps = self.rows.steps
        return steps[steps.searchsorted(after, "right") : steps.searchsorted(end, "right")]

    def wall_time(self, step: int) -> float:
        """When the newest row up to `step` was recorded, 0.0 if there is none."""
        index = int(self.rows.steps.searchsorted(step, "right")) - 1
        return float(self.rows.wall_times[index]) if index >= 0 else 0.0

    def extend(self, spec: SeriesSpec, rows: Rows, attempt: int) -> None:
        """Adds rows; a step that exists already is replaced, other columns begin anew."""
        if attempt > self.attempt:
            self.attempt, self.first_step = attempt, int(rows.steps.min())
        if spec != self.spec:
            self.spec, self.rows = spec, Rows.empty(spec.width, spec.dtype)
        late = len(self.rows) > 0 and rows.steps[0] <= self.rows.steps[-1]
        if late or np.any(np.diff(rows.steps) < 1):
            self.rows = _merged(Rows.concat([self.rows, rows]))
        else:
            self.rows = Rows.concat([self.rows, rows])

    def cut(self, step: int) -> None:
        """Drops the rows at and after `step`."""
        self.rows = self.rows[: int(self.rows.steps.searchsorted(step))]

    def forget(self, keep: int, judged: int) -> None:
        """Drops all but `keep` rows of those up to step `judged`; copies seldom."""
        spare = int(self.rows.steps.searchsorted(judged, "right")) - keep
        if spare > max(256, keep):
            kept = self.rows[spare:]
            self.rows = Rows(kept.steps.copy(), kept.wall_times.copy(), kept.values.copy())


def _merged(rows: Rows) -> Rows:
    """Sorted by step; of several rows of one step the one that came last."""
    order = np.argsort(rows.steps, kind="stable")
    steps = rows.steps[order]
    newest = np.append(steps[1:] != steps[:-1], True)
    return rows[order[newest]]


class View:
    """What a rule sees of one rank at one step: nothing later than that step."""

    __slots__ = ("_tracks", "rank", "step")

    def __init__(self, tracks: Mapping[str, Track], step: int, rank: int = 0) -> None:
        self._tracks = tracks
        self.step = step
        self.rank = rank

    def width(self, tag: str) -> int:
        """Number of columns of a series, 0 if it is not there."""
        track = self._tracks.get(tag)
        return track.spec.width if track else 0

    def spec(self, tag: str) -> SeriesSpec | None:
        """What the columns of a series are, None if it is not there."""
        track = self._tracks.get(tag)
        return track.spec if track else None

    def window(self, tag: str, skip: int, length: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """(steps, values) of at most `length` rows, leaving out the newest `skip`.

        Shapes (n,) and (n, W), oldest first, n <= length; n = 0 if the series is not there.
        """
        track = self._tracks.get(tag)
        if track is None:
            return _NO_STEPS, _NO_VALUES
        steps = track.rows.steps
        end = int(steps.searchsorted(self.step, "right")) - skip
        if end <= 0:
            return _NO_STEPS, _NO_VALUES
        start = max(0, end - length)
        return steps[start:end], track.rows.values[start:end]


_NO_STEPS = np.empty(0, np.int64)
_NO_VALUES = np.empty((0, 1))


class Window:
    """The tracks of all ranks.

    Args:
        needs: rows that the rules look back, by tag.

    Example:
        >>> from mindpulse.testing import chunk
        >>> window = Window({"grad_norm": 3})
        >>> window.extend(chunk("grad_norm", [1.0, 2.0, 4.0, 8.0]))
        >>> window.view(step=3).window("grad_norm", skip=0, length=2)[1][:, 0].tolist()
        [2.0, 4.0]
    """

    def __init__(self, needs: Mapping[str, int]) -> None:
        self._needs = dict(needs)
        self._ranks: dict[int, dict[str, Track]] = {}
        self._starts: dict[int, dict[int, int]] = {}

    def extend(self, chunk: ChunkLike) -> None:
        """Takes in rows. A new attempt that begins at step s hides what was at and after s."""
        if not len(chunk.rows):
            return
        tracks = self._ranks.setdefault(chunk.rank, {})
        starts = self._starts.setdefault(chunk.rank, {})
        first = int(chunk.rows.steps.min())
        if self.begins_attempt(chunk):
            for track in tracks.values():
                track.cut(first)
        starts.setdefault(chunk.attempt, first)
        rows = self._not_hidden(chunk)
        if len(rows):
            track = tracks.setdefault(chunk.spec.tag, Track(chunk.spec))
            track.extend(chunk.spec, rows, chunk.attempt)

    def begins_attempt(self, chunk: ChunkLike) -> bool:
        """True for the first rows of an attempt that follows another."""
        starts = self._starts.get(chunk.rank, {})
        return bool(starts) and chunk.attempt > max(starts)

    def _not_hidden(self, chunk: ChunkLike) -> Rows:
        later = [s for a, s in self._starts[chunk.rank].items() if a > chunk.attempt]
        return chunk.rows[chunk.rows.steps < min(later)] if later else chunk.rows

    def attempt(self, rank: int) -> int:
        """The newest attempt of a rank, 0 while nothing came."""
        return max(self._starts.get(rank, {}), default=0)

    def last_step(self, rank: int) -> int:
        """The newest step of any series of a rank, -1 if there is none."""
        return max((track.last_step for track in self.tracks(rank).values()), default=-1)

    @property
    def ranks(self) -> list[int]:
        """The ranks that wrote something."""
        return sorted(self._ranks)

    def tracks(self, rank: int = 0) -> Mapping[str, Track]:
        """The tracks of a rank by tag."""
        return self._ranks.get(rank, {})

    def kept(self, tag: str, rank: int = 0) -> Rows | None:
        """The kept rows of a series, None if it has none."""
        track = self.tracks(rank).get(tag)
        return track.rows if track else None

    def spec(self, tag: str, rank: int = 0) -> SeriesSpec | None:
        """What the columns of a series are, None if it has no rows."""
        track = self.tracks(rank).get(tag)
        return track.spec if track else None

    def view(self, step: int, rank: int = 0) -> View:
        """What a rule sees at `step`."""
        return View(self._ranks.get(rank, {}), step, rank)

    def forget(self, rank: int, judged: Mapping[str, int]) -> None:
        """Drops rows that no rule needs any more, all steps up to `judged` (by tag) being done."""
        for tag, track in self.tracks(rank).items():
            keep = self._needs.get(tag, 1)
            track.forget(keep, judged.get(tag, track.last_step))


def needs_of(demands: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The largest number of rows that any of the expressions needs, by tag."""
    largest: dict[str, int] = {}
    for demand in demands:
        for tag, rows in demand.items():
            largest[tag] = max(rows, largest.get(tag, 0))
    return largest
