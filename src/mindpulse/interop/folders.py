"""Which run a folder holds: one, several, or none."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from mindpulse.errors import FormatError, UsageError
from mindpulse.interop.detect import EVENTS, EVENTS_TITLE, identify_or_none, understood
from mindpulse.interop.events.names import event_files
from mindpulse.interop.found import Found
from mindpulse.interop.loaded import Key, LoadedRun
from mindpulse.interop.tables import huggingface, msprobe
from mindpulse.interop.tables.huggingface import STATE_NAME
from mindpulse.series import Series
from mindpulse.store.notes import Note

MAX_FILES = 2000
_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
_WORKER = re.compile(r"(?:worker|rank)[_-]?(\d{1,6})\.(?:log|txt|out)")
# As Keras, Lightning and our mirrors call the folders of one run.
_PARTS_OF_RUN = re.compile(r"train(?:ing)?|val(?:id)?(?:ation)?|eval(?:uation)?|test|rank[_-]?\d+")
_EXPORTS = {"csv", "mindpulse-json", "json-curves"}
_SHOWN = 8


def identify_folder(folder: Path) -> Found:
    """The run that a folder of another tool holds.

    Raises:
        UsageError: it holds none, or several; the message lists what was found.
    """
    files = sorted(entry for entry in folder.iterdir() if entry.is_file() and entry.name[0] != ".")
    if len(files) > MAX_FILES:
        raise UsageError(f"{folder} holds {len(files)} files; give the one that is meant")
    state = _trainer_state(folder)
    by_file = {path: identify_or_none(path) for path in files}
    found = [each for each in by_file.values() if each is not None]
    monitors = _monitor_files(folder, found)
    candidates = [
        *([state] if state else []),
        *_events(folder, any(each.kind == EVENTS for each in found)),
        *([_monitors(folder, monitors)] if monitors else []),
    ]
    taken = {EVENTS, "msprobe-monitor"}
    others = [each for each in found if each.kind not in taken and each.path.name != STATE_NAME]
    candidates += _joined_or_each(folder, others)
    if len(candidates) == 1:
        return candidates[0]
    raise UsageError(_several(folder, candidates) if candidates else _none(folder, files))


def _trainer_state(folder: Path) -> Found | None:
    """The state of the Trainer: that of the folder, else of its newest checkpoint."""
    own = folder / STATE_NAME
    checkpoints = [
        (int(match[1]), path / STATE_NAME)
        for path in folder.glob("checkpoint-*")
        if (match := _CHECKPOINT.fullmatch(path.name)) and (path / STATE_NAME).is_file()
    ]
    if own.is_file():
        chosen, why = own, "the state beside the final model"
    elif checkpoints:
        chosen = max(checkpoints)[1]
        why = f"the newest of {len(checkpoints)} checkpoints: it holds the history of all"
    else:
        return None
    kind = "hugging-face-trainer-state"
    return Found(chosen, kind, huggingface.TITLE, why, lambda: huggingface.read(chosen))


def _events(folder: Path, in_folder: bool) -> list[Found]:
    """The event files: of this folder, else those of the folders below.

    Folders for training and evaluation, or one for each rank, are one run; others are runs of
    their own, and then the user says which is meant.
    """
    below = sorted({file.path.parent for file in event_files(folder)})
    if in_folder or (below and all(_PARTS_OF_RUN.fullmatch(place.name) for place in below)):
        below = [folder]
    return [_events_in(place) for place in below]


def _events_in(place: Path) -> Found:
    from mindpulse.interop.events import run as events_run

    why = "event files in it or in its folders of ranks"
    return Found(place, EVENTS, EVENTS_TITLE, why, lambda: events_run.EventsRun(place))


def _monitor_files(folder: Path, found: Iterable[Found]) -> list[Path]:
    """Files of msprobe's monitor in the folder or in its folders of ranks."""
    files = [each.path for each in found if each.kind == "msprobe-monitor"]
    for path in sorted(folder.glob("*rank*/*.csv")):
        inner = identify_or_none(path)
        if inner is not None and inner.kind == "msprobe-monitor":
            files.append(path)
    return files


