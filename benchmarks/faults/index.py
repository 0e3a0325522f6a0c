"""The recordings of the fault benchmark: what each run is, and where it lies."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from mindpulse.errors import UsageError
from mindpulse.rules.rule import PARTS

INDEX = "index.jsonl"
PACKED = Path(__file__).parent / "recordings"
CACHE = Path(__file__).parents[2] / "build" / "fault-recordings"
SPLITS = ("tune", "test")
FAULTY, HEALTHY, RELABELLED = "faulty", "healthy", "relabelled"
VERDICTS = (FAULTY, HEALTHY, RELABELLED)


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One line of the index.

    Attributes:
        id: unique among the recordings.
        run: the run folder, relative to the index.
        recipe: the kind of fault, or of healthy run.
        severity: low, medium, high; "" for a healthy run.
        steps: optimizer steps that were trained.
        kind: "fault" or "healthy", as intended.
        label_step: the first step at which the fault acts, None for a healthy run.
        category: the part (`rules.rule.PARTS`) that a perfect monitor would name.
        layer: 0-based, None where the fault has none.
        verdict: what the final loss says: faulty, healthy, or relabelled (a fault that did no
            significant harm).
    """

    id: str
    run: str
    model: str
    recipe: str
    severity: str
    seed: int
    steps: int
    kind: str
    label_step: int | None
    category: str | None
    layer: int | None
    split: str
    verdict: str
    final_loss: float | None = None
    p_value: float | None = None


def open_recordings(place: Path | None = None) -> Path:
    """The folder with the index: the one given, or the recordings of this repository.

    Packed recordings (.tar.xz archives, see `pack`) are unpacked below `build/`, once.

    Raises:
        UsageError: there are no recordings.
    """
    folder = PACKED if place is None else place
    if (folder / INDEX).is_file():
        return folder
    archives = sorted(folder.glob("*.tar.xz"))
    if not archives:
        raise UsageError(
            f"{folder}: no {INDEX} and no archives in it; give --recordings DIR, or record with "
            "make bench-faults"
        )
    return _unpacked(folder, archives)


def _unpacked(folder: Path, archives: Sequence[Path]) -> Path:
    from benchmarks.faults.pack import unpack

    digest = hashlib.sha256()
    for path in archives:
        digest.update(path.read_bytes())
    target = CACHE / digest.hexdigest()[:16]
    if not (target / INDEX).is_file():  # it is written last
        print(f"unpacking {folder} into {target}", file=sys.stderr)
        shutil.rmtree(target, ignore_errors=True)
        unpack(folder, target)
    return target


def read_index(folder: Path, part: str | None = None) -> list[RecordedRun]:
    """The runs of the index, all or those of one part ("tune", "test").

    Raises:
        UsageError: a line cannot be used; names the line.
    """
    lines = (folder / INDEX).read_text(encoding="utf-8").splitlines()
    where = [(f"{folder / INDEX}, line {number}", text) for number, text in enumerate(lines, 1)]
    runs = [_run(text, place) for place, text in where if text.strip()]
    names = [run.id for run in runs]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"{folder / INDEX}: {sorted(repeated)[0]!r} stands there twice")
    return [run for run in runs if part is None or run.split == part]


def _run(text: str, place: str) -> RecordedRun:
    try:
        line = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{place}: not JSON: {error}") from None
    known = [field.name for field in fields(RecordedRun)]
    optional = {"final_loss", "p_value"}
    if not isinstance(line, dict) or {*known} - {*line} - optional:
        raise UsageError(f"{place}: want an object with {', '.join(known)}; found {text[:80]!r}")
    run = RecordedRun(**{name: line[name] for name in known if name in line})
    _check(run, place)
    return run


def _check(run: RecordedRun, place: str) -> None:
    for name, allowed in (("split", SPLITS), ("verdict", VERDICTS)):
        if getattr(run, name) not in allowed:
            raise UsageError(f"{place}: {name} is {getattr(run, name)!r}: want one of {allowed}")
    if run.verdict != HEALTHY and (run.label_step is None or run.category not in PARTS):
        raise UsageError(
            f"{place}: a fault needs label_step and a category of {', '.join(PARTS)}; "
            f"found {run.label_step!r} and {run.category!r}"
        )
