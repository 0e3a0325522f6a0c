"""Repairing a run: damaged files are rebuilt beside themselves, and the old ones kept aside.

A file is changed in three steps, and a kill between any two loses nothing: the new file is written
under a hidden name and synced, the old one gets its second name (`x.ms.damaged`), the new one takes
the first. Beginning again does what is left to do.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mindpulse.errors import StoreError
from mindpulse.series import SeriesSpec
from mindpulse.store.aside import keep_aside, set_aside_name
from mindpulse.store.check import FileReport, check_rank
from mindpulse.store.description import describe_again, description_problem
from mindpulse.store.files import OS_FILES, FileLayer, fill
from mindpulse.store.folder import RUN_NAME, attempts_of, ranks_of
from mindpulse.store.holding import Hold
from mindpulse.store.index_format import INDEX_FOLDER, parse_index_name
from mindpulse.store.index_writer import rebuild_index
from mindpulse.store.notes import NOTES_NAME, NotesWriter
from mindpulse.store.part_file import read_header
from mindpulse.store.reader import series_files
from mindpulse.store.rebuild import Rebuilt, rebuild

# Where locks tell nothing (network file systems), a file as young as this may have a writer.
YOUNG_S = 600.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file.

    Attributes:
        path: the file, or a folder that was left alone as a whole.
        action: "rebuilt", "left" (nothing in it could be kept) or "held" (a training writes it).
        problem: what was wrong, or why it was left.
        rows, mended, lost_rows: in the new file: whole rows, those with one bit put right, and
            how many could not be read.
        header: what was done about the header, "" if nothing was.
        kept_as: name of the old file.
    """

    path: Path
    action: str
    problem: str
    rows: int = 0
    mended: int = 0
    lost_rows: int = 0
    header: str = ""
    kept_as: str = ""


