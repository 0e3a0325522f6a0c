"""Trainings whose machine loses its power, on a clock of their own, and what is left then."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mindpulse.recorder import TURN_S
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.entries import Block, Told
from mindpulse.store.folder import create_attempt
from mindpulse.store.folder_run import open_folder
from mindpulse.store.recording import Recording
from mindpulse.store.writer import RankWriter
from power_loss import LossyFiles, PowerLostError
from series_samples import FOCUS, LOSS

LONGEST_LOSS_S = 1.0
MANY = SeriesSpec(
    "grad_norm_param", "vector", "", ("param",), tuple((f"p{i}",) for i in range(60)), "float32"
)
SERIES = (LOSS, FOCUS, MANY)


def one_row(spec: SeriesSpec, step: int) -> Rows:
    """A row that tells its step and column."""
    values = step + np.arange(spec.width) / 1000
    return Rows(np.array([step]), np.array([step / 100]), values.astype(spec.dtype)[None, :])


@dataclass
class Training:
    """Steps of 10 ms on a clock of its own; the recorder's thread is played by hand."""

    run: Path
    files: LossyFiles
    chance: random.Random
    now: float = 0.0
    # When each step was with the operating system; a step that is not in here was not yet.
    flushed: dict[int, float] = field(default_factory=dict)
    waiting: list[int] = field(default_factory=list)

    def safe(self) -> set[int]:
        """Steps that were flushed longer ago than a power loss may cost."""
        return {s for s, at in self.flushed.items() if at <= self.now - LONGEST_LOSS_S}

    def go_on(self, steps: int) -> None:
        self.folder = create_attempt(self.run, clock=lambda: self.now, files=self.files)
        writer = RankWriter(
            self.folder, 0, 1, clock=lambda: self.now, files=self.files, max_file_bytes=5000
        )
        made = Recording(
            self.run,
            writer,
            self.files,
            flush_interval=0.1,
            capacity_bytes=1 << 20,
            clock=lambda: self.now,
        )
        turn_at = 0.0
        for step in range(1, steps + 1):
            self.now = step / 100
            made.take([Block(spec, one_row(spec, step)) for spec in SERIES])
            made.take([Told({"kind": "at", "step": step, "wall_time": self.now})])
            self.waiting.append(step)
            if self.now >= turn_at:
                made.turn(self.now)
                if not writer.pending_rows:
                    self.flushed |= dict.fromkeys(self.waiting, self.now)
                    self.waiting.clear()
                # The thread turns at TURN_S at the latest, or earlier if something wakes it.
                turn_at = self.now + TURN_S * self.chance.uniform(0.1, 1.0)


def calls_of_a_training(tmp_path: Path) -> int:
    root = tmp_path / "clean"
    root.mkdir()
    files = LossyFiles(root, random.Random(0))
    Training(root / "run", files, random.Random(0)).go_on(300)
    files.close_all()
    return files.calls


def lost_run(tmp_path: Path, seed: int, calls: int) -> tuple[Training, Path]:
    """A training whose machine stops at a random call, and the folder that is found later."""
    chance = random.Random(seed)
    root = tmp_path / "before"
    root.mkdir()
    files = LossyFiles(root, chance, stop_at=chance.randint(2, calls))
    training = Training(root / "run", files, chance)
    with suppress(PowerLostError):
        training.go_on(300)
    files.lose_power(tmp_path / "after")
    files.close_all()
    return training, tmp_path / "after" / "run"


def check(run_dir: Path, safe: set[int], seed: int) -> None:
    if not safe and not (run_dir / "attempt-0001" / "rank-0000").is_dir():
        return
    run = open_folder(run_dir)
    for spec in SERIES:
        if spec.tag not in run.specs():
            assert not safe, (seed, spec.tag)
            continue
        series = run.series(spec.tag)
        steps = series.steps.tolist()
        assert safe <= set(steps), (seed, spec.tag, sorted(safe - set(steps)))
        assert steps == sorted(set(steps)), (seed, spec.tag)
        wanted = Rows.concat(
            [Rows.empty(spec.width, spec.dtype)] + [one_row(spec, s) for s in steps]
        )
        assert series.rows.values.tobytes() == wanted.values.tobytes(), (seed, spec.tag)
    told = {note.step for note in run.notes() if note.kind == "at"}
    assert safe <= told, (seed, "notes", sorted(safe - told))
    if safe:
        assert len(run.id) == 32, seed


def oldest_loss_s(training: Training, run_dir: Path) -> float:
    """How long ago the oldest step was flushed that is not read any more; 0 if none is missing."""
    oldest = 0.0
    specs = open_folder(run_dir).specs() if training.safe() else {}
    for spec in SERIES if specs else ():
        there = set(open_folder(run_dir).series(spec.tag).steps.tolist())
        ages = [training.now - at for step, at in training.flushed.items() if step not in there]
        oldest = max([oldest, *ages])
    return oldest
