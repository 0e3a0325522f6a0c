"""What a folder is: a run of ours, one of another tool, several, a part of one, or nothing."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from mindpulse.doctor.result import Result, quoted
from mindpulse.errors import MindPulseError
from mindpulse.interop import OURS, identify
from mindpulse.store.folder import RUN_NAME, attempts_of, place_of, ranks_of

KIND = "summary.kind"
LFS = b"version https://git-lfs"
_LOOKED_AT = 500  # files that may be pointers of Git LFS
_SHOWN = 5


def check_kind(folder: Path) -> list[Result]:
    """One result: what the folder is."""
    values: dict[str, object] = {"path": folder}
    whole = _run_above(folder)
    if whole is not None:
        values["run"] = whole
        command = f"mindpulse doctor summary {quoted(whole)}"
        return [Result(KIND, "problem", "summary_part_of_run", values, command, 0.9)]
    if not any(folder.iterdir()):
        return [Result(KIND, "problem", "summary_empty", values, weight=0.9)]
    pointers = list(itertools.islice(_pointers(folder), _LOOKED_AT))
    if pointers:
        values |= {"count": len(pointers), "first": pointers[0]}
        return [Result(KIND, "problem", "summary_lfs", values, "git lfs pull", 0.95)]
    attempts = attempts_of(folder)
    if attempts:
        if any(ranks_of(attempt) for attempt in attempts.values()):
            return [Result(KIND, "ok", "summary_run", values | {"attempts": len(attempts)})]
        return [Result(KIND, "problem", "summary_no_rank", values, weight=0.8)]
    if (folder / RUN_NAME).exists():
        return [Result(KIND, "problem", "summary_no_attempt", values, weight=0.8)]
    return [_other(folder, values)]


def is_ours(folder: Path) -> bool:
    """Whether there is a start of a training to look at."""
    return any(ranks_of(attempt) for attempt in attempts_of(folder).values())


def _run_above(folder: Path) -> Path | None:
    """The run, if the folder is an attempt, a rank, or inside of one."""
    absolute = Path(os.path.abspath(folder))
    for above in (absolute, *absolute.parents):
        if above in attempts_of(above.parent).values():
            return above.parent
        if place_of(above.parent.parent, above) is not None:
            return above.parent.parent
    return None


def _pointers(folder: Path) -> Iterator[Path]:
    """Files that Git LFS has left its pointer for."""
    files = (Path(place) / name for place, _, names in os.walk(folder) for name in names)
    for path in itertools.islice(files, _LOOKED_AT):
        if path.is_file() and path.stat().st_size < 1024:
            with path.open("rb") as file:
                if file.read(len(LFS)) == LFS:
                    yield path


def _other(folder: Path, values: dict[str, object]) -> Result:
    runs = sorted(path.parent for path in folder.glob(f"*/{RUN_NAME}"))
    if runs:
        values |= {"count": len(runs), "runs": ", ".join(map(str, runs[:_SHOWN]))}
        command = f"mindpulse doctor summary {quoted(max(runs, key=_changed))}"
        return Result(KIND, "problem", "summary_several", values, command, 0.9)
    try:
        found = identify(folder)
    except MindPulseError as error:
        values["error"] = error
        return Result(KIND, "problem", "summary_not_a_run", values, weight=0.9)
    if found.kind == OURS:  # something appeared meanwhile
        return Result(KIND, "ok", "summary_run", values | {"attempts": 1})
    values["kind"] = found.title
    command = f"mindpulse analyze {quoted(folder)}"
    return Result(KIND, "problem", "summary_other_tool", values, command, 0.8)


def _changed(run: Path) -> float:
    return run.stat().st_mtime
