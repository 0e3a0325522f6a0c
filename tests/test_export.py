"""`mindpulse export`: every format, read back by somebody else's reader, bit for bit."""

from __future__ import annotations

import csv
import doctest
import importlib
import json
import math
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mindpulse.cli import export
from mindpulse.cli.exports import source as export_source
from mindpulse.cli.exports.files import column_names, pieces, texts, write_csv
from mindpulse.cli.exports.parquet import groups
from mindpulse.cli.options import StepRange
from mindpulse.cli.output import progress
from mindpulse.errors import StoreError
from mindpulse.interop import open_run
from mindpulse.recorder import Recorder
from mindpulse.series import Rows, Series, SeriesSpec
from mindpulse.store.folder import create_attempt
from mindpulse.store.folder_run import open_folder
from mindpulse.store.run import Run
from mindpulse.store.writer import RankWriter
from mindpulse.testing import write_run as run_of_arrays
from test_cli_group import call

FORMATS = ("csv", "json", "parquet", "tensorboard", "mindspore")

ODD_VALUES = [
    *(0.0, -0.0, 0.1, -1.5, math.nan, math.inf, -math.inf, 5e-324, 2.2250738585072014e-308),
    *(1.7976931348623157e308, 1 / 3, 1e16, 123456789.12345679, 1e22, 9007199254740993.0),
]
ODD_STEPS = np.array([-(2**63), -1, 0, 1, 1, 7, 3, *range(10, 17), 2**63 - 1], np.int64)
ODD_TIMES = 1.79e9 + np.array([0.1 * i for i in range(len(ODD_VALUES))])
LABELS = (("a,b", "0"), ('say "x"', "1"), ("注意力", "2"), ("two\nlines\r", "🙂"))
SCALAR = SeriesSpec("loss/train 训练 🙂", unit="nats")
WIDE = SeriesSpec(
    "wide", "vector", "m/s", axes=("name", "head"), columns=LABELS, dtype="float32"
)  # fmt: skip


def bits(values: object, dtype: str = "float64") -> NDArray[np.int64]:
    """The values as their bits; every NaN as the same."""
    array = np.array(values, dtype)
    array[np.isnan(array)] = np.nan
    return array.view("int64" if dtype == "float64" else "int32")


def wide_values() -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        column = np.array(ODD_VALUES).astype(np.float32)
    column[7] = np.float32(1e-45)
    return np.stack([column, column[::-1], np.roll(column, 3), column * np.float32(0.1)], axis=1)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One rank with every value and step that is hard to write."""
    folder = tmp_path_factory.mktemp("odd") / "run"
    recorder = Recorder(folder)
    recorder.write(SCALAR, Rows(ODD_STEPS, ODD_TIMES, np.array(ODD_VALUES)[:, None]))
    recorder.write(WIDE, Rows(ODD_STEPS, ODD_TIMES, wide_values()))
    recorder.close()
    return folder


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rank 0 was started twice, the second time from step 4; only rank 1 has `other`."""
    folder = tmp_path_factory.mktemp("ranks") / "run"
    plan = (
        (0, "train_loss", 1, [5.0, 4.0, 3.0, 2.0]),
        (0, "train_loss", 4, [2.5, 1.5]),
        (1, "train_loss", 1, [9.0]),
        (1, "other", 1, [7.0, 8.0]),
    )
    for rank, tag, first, values in plan:
        recorder = Recorder(folder, rank=rank)
        for offset, value in enumerate(values):
            recorder.write(SeriesSpec(tag), Rows.one(first + offset, 100.0 + offset, value))
        recorder.close()
    return folder


def exported(run: Path, out: Path, *words: str) -> dict[str, Path]:
    """Exports and returns the files by name."""
    result = call("export", run, "--output-dir", out, *words)
    assert result.exit_code == 0, result.stderr
    return {path.name: path for path in sorted(out.rglob("*")) if path.is_file()}


def only(files: dict[str, Path], part: str) -> Path:
    (found,) = [path for name, path in files.items() if part in name]
    return found


# formats, read back