class Repair:
    """Repairs a run folder, rank by rank.

    Args:
        run_dir: the run.
        dry_run: say what would be done, and change nothing.
        force: also where a training might be writing and no lock can tell.
        index: write the index of every file anew, too.
        files: the file system.
        clock: the time in seconds since the epoch.

    Example:
        >>> list(Repair(Path(run)).outcomes())
        []
    """

    def __init__(
        self,
        run_dir: Path,
        *,
        dry_run: bool = False,
        force: bool = False,
        index: bool = False,
        files: FileLayer = OS_FILES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._run_dir, self._dry_run, self._force = run_dir, dry_run, force
        self._index = index
        self._files, self._clock = files, clock

    def outcomes(self) -> Iterator[Outcome]:
        """Does the work, and tells each file that was not in order.

        Raises:
            StoreError: something could not be written; what was done so far stays, and the
                next repair goes on from there.
        """
        for attempt, attempt_dir in attempts_of(self._run_dir).items():
            for rank, folder in ranks_of(attempt_dir).items():
                yield from self._rank(folder, rank, attempt)
        found = description_problem(self._run_dir)
        if found:
            kept_as = "" if self._dry_run else describe_again(self._run_dir, self._files)
            yield Outcome(self._run_dir / RUN_NAME, "rebuilt", found, kept_as=kept_as)

    def _rank(self, folder: Path, rank: int, attempt: int) -> Iterator[Outcome]:
        hold = Hold(folder)
        try:
            held = _held(folder, hold, self._clock(), self._force)
            if held:
                yield Outcome(folder, "held", held)
                return
            if not self._dry_run:
                self._clear(folder)
            done = [self._one(r, rank, attempt) for r in check_rank(folder) if not _fine(r)]
            if not self._dry_run:
                self._note(folder, done)
                self._write_indexes(folder, done)
            yield from done
        finally:
            hold.release()

    def _one(self, report: FileReport, rank: int, attempt: int) -> Outcome:
        path = report.path
        try:
            before = _identity(path)
            new = rebuild(path, rank, attempt, lambda spec: self._labels(path, spec))
        except OSError as error:
            return Outcome(path, "left", str(error))
        if new is None:
            return Outcome(path, "left", report.problem)
        if not new.rows and report.rows:
            return Outcome(path, "left", f"{report.problem}; no row was found again")
        kept_as = set_aside_name(path)
        if not self._dry_run:
            kept_as = self._replace(path, new, before)
        return Outcome(
            path, "rebuilt", report.problem, new.rows, new.mended, new.lost_rows, new.header,
            kept_as.name,
        )  # fmt: skip

    def _replace(self, path: Path, new: Rebuilt, before: tuple[int, ...]) -> Path:
        hidden = _hidden(path)
        try:
            fill(self._files, hidden, b"".join(new.pieces))
            if _identity(path) != before:
                raise StoreError(f"{path} changed during the repair; is a training writing it?")
            kept_as = keep_aside(path, self._files)
            # Not the time of now: an old file that is repaired does not look as if it were written.
            os.utime(hidden, ns=(before[3], before[3] + 1000))
            for level in _index_of(path):  # it counts rows that are not there any more
                self._files.unlink(level)
            self._files.rename(hidden, path)
            self._files.sync_folder(path.parent)
        except OSError as error:
            with suppress(OSError):
                hidden.unlink(missing_ok=True)
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{path}: {error.strerror}; it is as it was, try again") from error
        return kept_as

    def _clear(self, folder: Path) -> None:
        """Takes away what a killed repair left half-written."""
        for path in folder.glob(".*.repair"):
            path.unlink(missing_ok=True)

    def _note(self, folder: Path, done: list[Outcome]) -> None:
        rebuilt = [outcome for outcome in done if outcome.action == "rebuilt"]
        if not rebuilt:
            return
        notes = NotesWriter(folder, self._files)
        for o in rebuilt:
            told = {"file": o.path.name, "rows": o.rows, "mended": o.mended, "lost": o.lost_rows}
            notes.append({"kind": "repaired", "step": None, "wall_time": self._clock(), **told})
        try:
            notes.flush()
            notes.sync()
        except OSError as error:
            raise StoreError(f"{folder / NOTES_NAME}: {error.strerror}") from error

    def _write_indexes(self, folder: Path, done: list[Outcome]) -> None:
        paths = {outcome.path for outcome in done if outcome.action == "rebuilt"}
        if self._index:
            paths = {path for path, _ in series_files(folder)}
        for path in sorted(paths):
            with suppress(StoreError, OSError):  # without an index the rows are read
                rebuild_index(path)

    def _labels(self, path: Path, spec: SeriesSpec) -> tuple[SeriesSpec, str] | None:
        """The description of another file of the same series and shape, the nearest first."""
        near = [path.parent, *sorted(path.parents[2].glob("attempt-*/rank-*"))]
        for folder in near:
            for other, _ in series_files(folder):
                found = _whole_header(other) if other != path else None
                if found is not None and _alike(found, spec, other, path):
                    return found, f"labels from {other.relative_to(path.parents[2])}"
        return None


def _held(folder: Path, hold: Hold, now: float, force: bool) -> str:
    """Why a rank must be left alone, "" if it need not."""
    if hold.taken_elsewhere:
        return "a training is writing it; repair it when that has ended"
    if hold.certain or force:
        return ""
    youngest = max((p.stat().st_mtime for p in folder.glob("*.ms")), default=0.0)
    if now - youngest > YOUNG_S:
        return ""
    return (
        f"written {now - youngest:.0f} s ago, and this file system has no locks that would tell "
        "whether a training is at work; use --force if none is"
    )


def _fine(report: FileReport) -> bool:
    return report.valid or report.foreign


def _hidden(path: Path) -> Path:
    return path.with_name(f".{path.name}.repair")


def _index_of(path: Path) -> list[Path]:
    folder = path.parent / INDEX_FOLDER
    levels = folder.iterdir() if folder.is_dir() else ()
    return [level for level in levels if (parse_index_name(level.name) or ("", 0))[0] == path.name]


def _identity(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _whole_header(path: Path) -> SeriesSpec | None:
    try:
        header, problem = read_header(path)
    except StoreError:
        return None
    return header.spec if header is not None and not problem else None


def _alike(found: SeriesSpec, spec: SeriesSpec, other: Path, path: Path) -> bool:
    """Same series (by tag, or by a name that holds a digest) and same shape."""
    named = found.tag == spec.tag or other.name.split(".")[0] == path.name.split(".")[0]
    shape = (found.width, found.dtype, bool(found.columns))
    return named and shape == (spec.width, spec.dtype, bool(spec.columns))
