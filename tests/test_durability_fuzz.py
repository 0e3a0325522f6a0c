"""Fuzzing: any sequence of what may happen to a run, and any bytes in any of its files."""

from __future__ import annotations

import importlib
import shutil
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from memory import peak_memory
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.folder import create_attempt
from mindpulse.store.folder_run import open_folder
from mindpulse.store.reader import Chunk, RunTail
from mindpulse.store.writer import RankWriter
from series_samples import FOCUS, LOSS

pytestmark = pytest.mark.slow

FUZZ = Path(__file__).parent.parent / "fuzz"
TARGETS = sorted(path.stem for path in (FUZZ / "targets").glob("[a-z]*.py"))
# Memory for an input: so many times its size, and what an empty run takes.
MEMORY_TIMES, MEMORY_BYTES = 400, 8 << 20
MAX_SECONDS = 5.0
SEED = (
    '{"id":"a","rule":"r","state":"firing","severity":"warning","part":"loss","step":5,'
    '"since_step":4,"wall_time":1.5,"rank":0,"attempt":1,"columns":["x"],"evidence":{"z":"inf"}}\n'
)


class Life(RuleBasedStateMachine):
    """A run that is written, cut into parts, killed, begun anew and read, against a table."""

    @initialize()
    def begin(self) -> None:
        self.run = Path(tempfile.mkdtemp(prefix="mindpulse-life-"))
        self.attempts: list[dict[str, list[int]]] = []
        self.waiting: list[tuple[str, int]] = []
        self.tail = RunTail(self.run)
        self.told: dict[tuple[int, str], list[int]] = {}
        self.number = 0
        self.start()

    def start(self) -> None:
        folder = create_attempt(self.run)
        self.attempts.append({LOSS.tag: [], FOCUS.tag: []})
        self.writer = RankWriter(folder, 0, len(self.attempts), max_file_bytes=400)

    @rule(spec=st.sampled_from([LOSS, FOCUS]), steps=st.lists(st.integers(0, 30), max_size=12))
    def write(self, spec: SeriesSpec, steps: list[int]) -> None:
        at = np.array(steps, np.int64)
        self.number += 1
        values = np.repeat(at[:, None] + len(self.attempts) / 8, spec.width, axis=1)
        times = self.number + np.arange(len(at)) / 100
        self.writer.append(spec, Rows(at, times, values.astype(spec.dtype)))
        self.waiting += [(spec.tag, step) for step in steps]

    @rule()
    def flush(self) -> None:
        self.writer.flush()
        for tag, step in self.waiting:
            self.attempts[-1][tag].append(step)
        self.waiting.clear()

    @rule()
    def sync(self) -> None:
        self.writer.sync()

    @rule()
    def kill(self) -> None:
        """What waits in memory is gone; the next start is an attempt of its own."""
        self.waiting.clear()
        self.start()

    @rule(data=st.data())
    def cut_a_file(self, data: st.DataObject) -> None:
        """Part of a row at the end of the newest file, as a kill within a write leaves it."""
        files = sorted(self.writer.directory.glob("train_loss*.ms"))
        if files:
            with files[-1].open("ab") as file:
                file.write(b"\x12\x20\x09"[: data.draw(st.integers(1, 3))])

    @rule()
    def follow(self) -> None:
        for found in self.tail.poll():
            if isinstance(found, Chunk):
                key = (found.attempt, found.spec.tag)
                self.told.setdefault(key, []).extend(found.rows.steps.tolist())
        for number, attempt in enumerate(self.attempts, 1):
            for tag, steps in attempt.items():
                assert self.told.get((number, tag), []) == steps

    @invariant()
    def what_is_read_is_what_was_flushed(self) -> None:
        opened = open_folder(self.run)
        for tag in (LOSS.tag, FOCUS.tag):
            every = [(n, steps[tag]) for n, steps in enumerate(self.attempts, 1) if steps[tag]]
            if not every:
                assert tag not in opened.specs()
                continue
            merged, limit = [], 10**9
            for number, steps in reversed(every):
                merged = [(s, s + number / 8) for s in steps if s < limit] + merged
                limit = min(limit, *steps)
            series = opened.series(tag)
            assert series.steps.tolist() == [step for step, _ in merged]
            assert series.rows.values[:, 0].tolist() == [value for _, value in merged]
            number, steps = every[0]
            assert opened.series(tag, attempt=number).steps.tolist() == steps
            assert len(opened.series(tag, attempt="all")) == sum(len(s) for _, s in every)
        assert not [r for r in opened.files() if r.damaged_rows or not (r.valid or r.foreign)]

    def teardown(self) -> None:
        if hasattr(self, "run"):
            shutil.rmtree(self.run)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def target(name: str) -> ModuleType:
    """A target of fuzz/, as atheris runs it, too."""
    if str(FUZZ) not in sys.path:
        sys.path.append(str(FUZZ))
    return importlib.import_module(f"targets.{name}")