def test_csv_holds_every_bit(odd: Path, tmp_path: Path) -> None:
    files = exported(odd, tmp_path)
    with only(files, "loss").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == ["step", "wall_time", "value"]
    assert [int(row[0]) for row in rows] == ODD_STEPS.tolist()
    assert np.array_equal(bits([float(row[1]) for row in rows]), bits(ODD_TIMES))
    assert np.array_equal(bits([float(row[2]) for row in rows]), bits(ODD_VALUES))
    with only(files, "wide").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head[2:] == [f"name={name} head={number}" for name, number in LABELS]
    table = np.array([[np.float32(cell) for cell in row[2:]] for row in rows])
    assert np.array_equal(bits(table, "float32"), bits(wide_values(), "float32"))


def test_json_holds_every_bit_and_is_strict(odd: Path, tmp_path: Path) -> None:
    files = exported(odd, tmp_path, "--format", "json")
    text = only(files, "loss").read_text("utf-8")
    told = json.loads(text, parse_constant=pytest.fail)
    rows = ["steps", "wall_times", "values"]
    assert list(told)[-3:] == rows
    assert {key: told[key] for key in told if key not in rows} == {
        "tag": SCALAR.tag,
        "plugin": SCALAR.plugin,
        "unit": "nats",
        "axes": [],
        "columns": [],
        "dtype": SCALAR.dtype,
        "reduction": SCALAR.reduction,
    }
    assert told["steps"] == ODD_STEPS.tolist()
    assert np.array_equal(bits([float(value) for value in told["values"]]), bits(ODD_VALUES))
    wide = json.loads(only(files, "wide").read_text("utf-8"), parse_constant=pytest.fail)
    assert wide["columns"] == [list(labels) for labels in LABELS]
    table = np.array([[np.float32(value) for value in row] for row in wide["values"]])
    assert np.array_equal(bits(table, "float32"), bits(wide_values(), "float32"))


