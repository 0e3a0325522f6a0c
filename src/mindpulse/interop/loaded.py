"""A run of another tool, held in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mindpulse.errors import UsageError
from mindpulse.series import Series, SeriesSpec
from mindpulse.store.asked import asked_attempt, no_rows, no_series
from mindpulse.store.merge import join, supersede
from mindpulse.store.notes import START_NOTE, Note
from mindpulse.store.run import Attempt, FileReport, Run

Key = tuple[str, int, int]
# More goings-back of the steps than this are no restarts: the rows stand in no order.
MAX_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class ReadFile:
    """What became of one file.

    Attributes:
        path: where.
        rows: rows that it gave.
        left_out: values and lines that could not be trusted.
        torn_bytes: bytes of a last line that has no end.
        told: what there is to say, "" if nothing.
    """

    path: Path
    rows: int
    left_out: int = 0
    torn_bytes: int = 0
    told: str = ""


@dataclass(frozen=True, slots=True)
class LoadedRun(Run):
    """A run that was read whole; what is written later is seen when it is opened again.

    Attributes:
        path: the file or folder that was opened.
        id: "" (other tools' files carry none that can be relied on).
        created: time stamp of the first row, NaN where the file has none.
        run_tags: what the file says about itself, and the names that the tool uses: the key
            "alias.train_loss" holds what `train_loss` is called there.
        by_key: the series by (tag, rank, attempt).
        read_files: what became of each file.
    """

    path: Path
    by_key: Mapping[Key, Series]
    read_files: tuple[ReadFile, ...]
    run_tags: dict[str, str] = field(default_factory=dict)
    told: tuple[Note, ...] = ()
    id: str = ""
    created: float = math.nan

    @property
    def attempts(self) -> list[int]:
        """Numbers of the attempts, from 1 up."""
        return sorted({attempt for _, _, attempt in self.by_key}) or [1]

    @property
    def ranks(self) -> list[int]:
        """The ranks that any attempt has."""
        return sorted({rank for _, rank, _ in self.by_key}) or [0]

    def specs(self) -> dict[str, SeriesSpec]:
        """All series by tag, as the latest attempt describes them."""
        found: dict[str, SeriesSpec] = {}
        for tag, _, attempt in sorted(self.by_key, key=lambda key: (key[0], key[2])):
            found[tag] = next(
                self.by_key[tag, rank, attempt].spec
                for rank in self.ranks
                if (tag, rank, attempt) in self.by_key
            )
        return found

    def series(
        self,
        tag: str,
        rank: int = 0,
        attempt: Attempt = None,
        columns: Sequence[int] | None = None,
    ) -> Series:
        """One series of one rank, see `Run.series`.

        Raises:
            UsageError: the run has no such series, rank, attempt or column.
        """
        attempt = asked_attempt(attempt)
        mine = {key[2]: found for key, found in self.by_key.items() if key[:2] == (tag, rank)}
        if isinstance(attempt, int):
            mine = {number: found for number, found in mine.items() if number == attempt}
        if not mine:
            raise UsageError(self._missing(tag, rank, attempt))
        if attempt is None:
            whole = supersede(mine, self._starts(rank))
        else:
            whole = join([mine[number] for number in sorted(mine)])
        return whole.pick(columns)

    def notes(self, attempt: int | None = None) -> list[Note]:
        """Where each restart began, and what the log told beside numbers."""
        starts = [
            Note(rank, number, START_NOTE, step, math.nan)
            for rank in self.ranks
            for number, step in sorted(self._starts(rank).items())
            if number > 1
        ]
        return [note for note in (*starts, *self.told) if attempt in (None, note.attempt)]

    def files(self) -> list[FileReport]:
        """What was read from each file, and what was left out."""
        return [
            FileReport(
                file.path,
                "",
                file.rows,
                file.left_out,
                file.torn_bytes,
                file.left_out == 0,
                file.told,
            )
            for file in self.read_files
        ]

    def _starts(self, rank: int) -> dict[int, int]:
        """The first step of each attempt: all series begin anew there."""
        firsts: dict[int, int] = {}
        for (_, owner, attempt), found in self.by_key.items():
            if owner == rank and len(found):
                first = int(found.steps.min())
                firsts[attempt] = min(first, firsts.get(attempt, first))
        return firsts

    def _missing(self, tag: str, rank: int, attempt: Attempt) -> str:
        specs = list(self.specs())
        if tag not in specs:
            return no_series(tag, self.path, specs)
        return no_rows(tag, rank, attempt, self.path, (self.ranks, self.attempts))
