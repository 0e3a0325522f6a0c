"""Odd values, steps, clocks, tags and sizes come back bit for bit."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mindpulse import SummaryReader, SummaryRecord
from mindpulse.recorder import Recorder
from mindpulse.series import MAX_STEP, MIN_STEP, Rows, SeriesSpec
from mindpulse.store.codec import RowCodec
from mindpulse.store.folder import create_attempt
from mindpulse.store.folder_run import open_folder
from mindpulse.store.one_file import read_file
from mindpulse.store.reader import Chunk, RunTail
from mindpulse.store.writer import RankWriter
from series_samples import FOCUS, LOSS, assert_same

TAGS = (
    "loss",
    "val/loss",
    "val loss",
    "验证/损失",
    "🔥 loss 🚀",
    "a.b.c",
    "100%",
    "%2F",
    "~home",
    ".hidden",
    "..",
    "con",
    "tab\there",
    "new\nline",
    "nul\0byte",
    "x" * 200,
    "字" * 66,
    "Loss",
    "LOSS",
    "-rf",
    "*?[]",
    "e\u0301",
    "\u00e9",
)
FEW_DESCRIPTORS = 64


def round_trip(run: Path, spec: SeriesSpec, blocks: list[Rows]) -> Rows:
    """Written block by block, read by the run and by a tail, which must agree."""
    writer = RankWriter(create_attempt(run), 0, 1, max_file_bytes=20_000)
    for block in blocks:
        writer.append(spec, block)
        writer.flush()
    writer.close()
    series = open_folder(run).series(spec.tag)
    assert series.spec == spec
    chunks = [chunk.rows for chunk in RunTail(run).poll() if isinstance(chunk, Chunk)]
    if chunks:
        assert_same(Rows.concat(chunks), series.rows)
    return series.rows


@given(st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_values_steps_and_times(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """NaN with any payload, infinities, denormals, -0.0; equal, falling and jumping steps."""
    spec = data.draw(st.sampled_from([LOSS, FOCUS]))
    bits = {"float64": np.uint64, "float32": np.uint32}[spec.dtype]
    count = data.draw(st.integers(1, 40))
    raw = data.draw(arrays.arrays(bits, (count, spec.width)))
    steps = data.draw(arrays.arrays(np.int64, count))
    times = np.arange(count) + data.draw(st.sampled_from([-1e18, 0.0, 1.7e9, 4e18]))
    rows = Rows(steps, times, raw.view(spec.dtype))
    found = round_trip(tmp_path_factory.mktemp("run"), spec, [rows])
    assert_same(found, rows)


def test_steps_to_the_end_of_their_type(tmp_path: Path) -> None:
    with SummaryRecord(tmp_path) as record:
        for step in (MIN_STEP, -1, 0, MAX_STEP - 1, MAX_STEP):
            record.add_value("scalar", "x", 1.0, step=step)
        with pytest.raises(ValueError, match="does not fit 64 bits"):
            record.add_value("scalar", "x", 1.0)  # the step after the last one
    steps = SummaryReader(tmp_path).series("x").steps.tolist()
    assert steps == [MIN_STEP, -1, 0, MAX_STEP - 1, MAX_STEP]


def test_clocks_may_jump(tmp_path: Path) -> None:
    """Back by years, forward, stuck, not a number: rows stay in the order of writing."""
    times = iter([1.7e9, 1e9, 1e9, 2e9, 0.0, -5.0, float("nan"), float("inf"), 1.7e9] * 20)
    recorder = Recorder(tmp_path, flush_interval=0.01, clock=lambda: next(times, 1.0))
    for step in range(50):
        recorder.add_scalars(step, {"x": float(step)})
        recorder.flush()
    recorder.close()
    assert open_folder(tmp_path).series("x").steps.tolist() == list(range(50))
    assert recorder.stats.rows_lost == 0


def test_the_same_step_and_time_again_is_a_row_again(tmp_path: Path) -> None:
    rows = Rows(np.array([1, 1, 1]), np.array([5.0, 5.0, 5.0]), np.array([[1.0], [2.0], [3.0]]))
    assert_same(round_trip(tmp_path, LOSS, [rows, rows]), Rows.concat([rows, rows]))


def test_odd_tags_are_kept_apart_and_found(tmp_path: Path) -> None:
    writer = RankWriter(create_attempt(tmp_path), 0, 1)
    for number, tag in enumerate(TAGS):
        writer.append(SeriesSpec(tag), Rows.one(number, 0.0, float(number)))
    writer.close()
    run = open_folder(tmp_path)
    assert set(run.specs()) == set(TAGS)
    for number, tag in enumerate(TAGS):
        assert run.series(tag).values.tolist() == [float(number)], tag
    found = {c.spec.tag: c.rows.steps[0] for c in RunTail(tmp_path).poll() if isinstance(c, Chunk)}
    assert found == {tag: number for number, tag in enumerate(TAGS)}
    names = [path.name for path in writer.directory.iterdir()]
    assert all(name.isascii() and "/" not in name and not name.startswith(".") for name in names)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_five_thousand_columns(tmp_path: Path, dtype: str) -> None:
    columns = tuple((f"层{i // 50}.weight", str(i)) for i in range(5000))
    spec = SeriesSpec("grad_norm_param", "vector", "", ("param", "i"), columns, dtype)
    chance = np.random.default_rng(0)
    blocks = [
        Rows(
            np.arange(at, at + 3),
            np.full(3, 1.7e9 + at),
            chance.standard_normal((3, 5000)).astype(dtype),
        )
        for at in range(0, 30, 3)
    ]
    found = round_trip(tmp_path, spec, blocks)
    assert_same(found, Rows.concat(blocks))
    assert RowCodec(spec).row_bytes < 5000 * np.dtype(dtype).itemsize + 40


@contextmanager
def few_descriptors(count: int) -> Iterator[None]:
    """No more than so many open files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.slow