def _monitors(folder: Path, files: Sequence[Path]) -> Found:
    why = f"{len(files)} file(s) with the header of the monitor"
    return Found(
        folder, "msprobe-monitor", msprobe.TITLE, why, lambda: msprobe.read_all(folder, files)
    )


def _joined_or_each(folder: Path, found: list[Found]) -> list[Found]:
    """Files that belong together as one: our exports, or the logs of the ranks of one start."""
    if len(found) < 2:
        return found
    if all(each.kind in _EXPORTS and _is_export(each.path) for each in found):
        why = f"{len(found)} files of 'mindpulse export'"
        title = "series that mindpulse exported"
        return [Found(folder, "mindpulse-export", title, why, lambda: _all(folder, found))]
    ranks = {each.path: match for each in found if (match := _WORKER.fullmatch(each.path.name))}
    if len(ranks) == len(found) and len({each.kind for each in found}) == 1:
        numbers = [int(match[1]) for match in ranks.values()]
        why = f"logs of {len(found)} ranks"
        kind, title = found[0].kind, found[0].title
        return [Found(folder, kind, title, why, lambda: _all(folder, found, numbers))]
    return found


def _is_export(path: Path) -> bool:
    """Whether the header or the first field is that of our export."""
    with path.open("rb") as file:
        head = file.read(64)
    return head.startswith((b"step,wall_time,", b'{"tag":'))


def _all(folder: Path, found: Sequence[Found], ranks: Sequence[int] | None = None) -> LoadedRun:
    runs = [run for each in found if isinstance(run := each.read(), LoadedRun)]
    return joined(folder, runs, ranks)


def joined(path: Path, runs: Sequence[LoadedRun], ranks: Sequence[int] | None = None) -> LoadedRun:
    """Several files as one run.

    Args:
        ranks: the rank of each file, where its name says it; else what stands in it.

    Raises:
        FormatError: two files hold the same series of the same rank; the message names both.
    """
    by_key: dict[Key, Series] = {}
    owner: dict[Key, Path] = {}
    tags: dict[str, str] = {}
    notes: list[Note] = []
    for position, run in enumerate(runs):
        tags.update(run.run_tags)
        place = None if ranks is None else ranks[position]
        notes += [note if place is None else replace(note, rank=place) for note in run.told]
        for (tag, inner, attempt), series in run.by_key.items():
            key = tag, inner if place is None else place, attempt
            if key in by_key:
                raise FormatError(
                    f"{run.path} and {owner[key]} both hold {tag!r} of rank {key[1]}; give one file"
                )
            by_key[key], owner[key] = series, run.path
    files = tuple(file for run in runs for file in run.read_files)
    created = min((run.created for run in runs if not math.isnan(run.created)), default=math.nan)
    return LoadedRun(path, by_key, files, tags, tuple(notes), created=created)


def _several(folder: Path, candidates: Sequence[Found]) -> str:
    names = [
        f"{each.path.relative_to(folder) if each.path != folder else 'itself'} ({each.title})"
        for each in candidates[:_SHOWN]
    ]
    more = f" and {len(candidates) - _SHOWN} more" if len(candidates) > _SHOWN else ""
    return (
        f"{folder} holds {len(candidates)} things that could be the run: {', '.join(names)}{more}; "
        "give the one that is meant"
    )


def _none(folder: Path, files: Sequence[Path]) -> str:
    inner = [path.name for path in sorted(folder.iterdir()) if path.is_dir()]
    if not files and not inner:
        return f"{folder} is empty: no run has begun in it, or it was not copied"
    names = ", ".join(repr(path.name) for path in files[:_SHOWN]) or "no file"
    folders = f" and the folders {', '.join(map(repr, inner[:_SHOWN]))}" if inner else ""
    return (
        f"{folder} holds no run: {names}{folders}. Give one of them, if it is one. "
        f"MindPulse reads: {understood()}. See docs/interop.md"
    )
