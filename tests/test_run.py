"""The run folder: attempts and ranks, what supersedes what, and folders that are no run."""

from __future__ import annotations

import errno
import json
import multiprocessing
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faulty_files import FaultyFiles
from mindpulse import open_run
from mindpulse.errors import StoreError, UsageError
from mindpulse.series import Rows, Series, SeriesSpec
from mindpulse.store.folder import create_attempt
from mindpulse.store.folder_run import open_folder
from mindpulse.store.merge import join, supersede
from mindpulse.store.writer import RankWriter
from mindpulse.testing import write_run
from series_samples import FOCUS, LOSS, assert_same, rows_of


def write(
    run_dir: Path, spec: SeriesSpec, steps: range, *, rank: int = 0, scale: float = 1
) -> None:
    """One attempt of one rank with one series."""
    folder = create_attempt(run_dir, rank)
    writer = RankWriter(folder, rank, int(folder.parent.name[8:]))
    rows = rows_of(spec, steps)
    writer.append(spec, Rows(rows.steps, rows.wall_times, rows.values * scale))
    writer.close()


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder that not even root can write."""
    path = tmp_path / "read_only"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(path)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting a tmpfs is not permitted here: {done.stderr.strip()}")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def test_the_first_attempt_describes_the_run(tmp_path: Path) -> None:
    run = tmp_path / "deep" / "run"
    folder = create_attempt(run, 2, {"mindspore": "2.10.0", "git": "abc"}, clock=lambda: 5.0)
    assert folder == run / "attempt-0001" / "rank-0002"
    told = json.loads((run / "run.json").read_text())
    assert told.pop("id").isalnum()
    assert told == {
        "created": 5.0,
        "format_version": 1,
        "tags": {"mindspore": "2.10.0", "git": "abc"},
    }
    assert [path.name for path in run.iterdir()].count("run.json") == 1
    assert stat.S_IMODE((run / "run.json").stat().st_mode) == 0o644
    opened = open_run(run)
    assert (opened.created, opened.attempts, opened.ranks) == (5.0, [1], [2])
    assert opened.tags == {"mindspore": "2.10.0", "git": "abc"}


def test_attempts_are_counted_by_rank(tmp_path: Path) -> None:
    made = [create_attempt(tmp_path, rank) for rank in (0, 1, 0, 1, 0)]
    assert [f"{path.parent.name[-1]}{path.name[-1]}" for path in made] == [
        "10",
        "11",
        "20",
        "21",
        "30",
    ]
    assert len(set(made)) == 5
    identity = open_run(tmp_path).id
    create_attempt(tmp_path, 0, {"late": "yes"})
    assert open_run(tmp_path).id == identity  # run.json is written once


def claim(run_dir: str, rank: int, count: int, out: multiprocessing.SimpleQueue[list[str]]) -> None:
    out.put([str(create_attempt(Path(run_dir), rank)) for _ in range(count)])


def test_ranks_that_start_together_get_folders_of_their_own(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    out = context.SimpleQueue()
    jobs = [context.Process(target=claim, args=(str(tmp_path), n % 2, 10, out)) for n in range(4)]
    for job in jobs:
        job.start()
    found = [path for _ in jobs for path in out.get()]
    for job in jobs:
        job.join()
    assert len(set(found)) == 40
    assert open_run(tmp_path).attempts == list(range(1, 21))


@pytest.mark.parametrize("rank", [-1, 1.5, "0", None, True])
def test_a_rank_that_is_no_number_is_refused(tmp_path: Path, rank: object) -> None:
    with pytest.raises(UsageError, match="use a whole number from 0 up"):
        create_attempt(tmp_path, rank)


def test_a_folder_under_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as caught:
        create_attempt(tmp_path / "file" / "run")
    assert str(tmp_path / "file" / "run") in str(caught.value)
    assert "choose another folder" in str(caught.value)


def test_a_read_only_folder_cannot_be_written(read_only: Path) -> None:
    with pytest.raises(StoreError, match="Read-only file system; choose another folder"):
        create_attempt(read_only / "run")


def test_each_fault_while_beginning_is_a_store_error(tmp_path: Path) -> None:
    clean = FaultyFiles(lambda number, name: False, 0)
    create_attempt(tmp_path / "clean", files=clean)
    for nth in range(1, len(clean.calls) + 1):
        run = tmp_path / f"run{nth}"
        files = FaultyFiles(lambda number, name, n=nth: number >= n, errno.EIO)
        with pytest.raises(StoreError, match="Input/output error"):
            create_attempt(run, files=files)
        assert create_attempt(run).is_dir()
        assert not [path for path in run.iterdir() if path.name.startswith(".")]


def test_a_file_system_without_hard_links(tmp_path: Path) -> None:
    files = FaultyFiles(lambda number, name: name == "link", errno.EPERM)
    create_attempt(tmp_path, files=files)
    assert open_run(tmp_path).id


def test_a_later_attempt_hides_what_it_did_again(tmp_path: Path) -> None:
    write(tmp_path, LOSS, range(1, 11))
    write(tmp_path, LOSS, range(6, 9), scale=2)
    run = open_run(tmp_path)
    merged = run.series("train_loss")
    assert merged.steps.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert merged.values.tolist() == [1, 2, 3, 4, 5, 12, 14, 16]
    assert run.series("train_loss", attempt=1).steps.tolist() == list(range(1, 11))
    assert run.series("train_loss", attempt=2).values.tolist() == [12, 14, 16]
    assert len(run.series("train_loss", attempt="all")) == 13


def test_the_start_of_an_attempt_may_be_told_by_a_note(tmp_path: Path) -> None:
    """A thinned series must not show old rows of steps that the new attempt did again."""
    write(tmp_path, FOCUS, range(0, 100, 10))
    folder = create_attempt(tmp_path)
    writer = RankWriter(folder, 0, 2)
    writer.note({"kind": "start", "step": 45})
    writer.close()
    assert open_run(tmp_path).series("attn_focus").steps.tolist() == [0, 10, 20, 30, 40]
    writer.append(FOCUS, rows_of(FOCUS, range(60, 80, 10)))
    writer.close()
    steps = open_run(tmp_path).series("attn_focus").steps.tolist()
    assert steps == [0, 10, 20, 30, 40, 60, 70]


def test_supersede_is_pure_and_goes_back_over_several_attempts() -> None:
    def attempt(*steps: int) -> Series:
        at = np.array(steps, np.int64)
        return Series(LOSS, Rows(at, at.astype(float), at.astype(float)[:, None]))

    found = {1: attempt(1, 2, 3, 4), 2: attempt(3, 4, 5, 6), 3: attempt(5)}
    assert supersede(found, {}).steps.tolist() == [1, 2, 3, 4, 5]
    assert supersede({1: attempt(1, 2), 2: attempt()}, {}).steps.tolist() == [1, 2]
    assert supersede({1: attempt(5, 6), 2: attempt(1)}, {}).steps.tolist() == [1]
    assert supersede({1: attempt(1, 2, 3)}, {2: 2}).steps.tolist() == [1]


def test_columns_are_matched_by_label() -> None:
    one = SeriesSpec("g", axes=("p",), columns=(("a",), ("b",)))
    two = SeriesSpec("g", axes=("p",), columns=(("b",), ("c",)), dtype="float32")
    joined = join([Series(one, rows_of(one, range(1))), Series(two, rows_of(two, range(1, 2)))])
    assert joined.spec == two
    assert joined.values.dtype == np.float32
    np.testing.assert_array_equal(joined.values, np.float32([[0.1, np.nan], [1.0, 1.1]]))


def test_ranks_are_kept_apart(tmp_path: Path) -> None:
    write(tmp_path, LOSS, range(3))
    write(tmp_path, LOSS, range(5), rank=1)
    run = open_run(tmp_path)
    assert (len(run.series("train_loss")), len(run.series("train_loss", rank=1))) == (3, 5)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    write(tmp_path, LOSS, range(3))
    run = open_run(tmp_path)
    with pytest.raises(UsageError, match=r"no series 'grad_norm'; it has 'train_loss'"):
        run.series("grad_norm")
    with pytest.raises(UsageError, match=r"no series 'loss'; did you mean 'train_loss'\?"):
        run.series("loss")
    with pytest.raises(UsageError, match=r"rank 7.*ranks are \[0\], attempts \[1\]"):
        run.series("train_loss", rank=7)
    with pytest.raises(UsageError, match=r"attempt 9"):
        run.series("train_loss", attempt=9)


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"attempt": "latest"}, r"attempt 'latest': use its number"),
        ({"attempt": 1.5}, r"attempt 1\.5"),
        ({"columns": ["layer=0 head=1"]}, r"columns 0 to 3; 'layer=0 head=1' is 1"),
        ({"columns": [1.5]}, r"column 1\.5 of 'attn_focus': it has columns 0 to 3"),
        ({"columns": [-1]}, r"column -1"),
        ({"columns": 2}, r"columns 2 of 'attn_focus': give a list"),
        ({"columns": []}, r"\(none\)"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, wanted: dict[str, Any], told: str) -> None:
    write_run(tmp_path, attn_focus=np.ones((3, 4)))
    with pytest.raises(UsageError, match=told):
        open_run(tmp_path).series("attn_focus", **wanted)


def test_an_attempt_may_be_a_numpy_integer(tmp_path: Path) -> None:
    write_run(tmp_path, train_loss=[1.0, 2.0, 3.0])
    write_run(tmp_path, train_loss=[4.0])
    found = open_run(tmp_path).series("train_loss", attempt=np.int64(2))
    assert found.values.tolist() == [4.0]


@pytest.mark.parametrize("limit", [-1, 2.0, "5"])
def test_a_limit_is_a_number_of_rows(tmp_path: Path, limit: Any) -> None:
    write_run(tmp_path, train_loss=[1.0, 2.0, 3.0])
    with pytest.raises(UsageError, match=f"limit {limit!r}: use a whole number"):
        open_run(tmp_path).last("train_loss", limit)


def test_labels_of_a_damaged_header_come_from_another_attempt(tmp_path: Path) -> None:
    write(tmp_path, FOCUS, range(5))
    write(tmp_path, FOCUS, range(5, 9))
    path = tmp_path / "attempt-0002" / "rank-0000" / "attn_focus.ms"
    data = bytearray(path.read_bytes())
    data[40] ^= 0xFF
    path.write_bytes(data)
    run = open_run(tmp_path)
    assert run.specs() == {"attn_focus": FOCUS}
    series = run.series("attn_focus")
    assert series.spec == FOCUS
    assert_same(series.rows, rows_of(FOCUS, range(9)))


def test_long_and_odd_tags_are_found_by_their_header(tmp_path: Path) -> None:
    long = SeriesSpec("行" * 66)
    odd = SeriesSpec("../../etc/passwd")
    folder = create_attempt(tmp_path)
    writer = RankWriter(folder, 0, 1)
    for spec in (long, odd):
        writer.append(spec, rows_of(spec, range(2)))
    writer.close()
    run = open_run(tmp_path)
    assert set(run.specs()) == {long.tag, odd.tag}
    assert len(run.series(long.tag)) == len(run.series(odd.tag)) == 2
    assert all(path.parent == folder for path in folder.glob("*.ms"))


def test_foreign_files_are_named_and_left_alone(tmp_path: Path) -> None:
    write(tmp_path, LOSS, range(3))
    folder = tmp_path / "attempt-0001" / "rank-0000"
    (folder / "snapshots").mkdir()
    (folder / "snapshots" / "attn_L00_s000001.npz").write_bytes(b"")
    foreign = {
        tmp_path / "events.out.events.summary.1.host_MS": b"x" * 9,
        tmp_path / "attempt-x" / "file": b"",
        tmp_path / "attempt-0001" / "readme.txt": b"hello",
        folder / "model.ckpt": b"\0" * 100,
        folder / "other.ms": b"not ours at all",
        folder / "a folder.ms" / "x": b"",
    }
    for path, data in foreign.items():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    (folder / "dangling.ms").symlink_to("nowhere")
    for name in ("control.jsonl", "alerts.jsonl", "watcher.json", "report.html"):
        (tmp_path / name).write_text("{}")
    reports = open_run(tmp_path).files()
    ours = [report for report in reports if not report.foreign]
    assert [(report.tag, report.rows, report.valid) for report in ours] == [("train_loss", 3, True)]
    assert {report.path.name for report in reports if report.foreign} == {
        "events.out.events.summary.1.host_MS",
        "attempt-x",
        "readme.txt",
        "model.ckpt",
        "other.ms",
        "a folder.ms",
        "dangling.ms",
    }
    assert all(report.problem for report in reports if report.foreign)
    assert list(open_run(tmp_path).specs()) == ["train_loss"]
    assert [path.name for path in open_run(tmp_path).snapshots()] == ["attn_L00_s000001.npz"]
    assert all(path.read_bytes() == data for path, data in foreign.items())


def test_folders_that_are_no_run_say_what_they_hold(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        open_folder(tmp_path / "missing")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        open_folder(tmp_path / "file")
    with pytest.raises(UsageError, match=r"but 'file'; give the summary_dir"):
        open_folder(tmp_path)
    create_attempt(tmp_path / "mine")
    with pytest.raises(UsageError, match="holds runs: 'mine'"):
        open_folder(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="but nothing"):
        open_folder(tmp_path / "empty")


@pytest.mark.parametrize("text", [None, "", "[]", "{", '{"id": 3, "created": "x", "tags": []}'])
def test_a_run_without_a_usable_description_is_still_read(tmp_path: Path, text: str | None) -> None:
    write(tmp_path, LOSS, range(3))
    (tmp_path / "run.json").unlink()
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    run = open_run(tmp_path)
    assert np.isnan(run.created)
    assert (run.tags, len(run.series("train_loss"))) == ({}, 3)


def test_importing_the_package_is_cheap() -> None:
    code = "import sys, mindpulse; print('numpy' in sys.modules, len(mindpulse.__all__)); "
    code += "mindpulse.open_run; print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "8", "True"]