def changed(data: st.DataObject, seed: bytes) -> bytes:
    """A real file to which some of the things happen that happen to files."""
    found = bytearray(seed)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(found)))
        size = data.draw(st.integers(0, 40))
        how = data.draw(st.sampled_from(["cut", "insert", "remove", "zero", "set", "repeat"]))
        if how == "cut":
            del found[at:]
        elif how == "remove":
            del found[at : at + size]
        elif how == "zero":
            found[at : at + size] = bytes(len(found[at : at + size]))
        elif how == "repeat":
            found[at:at] = found[at : at + size] * data.draw(st.integers(1, 50))
        else:
            piece = data.draw(st.binary(max_size=40))
            found[at : at + (len(piece) if how == "set" else 0)] = piece
    return bytes(found)


@pytest.mark.parametrize("name", TARGETS)
@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_bytes_crash_hang_or_take_all_memory(name: str, data: Any) -> None:
    module = target(name)
    seeds = module.seeds()
    given_bytes = data.draw(st.one_of(st.binary(max_size=300), st.none()))
    if given_bytes is None:
        given_bytes = changed(data, data.draw(st.sampled_from(seeds)))
    begin = time.monotonic()
    most = MEMORY_TIMES * len(given_bytes) + MEMORY_BYTES
    assert peak_memory(lambda: module.one_input(given_bytes), most)[0] <= most
    assert time.monotonic() - begin < MAX_SECONDS


def test_a_header_cannot_ask_for_more_memory_than_its_file_has(tmp_path: Path) -> None:
    """A million columns with empty labels, and rows of 8 MB each that are not there."""
    from mindpulse.store.format import encode_header
    from mindpulse.store.one_file import read_file

    wide = SeriesSpec("w", "v", "", ("c",), (("",),) * 200_000)
    data = encode_header(wide, 0.0, 0, 1)
    path = tmp_path / "w.ms"
    path.write_bytes(data + bytes(100))
    peak, content = peak_memory(lambda: read_file(path), 100 * len(data))
    assert content.header
    assert len(content.rows) == 0
    assert peak <= 100 * len(data), f"{peak / len(data):.0f} times the file"


HUGE, DEEP = "9" * 400, "[" * 50_000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run_json", f'{{"id": "a", "created": {HUGE}, "tags": {{}}}}'),
        ("run_json", DEEP),
        ("notes", f'{{"kind": "start", "step": {HUGE}, "wall_time": {HUGE}}}\n'),
        ("notes", '{"kind": "start", "step": true}\n'),
        ("notes", DEEP + "\n"),
        ("alerts_log", SEED.replace('"step":5', '"step":1e999')),
        ("alerts_log", SEED.replace('"wall_time":1.5', f'"wall_time":{HUGE}')),
        ("alerts_log", SEED.replace('"z":"inf"', f'"z":{HUGE}')),
        ("alerts_log", DEEP + "\n"),
        ("control_log", f'{{"type": "request", "seq": {HUGE}}}\n'),
        ("control_log", DEEP + "\n"),
    ],
    ids=lambda value: value[:30],
)
def test_numbers_and_depths_that_fit_nowhere(name: str, text: str) -> None:
    target(name).one_input(text.encode())
