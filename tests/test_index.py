"""The index beside a file: what it tells is what the rows tell, and it never tells more."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faulty_files import FaultyFiles
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store import index, index_format, index_writer
from mindpulse.store.check import check_files
from mindpulse.store.folder import create_attempt
from mindpulse.store.folder_run import open_folder
from mindpulse.store.index import levels_of
from mindpulse.store.index_format import index_path
from mindpulse.store.index_writer import IndexWriter, rebuild_index
from mindpulse.store.overview import Overview
from mindpulse.store.part_file import PartFile
from mindpulse.store.writer import RankWriter
from run_files import part_path, write_part
from series_samples import FOCUS, LOSS, rows_of
from test_overview import assert_tells

COUNT = 50_000
OTHER = SeriesSpec("grad_norm")


def noisy(spec: SeriesSpec, count: int, seed: int = 0, first: int = 0) -> Rows:
    """Rows with some NaNs and infinities; `first` is the first step."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(count, spec.width))
    for odd in (np.nan, np.inf, -np.inf):
        values[rng.integers(0, count, count // 500), rng.integers(0, spec.width)] = odd
    steps = np.arange(first, first + count, dtype=np.int64)
    return Rows(steps, 1.7e9 + 0.1 * steps + seed, values.astype(spec.dtype))


@contextmanager
def small_blocks() -> Iterator[None]:
    """Blocks of 4 rows, 2 blocks in the next: a short series has many levels."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (index, index_format, index_writer):
            if hasattr(module, "BLOCK_ROWS"):
                patch.setattr(module, "BLOCK_ROWS", 4)
            if hasattr(module, "FAN_OUT"):
                patch.setattr(module, "FAN_OUT", 2)
        yield


def written(run: Path, spec: SeriesSpec, rows: Rows, rows_a_flush: int = 500) -> Path:
    """The file of a series that a writer wrote, with the index that it wrote beside it."""
    folder = create_attempt(run)
    writer = RankWriter(folder, 0, 1)
    for at in range(0, len(rows), rows_a_flush):
        writer.append(spec, rows[at : at + rows_a_flush])
        writer.flush()
    writer.close()
    return next(folder.glob("*.ms"))


def index_files(path: Path) -> dict[str, bytes]:
    folder = index_path(path, 0).parent
    return {file.name: file.read_bytes() for file in sorted(folder.glob(f"{path.name}.*"))}


def same(a: Overview, b: Overview) -> bool:
    return all(
        np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True)
        for name in type(a).__mro__[1].__slots__
    )


@pytest.mark.parametrize("spec", [LOSS, FOCUS], ids=lambda spec: spec.plugin)
@pytest.mark.parametrize("rows_a_flush", [7, 500, COUNT])
def test_the_writer_leaves_what_a_rebuild_makes(
    tmp_path: Path, spec: SeriesSpec, rows_a_flush: int
) -> None:
    path = written(tmp_path, spec, noisy(spec, COUNT), rows_a_flush)
    begun = index_files(path)
    assert rebuild_index(path)
    whole = index_files(path)
    assert begun.keys() == whole.keys() == {f"{path.name}.0", f"{path.name}.1"}
    assert all(whole[name].startswith(data) for name, data in begun.items())
    entry = len(index_format.index_layout(spec.width).blank)
    assert [len(whole[name]) for name in sorted(whole)] == [24 + 195 * entry, 24 + 6 * entry]
    assert len(begun[f"{path.name}.0"]) >= 24 + 100 * entry


def test_an_overview_out_of_the_index_is_that_of_the_rows(tmp_path: Path) -> None:
    written(tmp_path, FOCUS, noisy(FOCUS, COUNT))
    run = open_folder(tmp_path)
    series = run.series("attn_focus")
    for points in (3, 20, 100, 300, 2000):
        overview = run.overview("attn_focus", points)
        assert_tells(overview, series)
        assert points // 3 <= len(overview) <= points // 2
    picked = run.overview("attn_focus", 50, columns=[2, 0])
    assert_tells(picked, series.pick([2, 0]))
    assert picked.spec == FOCUS.pick([2, 0])


def test_the_rows_are_not_read_where_the_index_tells_of_them(tmp_path: Path) -> None:
    path = written(tmp_path, LOSS, noisy(LOSS, COUNT))
    before = open_folder(tmp_path).overview("train_loss", 40)
    start = PartFile.at(path).header.size  # type: ignore[union-attr]
    with path.open("r+b") as file:  # rows that no check looks at
        file.seek(start + 34 * 300)
        file.write(bytes(34 * 5000))
    assert same(open_folder(tmp_path).overview("train_loss", 40), before)
    shutil.rmtree(path.parent / "index")
    assert open_folder(tmp_path).overview("train_loss", 40).counts.sum() == COUNT - 5000


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_parts_attempts_and_any_harm_to_the_index(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    with small_blocks():
        check_overview(tmp_path_factory.mktemp("run"), data)


def check_overview(run_dir: Path, data: st.DataObject) -> None:
    paths, last = [], Rows.empty(1)
    for attempt in range(1, data.draw(st.integers(1, 3)) + 1):
        first = data.draw(st.integers(0, 60))
        for part in range(1, data.draw(st.integers(1, 2)) + 1):
            rows = noisy(LOSS, data.draw(st.integers(1, 150)), 100 * attempt, first)
            if part > 1:  # begins with rows that the part before it has
                rows = Rows.concat([last[-data.draw(st.integers(1, 9)) :], rows])
            damaged = data.draw(st.sets(st.integers(0, len(rows) - 1), max_size=4))
            paths.append(part_path(run_dir, LOSS, attempt, part))
            write_part(paths[-1], LOSS, rows, damaged, attempt)
            first, last = first + len(rows), rows
            if data.draw(st.booleans()):
                rebuild_index(paths[-1])
    harm(paths, data)
    run = open_folder(run_dir)
    series = run.series("train_loss")
    points = data.draw(st.integers(3, 60))
    overview = run.overview("train_loss", points)
    assert_tells(overview, series)
    assert len(overview) <= max(points // 2, min(len(series), points))
    assert len(overview.curve()) <= points


def harm(paths: list[Path], data: st.DataObject) -> None:
    """Deletes, cuts, flips a bit of, or swaps some index files."""
    files = [file for path in paths for file in (path.parent / "index").glob(f"{path.name}.*")]
    for _ in range(data.draw(st.integers(0, 3))):
        if not files:
            return
        file = data.draw(st.sampled_from(sorted(set(files))))
        how = data.draw(st.sampled_from(["delete", "cut", "flip", "swap"]))
        content = bytearray(file.read_bytes()) if file.exists() else bytearray()
        if how == "delete" or not content:
            file.unlink(missing_ok=True)
        elif how == "cut":
            file.write_bytes(content[: data.draw(st.integers(0, len(content)))])
        elif how == "flip":
            content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(
                st.integers(0, 7)
            )
            file.write_bytes(content)
        else:
            other = data.draw(st.sampled_from(sorted(set(files))))
            file.write_bytes(other.read_bytes() if other.exists() else b"")
            other.write_bytes(content)


def test_the_index_of_another_run_with_the_same_header_is_not_believed(tmp_path: Path) -> None:
    mine, other = part_path(tmp_path / "a", LOSS), part_path(tmp_path / "b", LOSS)
    write_part(mine, LOSS, noisy(LOSS, COUNT, seed=1))
    write_part(other, LOSS, noisy(LOSS, COUNT, seed=2))
    rebuild_index(other)
    shutil.copytree(other.parent / "index", mine.parent / "index")
    assert not levels_of(PartFile.at(mine))
    assert len(levels_of(PartFile.at(other))) == 2
    run = open_folder(tmp_path / "a")
    assert_tells(run.overview("train_loss", 40), run.series("train_loss"))


def test_an_index_ahead_of_the_rows_is_used_as_far_as_they_go(tmp_path: Path) -> None:
    path = written(tmp_path, LOSS, noisy(LOSS, COUNT))
    with path.open("r+b") as file:
        file.truncate(21_000 * 34)
    run = open_folder(tmp_path)
    assert_tells(run.overview("train_loss", 40), run.series("train_loss"))
    assert levels_of(PartFile.at(path))[0].count == len(run.series("train_loss")) // 256


class IndexFaults(FaultyFiles):
    """Fails at the n-th call that has to do with a file of an index."""

    def __init__(self, fault: int, code: int) -> None:
        super().__init__(lambda number, name: number == fault, code)
        self._inside = False

    def _fails(self, name: str) -> bool:
        return self._inside and super()._fails(name)

    def open(self, path: Path, flags: int) -> int:
        self._inside = path.parent.name == "index"
        return super().open(path, flags)


@pytest.mark.parametrize("fault", range(1, 12))
def test_a_fault_costs_the_index_and_no_row(tmp_path: Path, fault: int) -> None:
    files = IndexFaults(fault, errno.EIO if fault % 2 else 0)
    folder = create_attempt(tmp_path)
    writer = RankWriter(folder, 0, 1, files=files)
    rows = noisy(LOSS, COUNT)
    for at in range(0, COUNT, 1000):
        writer.append(LOSS, rows[at : at + 1000])
        writer.flush()
    writer.close()
    run = open_folder(tmp_path)
    assert len(run.series("train_loss")) == COUNT
    assert_tells(run.overview("train_loss", 40), run.series("train_loss"))
    assert [note.kind for note in run.notes()] in ([], ["index_given_up"])


@pytest.mark.parametrize("error", [MemoryError("full"), OverflowError("too large")])
def test_an_error_while_summing_up_costs_the_index_and_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(index_writer, "_summary", fail)
    written(tmp_path, LOSS, rows_of(LOSS, range(40_000)), 10_000)
    run = open_folder(tmp_path)
    assert run.series("train_loss").steps.tolist() == list(range(40_000))
    assert [note.kind for note in run.notes()] == ["index_given_up"]


def test_a_new_part_under_an_old_name_begins_its_index_anew(tmp_path: Path) -> None:
    folder = create_attempt(tmp_path)
    writer = RankWriter(folder, 0, 1)
    writer.append(LOSS, noisy(LOSS, COUNT, seed=1))
    writer.flush()
    (folder / "train_loss.ms").unlink()
    writer.append(LOSS, noisy(LOSS, COUNT, seed=2))
    writer.close()
    run = open_folder(tmp_path)
    assert_tells(run.overview("train_loss", 40), run.series("train_loss"))
    assert levels_of(PartFile.at(folder / "train_loss.ms"))


def test_what_cannot_be_indexed_is_read_from_the_rows(tmp_path: Path) -> None:
    rows = noisy(LOSS, COUNT)
    rows.steps[::2] = 2**63 - 1
    written(tmp_path, LOSS, rows)
    run = open_folder(tmp_path)
    assert [note.kind for note in run.notes()] == ["index_given_up"]
    assert "steps of a block lie 2^53 or more apart" in run.notes()[0].data["reason"]
    assert_tells(run.overview("train_loss", 40), run.series("train_loss"))


def test_very_wide_rows_have_no_index() -> None:
    columns = tuple((str(index),) for index in range(20_000))
    spec = SeriesSpec("wide", "vector", "", ("param",), columns)
    assert IndexWriter(Path("missing/wide.ms"), 0, b"mark", spec).grew(10**9) == ""


def test_the_folder_of_the_index_is_no_foreign_file(tmp_path: Path) -> None:
    written(tmp_path, LOSS, noisy(LOSS, COUNT))
    assert [report.path.name for report in check_files(tmp_path)] == ["train_loss.ms"]


def test_a_short_or_damaged_part_has_no_index(tmp_path: Path) -> None:
    path = part_path(tmp_path, LOSS)
    write_part(path, LOSS, rows_of(LOSS, range(255)))
    assert not rebuild_index(path)
    write_part(path, LOSS, rows_of(LOSS, range(1024)), set(range(256, 512)))
    assert not rebuild_index(path)  # a block in which no row is whole
    run = open_folder(tmp_path)
    assert_tells(run.overview("train_loss", 4), run.series("train_loss"))
