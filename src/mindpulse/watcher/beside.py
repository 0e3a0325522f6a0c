"""Rows that the watcher writes beside those of the training: of the chips, and of profiles.

They stand in the folder of the rank, each series in files that only the watcher writes, so whoever
reads the run finds them like all others. The watcher reads them back and judges them then: what is
judged is what is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from mindpulse.catalogue import MEASURES
from mindpulse.errors import StoreError
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.folder import attempt_name, rank_name
from mindpulse.store.writer import GuestWriter

# The series that the watcher writes: they say nothing about whether the training lives.
BESIDE = frozenset(tag for tag, measure in MEASURES.items() if measure.place == "watcher")


class Beside:
    """Takes rows of any rank of one run, and writes them at once.

    Args:
        folder: of the run.
        tell: takes a sentence, once, when the rows cannot be written.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self._folder, self._tell = folder, tell
        self._writers: dict[tuple[int, int], GuestWriter] = {}
        self._fresh: set[tuple[int, int]] = set()
        self._told = False

    def add(
        self,
        rank: int,
        attempt: int,
        spec: SeriesSpec,
        step: int,
        wall_time: float,
        values: Sequence[float],
    ) -> None:
        """Keeps one row until `flush`."""
        writer = self._writers.get((rank, attempt))
        if writer is None:
            folder = self._folder / attempt_name(attempt) / rank_name(rank)
            writer = self._writers[rank, attempt] = GuestWriter(folder, rank, attempt)
        writer.append(spec, Rows.one(step, wall_time, values))
        self._fresh.add((rank, attempt))

    def flush(self) -> None:
        """Writes the rows; those that cannot be written are lost."""
        while self._fresh:
            try:
                self._writers[self._fresh.pop()].flush()
            except StoreError as error:
                if not self._told:
                    self._told = True
                    self._tell(f"what the watcher measures is not recorded: {error}")
            else:
                self._told = False
