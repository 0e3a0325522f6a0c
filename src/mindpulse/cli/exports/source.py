"""What `mindpulse export` reads: the chosen series of the chosen ranks, block by block."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from mindpulse.cli.options import StepRange
from mindpulse.cli.rows import find_spec
from mindpulse.errors import UsageError
from mindpulse.series import Rows, Series, SeriesSpec
from mindpulse.store.codec import RowCodec
from mindpulse.store.folder import attempts_of, ranks_of
from mindpulse.store.folder_run import FolderRun
from mindpulse.store.part_file import read_header
from mindpulse.store.reader import series_files
from mindpulse.store.run import Attempt, Run


@dataclass(frozen=True, slots=True)
class Piece:
    """One series of one rank. `blocks` gives its rows once; none of them is empty."""

    spec: SeriesSpec
    rank: int
    blocks: Iterator[Rows]


class Source:
    """Chosen rows of a run.

    Args:
        run: what is read.
        tags, ranks: which series of which ranks.
        attempt, steps: which of their rows.
        count: is told the number of rows of each block that was read.
    """

    def __init__(
        self,
        run: Run,
        tags: list[str],
        ranks: list[int],
        attempt: Attempt,
        steps: StepRange,
        count: Callable[[int], None],
    ) -> None:
        self.run, self.tags, self.ranks = run, tags, ranks
        self._attempt, self._steps, self._count = attempt, steps, count
        self._missing: UsageError | None = None
        self._found = False

    def pieces(self, rank: int) -> Iterator[Piece]:
        """The series of a rank that have rows; a rank need not have all of them."""
        for tag in self.tags:
            try:
                blocks = self.run.blocks(tag, rank, self._attempt)
                first = next(blocks, None)
            except UsageError as error:
                self._missing = error
                continue
            self._found = True
            if first is not None:
                rows = self._rows(first, blocks)
                begin = next(rows, None)
                if begin is not None:
                    yield Piece(first.spec, rank, chain([begin], rows))

    def rows(self, tag: str, rank: int) -> Iterator[Rows]:
        """The chosen rows of one series of a rank that has it, not counted."""
        for block in self.run.blocks(tag, rank, self._attempt):
            rows = self._steps.pick(block.rows)
            if len(rows):
                yield rows

    def check(self) -> None:
        """To call when all was read.

        Raises:
            UsageError: the ranks have none of the series, or not in this attempt.
        """
        if self._missing and not self._found:
            raise self._missing

    def _rows(self, first: Series, rest: Iterator[Series]) -> Iterator[Rows]:
        for block in chain([first], rest):
            self._count(len(block))
            rows = self._steps.pick(block.rows)
            if len(rows):
                yield rows


def choose_tags(run: Run, wanted: str | None) -> list[str]:
    """The series that a comma-separated list of names and patterns means.

    Raises:
        UsageError: an entry means none; the message names what is near or there.
    """
    known = list(run.specs())
    if not known:
        raise UsageError(f"{run.path} holds no series yet; nothing to export")
    if wanted is None:
        return known
    chosen: dict[str, None] = {}
    names = [wanted] if wanted in known else [part.strip() for part in wanted.split(",")]
    for name in names:
        found = [name] if name in known else [t for t in known if fnmatch.fnmatchcase(t, name)]
        if not found:
            found = [find_spec(run, name).tag]  # or raises with the nearest names
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def expected_rows(run: Run, tags: list[str], attempt: Attempt) -> int | None:
    """Rows that the files of a run folder have by their sizes; None for other runs.

    Rows that a later attempt hides are counted too: good enough for a progress bar.
    """
    if not isinstance(run, FolderRun):
        return None
    wanted, total = set(tags), 0
    for number, attempt_dir in attempts_of(run.path).items():
        if attempt in (None, "all", number):
            folders = ranks_of(attempt_dir).values()
            files = [path for folder in folders for path, _ in series_files(folder)]
            total += sum(_rows_by_size(path, wanted) for path in files)
    return total


def _rows_by_size(path: Path, tags: set[str]) -> int:
    header, _ = read_header(path)
    if header is None or header.spec.tag not in tags:
        return 0
    return max(0, path.stat().st_size - header.size) // RowCodec(header.spec).row_bytes
