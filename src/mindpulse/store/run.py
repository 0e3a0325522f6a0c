"""A run as it is read: ours or another tool's, in memory or on disk.

`store/folder_run.py` reads our own folder, `interop/` what other tools wrote. Whoever shows,
judges, exports or compares a run needs no more than this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from mindpulse.series import Series, SeriesSpec
from mindpulse.store.asked import asked_limit
from mindpulse.store.check import FileReport
from mindpulse.store.notes import Note
from mindpulse.store.overview import Overview, overview_of

__all__ = ["Attempt", "FileReport", "Run"]

Attempt = int | Literal["all"] | None
BLOCK_ROWS = 65_536


class Run(ABC):
    """A run. Each call reads the files as they are now.

    Attributes:
        path: the folder or file.
        id: what tells it from other runs, "" where nothing does.
        created: seconds since the epoch, NaN where it is not known.
        run_tags: texts that describe it: versions, git commit, names in the other tool.
    """

    path: Path
    id: str
    created: float
    run_tags: dict[str, str]

    @property
    def tags(self) -> dict[str, str]:
        """The texts that describe the run, with those that were added while it ran."""
        return self.run_tags

    @property
    def attempts(self) -> list[int]:
        """Numbers of the attempts, from 1 up."""
        return [1]

    @property
    def ranks(self) -> list[int]:
        """The ranks that any attempt has."""
        return [0]

    @abstractmethod
    def specs(self) -> dict[str, SeriesSpec]:
        """All series by tag, as the latest attempt describes them."""

    @abstractmethod
    def series(
        self,
        tag: str,
        rank: int = 0,
        attempt: Attempt = None,
        columns: Sequence[int] | None = None,
    ) -> Series:
        """One series of one rank.

        Args:
            attempt: None for each step's latest attempt, a number for that attempt alone,
                "all" for the rows of every attempt one after the other.
            columns: positions of the columns to read, None for all.

        Raises:
            UsageError: the run has no such series, rank, attempt or column; the message says
                what there is.
        """

    def blocks(self, tag: str, rank: int = 0, attempt: Attempt = None) -> Iterator[Series]:
        """The rows of `series`, in the same order, in pieces of bounded size.

        Raises:
            UsageError: as `series`.
        """
        whole = self.series(tag, rank, attempt)
        for start in range(0, len(whole), BLOCK_ROWS):
            yield Series(whole.spec, whole.rows[start : start + BLOCK_ROWS])

    def last(self, tag: str, limit: int, rank: int = 0, attempt: Attempt = None) -> Series:
        """The last `limit` rows of `series`.

        Raises:
            UsageError: as `series`; or `limit` is negative.
        """
        count = asked_limit(limit)
        whole = self.series(tag, rank, attempt)
        return Series(whole.spec, whole.rows[max(0, len(whole) - count) :])

    def overview(
        self,
        tag: str,
        points: int = 2000,
        rank: int = 0,
        attempt: Attempt = None,
        columns: Sequence[int] | None = None,
    ) -> Overview:
        """The series in few buckets, each with its minimum, maximum and non-finite values.

        Raises:
            UsageError: as `series`.
        """
        return overview_of(self.series(tag, rank, attempt, columns), points)

    def notes(self, attempt: int | None = None) -> list[Note]:
        """The notes of all ranks, in the order of attempts and ranks."""
        return []

    def snapshots(self) -> list[Path]:
        """The snapshot files of all attempts and ranks, for `numpy.load`."""
        return []

    @abstractmethod
    def files(self) -> list[FileReport]:
        """What each file holds and what is wrong with it; foreign files are named."""