def test_ten_thousand_series_in_one_run(tmp_path: Path) -> None:
    """With fewer descriptors than series; what one flush costs is printed."""
    specs = [SeriesSpec(f"layer{i // 100}/head{i % 100}") for i in range(10_000)]
    open_files = len(list(Path("/proc/self/fd").iterdir())) + FEW_DESCRIPTORS
    with few_descriptors(open_files):
        writer = RankWriter(create_attempt(tmp_path), 0, 1)
        for step in range(3):
            for number, spec in enumerate(specs):
                writer.append(spec, Rows.one(step, float(step), float(number)))
            writer.flush()
        run = open_folder(tmp_path)
        assert len(run.specs()) == 10_000
        tail = RunTail(tmp_path)
        chunks = [chunk for chunk in tail.poll() if isinstance(chunk, Chunk)]
        assert len(chunks) == 10_000
        assert sum(len(chunk.rows) for chunk in chunks) == 30_000
        for number in range(0, 10_000, 997):
            series = run.series(specs[number].tag)
            assert series.values.tolist() == [float(number)] * 3


def test_dropping_rows_of_many_series_is_quick(tmp_path: Path) -> None:
    """The disk is full, and every series waits: memory stays bounded without taking minutes."""
    writer = RankWriter(tmp_path, 0, 1)
    for step in range(5):
        for number in range(2000):
            writer.append(SeriesSpec(f"s{number}"), Rows.one(step, float(step), 1.0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    assert writer.drop_oldest(writer.pending_bytes // 5) == 8000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 2.0
    writer.close()
    assert steps_in(tmp_path) == {4}


def steps_in(folder: Path) -> set[int]:
    return {int(step) for path in folder.glob("*.ms") for step in read_file(path).rows.steps}


def test_blocks_without_a_row_do_not_wait(tmp_path: Path) -> None:
    writer = RankWriter(tmp_path, 0, 1)
    writer.append(LOSS, Rows.empty(1))
    writer.append(LOSS, Rows.one(1, 0.0, 1.0))
    assert writer.pending_rows == writer.drop_oldest(0) == 1
    writer.append(LOSS, Rows.empty(1))
    writer.close()
    assert list(tmp_path.iterdir()) == []