def test_parquet_holds_every_bit_and_its_types(odd: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    files = exported(odd, tmp_path, "--format", "parquet")
    table = parquet.read_table(only(files, "loss"))
    assert [str(kind) for kind in table.schema.types] == ["int64", "double", "double"]
    assert table.column("step").to_pylist() == ODD_STEPS.tolist()
    assert np.array_equal(bits(table.column("wall_time").to_numpy()), bits(ODD_TIMES))
    assert np.array_equal(bits(table.column("value").to_numpy()), bits(ODD_VALUES))
    wide = parquet.read_table(only(files, "wide"))
    assert {str(kind) for kind in wide.schema.types[2:]} == {"float"}
    table = np.stack([column.to_numpy() for column in wide.columns[2:]], axis=1)
    assert np.array_equal(bits(table, "float32"), bits(wide_values(), "float32"))
    told = json.loads(wide.schema.metadata[b"mindpulse"])
    assert (told["tag"], told["unit"], told["plugin"]) == ("wide", "m/s", "vector")
    assert told["columns"] == [list(labels) for labels in LABELS]


def test_parquet_and_csv_are_read_by_duckdb(odd: Path, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    for format_ in ("parquet", "csv"):
        path = only(exported(odd, tmp_path / format_, "--format", format_), "loss")
        rows = duckdb.connect().execute(f"from '{path}'").fetchall()
        assert [row[0] for row in rows] == ODD_STEPS.tolist()
        assert np.array_equal(bits([row[2] for row in rows]), bits(ODD_VALUES))


def test_tensorboard_reads_every_bit(odd: Path, tmp_path: Path) -> None:
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    from tensorboard.util import tensor_util

    exported(odd, tmp_path, "--format", "tensorboard")
    found = accumulators.EventAccumulator(str(tmp_path), size_guidance={"tensors": 0}).Reload()
    names = found.Tags()["tensors"]
    assert SCALAR.tag in names
    assert len(names) == 1 + len(LABELS)
    events = found.Tensors(SCALAR.tag)
    assert [event.step for event in events] == ODD_STEPS.tolist()
    assert [event.wall_time for event in events] == ODD_TIMES.tolist()
    values = [tensor_util.make_ndarray(event.tensor_proto).item() for event in events]
    assert np.array_equal(bits(values), bits(ODD_VALUES))


@pytest.mark.parametrize("format_", ["tensorboard", "mindspore"])
def test_event_files_come_back_as_runs(format_: str, odd: Path, tmp_path: Path) -> None:

    exported(odd, tmp_path, "--format", format_)
    back = open_run(tmp_path).series(SCALAR.tag)
    with np.errstate(over="ignore"):
        kept = np.array(ODD_VALUES).astype("float64" if format_ == "tensorboard" else "float32")
    kind = "float64" if format_ == "tensorboard" else "float32"
    order = np.lexsort((back.wall_times,))
    assert back.steps[order].tolist() == ODD_STEPS.tolist()
    assert np.array_equal(bits(back.values[order], kind), bits(kept, kind))


@given(st.lists(st.floats(width=32), min_size=1), st.lists(st.floats(width=64), min_size=1))
def test_texts_read_back_to_the_same_bits(single: list[float], double: list[float]) -> None:
    for values, kind in ((single, "float32"), (double, "float64")):
        found = texts(np.array(values, kind))
        back = [np.dtype(kind).type(text) for text in found]
        assert np.array_equal(bits(back, kind), bits(values, kind))
    assert texts(np.float32([0.1])) == ["0.1"]


# the long layout


def test_long_csv_has_a_line_for_each_value(odd: Path, tmp_path: Path) -> None:
    path = only(exported(odd, tmp_path, "--layout", "long"), "points.csv")
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == ["tag", "rank", "step", "wall_time", "column", "value"]
    assert len(rows) == len(ODD_VALUES) * (1 + len(LABELS))
    scalar = [float(row[5]) for row in rows if row[0] == SCALAR.tag]
    assert np.array_equal(bits(scalar), bits(ODD_VALUES))
    third = [row for row in rows if row[4] == "name=注意力 head=2"]
    assert np.array_equal(
        bits([np.float32(row[5]) for row in third], "float32"),
        bits(wide_values()[:, 2], "float32"),
    )


def test_long_parquet_is_the_same_table(ranks: Path, odd: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    words = ("--format", "parquet", "--layout", "long")
    table = parquet.read_table(only(exported(ranks, tmp_path / "a", *words), "points"))
    rows = [tuple(row.values()) for row in table.to_pylist()]
    assert rows == [
        ("train_loss", 0, 1, 100.0, "", 5.0),
        ("train_loss", 0, 2, 101.0, "", 4.0),
        ("train_loss", 0, 3, 102.0, "", 3.0),
        ("train_loss", 0, 4, 100.0, "", 2.5),
        ("train_loss", 0, 5, 101.0, "", 1.5),
        ("other", 1, 1, 100.0, "", 7.0),
        ("other", 1, 2, 101.0, "", 8.0),
        ("train_loss", 1, 1, 100.0, "", 9.0),
    ]
    table = parquet.read_table(only(exported(odd, tmp_path / "b", *words), "points"))
    wide = table.filter(np.array(table.column("tag").to_pylist()) == "wide")
    assert wide.column("column").to_pylist()[:4] == column_names(WIDE)
    assert np.array_equal(
        bits(wide.column("value").to_numpy()), bits(wide_values().ravel().astype(np.float64))
    )


def test_long_is_for_tables_only(odd: Path) -> None:
    result = call("export", odd, "--format", "tensorboard", "--layout", "long")
    assert result.exit_code == 2
    assert "--format csv or parquet" in result.stderr


# what is chosen


def steps_in(path: Path) -> list[int]:
    with path.open(newline="") as file:
        return [int(row["step"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        ([], [1, 2, 3, 4, 5]),
        (["--attempt", "1"], [1, 2, 3, 4]),
        (["--attempt", "2"], [4, 5]),
        (["--attempt", "all"], [1, 2, 3, 4, 4, 5]),
        (["--steps", "2:4"], [2, 3, 4]),
        (["--steps", "4:"], [4, 5]),
        (["--steps", ":2"], [1, 2]),
        (["--steps", "3"], [3]),
        (["--steps", "4:4", "--attempt", "all"], [4, 4]),
        (["--steps=-5:1"], [1]),
    ],
)
def test_rows_are_chosen(ranks: Path, tmp_path: Path, words, steps) -> None:
    files = exported(ranks, tmp_path, "--tags", "train_*", "--rank", "0", *words)
    assert steps_in(only(files, "train_loss.rank-0000.csv")) == steps


@pytest.mark.parametrize("word", ["x", "1:2:3", ":", "5:4", "1.5:2", ""])
def test_a_wrong_range_of_steps_is_refused(ranks: Path, word: str) -> None:
    result = call("export", ranks, "--steps", word)
    assert result.exit_code == 2
    assert repr(word) in result.stderr


def test_a_rank_without_a_series_is_passed_over(ranks: Path, tmp_path: Path) -> None:
    files = exported(ranks, tmp_path, "--tags", "other,train_loss")
    assert list(files) == [
        "other.rank-0001.csv",
        "train_loss.rank-0000.csv",
        "train_loss.rank-0001.csv",
    ]
    files = exported(ranks, tmp_path / "events", "--format", "tensorboard")
    assert [path.parent.name for path in files.values()] == ["rank-0000", "rank-0001"]


def test_what_no_rank_has_is_an_error(ranks: Path, tmp_path: Path) -> None:
    for format_ in FORMATS:
        words = ("--format", format_, "--attempt", "9", "--output-dir", str(tmp_path / format_))
        result = call("export", ranks, *words)
        assert result.exit_code == 2
        assert "9" in result.stderr
        assert not list(tmp_path.rglob("*.*"))


def test_no_row_writes_no_file(ranks: Path, tmp_path: Path) -> None:
    for format_ in FORMATS:
        result = call(
            "export", ranks, "--steps", "99:", "--format", format_, "--output-dir", tmp_path
        )
        assert result.exit_code == 0
        assert "nothing was written" in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_tag_with_a_comma_is_one_tag(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run")
    recorder.write(SeriesSpec("a,b"), Rows.one(1, 1.0, 2.0))
    recorder.write(SeriesSpec("a"), Rows.one(1, 1.0, 2.0))
    recorder.close()
    assert list(exported(tmp_path / "run", tmp_path / "out", "--tags", "a,b")) == ["a%2Cb.csv"]


def test_another_tools_file_is_converted(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    state = {"log_history": [{"step": n, "loss": 1.0 / n, "epoch": n / 10} for n in (10, 20, 30)]}
    (tmp_path / "trainer_state.json").write_text(json.dumps(state | {"global_step": 30}))
    source = tmp_path / "trainer_state.json"
    files = exported(source, tmp_path / "out", "--format", "parquet")
    table = parquet.read_table(only(files, "train_loss"))
    assert table.column("step").to_pylist() == [10, 20, 30]
    assert table.column("value").to_pylist() == [1.0 / 10, 1.0 / 20, 1.0 / 30]


# never half a file


class EndingRun(Run):
    """A run whose second block never comes: reading it raises `error`."""

    def __init__(self, run: Run, error: BaseException) -> None:
        self.inner, self.error = run, error
        self.path, self.id = run.path, run.id
        self.created, self.run_tags = run.created, run.run_tags

    def specs(self) -> dict[str, SeriesSpec]:
        return self.inner.specs()

    def series(self, tag, rank=0, attempt=None, columns=None) -> Series:
        return self.inner.series(tag, rank, attempt, columns)

    def blocks(self, tag, rank=0, attempt=None) -> Iterator[Series]:
        yield self.inner.series(tag, rank, attempt)
        raise self.error

    def files(self):
        return self.inner.files()


@pytest.mark.parametrize(
    ("format_", "layout"),
    [*((name, "series") for name in FORMATS), *((name, "long") for name in export.LONG)],
)
@pytest.mark.parametrize("error", [KeyboardInterrupt(), StoreError("gone"), OSError(5, "I/O")])
def test_an_export_that_ends_early_leaves_the_old_files(
    format_, layout, error, odd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--format", format_, "--layout", layout)
    before = {path: path.read_bytes() for path in exported(odd, tmp_path, *words).values()}
    broken = EndingRun(open_folder(odd), error)
    monkeypatch.setattr(export, "open_run", lambda path: broken)
    result = call("export", odd, "--output-dir", tmp_path, *words)
    assert result.exit_code != 0
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert {path for path in tmp_path.rglob("*") if path.is_dir()} == set()


@pytest.mark.parametrize("format_", FORMATS)
def test_a_disk_that_takes_no_more_is_told(format_: str, tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: the write fails half-way."""
    recorder = Recorder(tmp_path / "run")
    values = np.random.default_rng(0).normal(size=(30_000, 1))
    recorder.write(SeriesSpec("loss"), Rows(np.arange(30_000), np.arange(30_000) * 1.5, values))
    recorder.close()
    command = [sys.executable, "-m", "mindpulse.cli", "export", str(tmp_path / "run")]
    command += ["--format", format_, "--output-dir", str(tmp_path / "out")]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("mindpulse: ")
    assert str(tmp_path / "out") in done.stderr
    assert "Traceback" not in done.stderr
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_a_full_disk_says_so(tmp_path: Path) -> None:
    def blocks() -> Iterator[Rows]:
        yield Rows.one(1, 1.0, 2.0)
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match="make room or choose another place"):
        write_csv(tmp_path / "x.csv", SeriesSpec("x"), blocks())
    assert not list(tmp_path.iterdir())


KILLED = """
import os, signal, sys
from mindpulse.cli import export
from mindpulse.cli.group import main
def killed(blocks):
    yield next(blocks)
    os.kill(os.getpid(), signal.SIGKILL)
inner = export.FILES["csv"]
export.FILES["csv"] = lambda path, spec, blocks: inner(path, spec, killed(iter(blocks)))
main(["export", *sys.argv[1:]])
"""


def test_a_killed_export_leaves_no_file_of_that_name(odd: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(odd), "--output-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == -9
    assert all(path.name.startswith(".") for path in tmp_path.iterdir())
    assert len(exported(odd, tmp_path)) == 2  # and what it left is gone with the next export


# streaming


def test_pieces_and_groups_keep_every_row() -> None:
    rows = Rows(np.arange(1000), np.arange(1000.0), np.arange(3000.0).reshape(1000, 3))
    blocks = [rows[0:400], rows[400:401], rows[401:1000]]
    for found in (list(pieces(blocks, 100)), list(groups(blocks, 64))):
        assert np.array_equal(Rows.concat(found).values, rows.values)
        assert np.array_equal(Rows.concat(found).steps, rows.steps)
    assert {len(piece) for piece in pieces(blocks, 100)} <= set(range(1, 34))
    assert [len(group) for group in groups(blocks, 64)] == [64] * 15 + [40]
    assert [len(group) for group in groups([rows], 2000)] == [1000]


def test_rows_are_written_as_they_are_read(tmp_path: Path) -> None:
    """The next block is asked for only when the one before it is on its way to the disk."""
    seen: list[int] = []

    def blocks() -> Iterator[Rows]:
        for number in range(5):
            (hidden,) = list(tmp_path.iterdir())
            seen.append(hidden.stat().st_size)
            yield Rows(np.arange(50_000), np.full(50_000, number * 1.0), np.ones((50_000, 1)))

    assert write_csv(tmp_path / "x.csv", SeriesSpec("x"), blocks()) == 250_000
    assert seen == sorted(seen)
    assert seen[-1] > 3 * 50_000 * 8


PEAK = """
import sys
import numpy as np
from pathlib import Path
from mindpulse.cli import export
from mindpulse.cli.group import main
from mindpulse.series import Rows, Series, SeriesSpec
from mindpulse.store.folder import create_attempt
from mindpulse.store.writer import RankWriter
from mindpulse.testing import write_run as run_of_arrays
from mindpulse.store.run import Run
spec = SeriesSpec("w", axes=("c",), columns=tuple((str(i),) for i in range(50)), dtype="float32")
class Long(Run):
    path, id, created, run_tags = Path("long"), "", 0.0, {}
    def specs(self):
        return {"w": spec}
    def series(self, tag, rank=0, attempt=None, columns=None):
        raise AssertionError("the whole series was asked for")
    def blocks(self, tag, rank=0, attempt=None):
        for n in range(40):
            values = np.random.default_rng(n).normal(size=(2500, 50)).astype(np.float32)
            yield Series(spec, Rows(np.arange(n * 2500, (n + 1) * 2500), np.ones(2500), values))
    def files(self):
        return []
export.open_run = lambda path: Long()
if "parquet" in sys.argv:
    import pyarrow.parquet
import mindpulse.interop.events.writer
def peak():  # ru_maxrss would begin with that of the parent
    (line,) = [x for x in open("/proc/self/status") if x.startswith("VmHWM")]
    return int(line.split()[1]) * 1024
before = peak()
main(["export", *sys.argv[1:]], standalone_mode=False)
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("format_", FORMATS)
def test_memory_does_not_grow_with_the_run(format_: str, tmp_path: Path) -> None:
    """5 M points, 20 MB as float32 and over 250 MB as text, within a fixed bound."""
    command = [sys.executable, "-c", PEAK, "long", "--format", format_]
    command += ["--output-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 1e6 < int(done.stdout.split()[-1]) < 120e6


# progress, packages


def test_progress_counts_rows(ranks: Path, tmp_path: Path, monkeypatch) -> None:
    run = open_folder(ranks)
    assert export_source.expected_rows(run, ["train_loss"], None) == 7
    assert export_source.expected_rows(run, ["train_loss", "other"], 1) == 5
    counted: list[int] = []
    source = export_source.Source(
        run, ["train_loss"], [0, 1], None, StepRange(5, None), counted.append
    )
    found = [list(piece.blocks) for rank in (0, 1) for piece in source.pieces(rank)]
    assert [len(rows) for blocks in found for rows in blocks] == [1]
    assert sum(counted) == 6
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress("exporting", lambda: 10) as count:
        count(4)


@pytest.mark.parametrize("name", ["duckdb", "pyarrow"])
def test_a_missing_package_is_named_with_its_command(
    name: str, odd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    words = {
        "duckdb": ["query", odd, "--sql", "select 1"],
        "pyarrow": ["export", odd, "--format", "parquet", "--output-dir", tmp_path / "out"],
    }
    result = call(*words[name])
    assert result.exit_code == 2
    assert f"this needs {name}; run: pip install 'mindpulse[analyze]'" in result.stderr
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_columns_that_differ_in_case_get_a_number() -> None:
    spec = SeriesSpec("x", axes=("p",), columns=(("w",), ("W",), ("w",)))
    assert column_names(spec) == ["p=w", "p=W (2)", "p=w (3)"]


@pytest.mark.parametrize(
    "name",
    ["export", "exports.files", "exports.events", "sql.engine", "sql.text"],
)
def test_examples_run(name: str) -> None:
    tried = doctest.testmod(importlib.import_module(f"mindpulse.cli.{name}"))
    assert tried.attempted > 0
    assert tried.failed == 0


def test_json_read_back_as_a_run_is_the_same_series(tmp_path: Path) -> None:
    """Without its type a float32 would come back as the double of the same digits."""
    spec = SeriesSpec("load", "vector", "s", ("cpu",), (("0",), ("1",)), "float32", "max")
    writer = RankWriter(create_attempt(tmp_path / "run"), 0, 1)
    values = np.array([[0.1, np.nan], [1e-45, -0.0]], np.float32)
    writer.append(spec, Rows(np.arange(2), np.array([1.5, np.nan]), values))
    writer.close()
    files = exported(tmp_path / "run", tmp_path / "out", "--format", "json")
    back = open_run(only(files, "load")).series("load")
    assert back.spec == spec
    assert np.array_equal(bits(back.rows.values, "float32"), bits(values, "float32"))


def test_what_is_not_whole_is_told(tmp_path: Path) -> None:
    run_of_arrays(tmp_path / "run", train_loss=np.arange(50.0), grad_norm=np.arange(50.0))
    path = tmp_path / "run" / "attempt-0001" / "rank-0000" / "train_loss.ms"
    path.write_bytes(path.read_bytes()[:20])
    result = call("export", tmp_path / "run", "--output-dir", tmp_path / "out")
    assert result.exit_code == 0
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["grad_norm.csv"]
    assert f"not whole: {path}: the file ends within its header" in result.stderr
    result = call("query", tmp_path / "run", "--tag", "train_loss")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{path}: the file ends within its header" in result.stderr


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_long_tags_find_a_name(format_: str, tmp_path: Path) -> None:
    """Encoded, 66 Chinese characters are 594 bytes; file systems take 255."""
    tags = ["\u635f" * 66, "\u635f" * 65 + "\u5931"]
    run_of_arrays(tmp_path / "run", **{tag: [1.0, 2.0] for tag in tags})
    files = exported(tmp_path / "run", tmp_path / "out", "--format", format_)
    assert len(files) == 2
    if format_ == "json":
        assert {json.loads(path.read_text("utf-8"))["tag"] for path in files.values()} == set(tags)
