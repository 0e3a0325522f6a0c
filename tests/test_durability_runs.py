"""Restarts, ranks that start together, readers beside a writer, copies that replace files."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from killed_writer import start_rank
from mindpulse.cli import main
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.codec import RowCodec
from mindpulse.store.folder import create_attempt
from mindpulse.store.folder_run import open_folder
from mindpulse.store.one_file import FileTail
from mindpulse.store.reader import Chunk, RunTail
from mindpulse.store.writer import RankWriter
from processes import forking
from series_samples import FOCUS, LOSS, rows_of
from tailing import write_and_follow

pytestmark = pytest.mark.slow

RESTARTS = 20
FOLLOWED_ROWS = 100_000


def steps_of(found: list[object]) -> list[int]:
    """The steps of the loss, as a tail told them."""
    return [
        int(step)
        for chunk in found
        if isinstance(chunk, Chunk) and chunk.spec.tag == LOSS.tag
        for step in chunk.rows.steps
    ]


def write_attempt(run: Path, steps: range, every: int, mark: float) -> None:
    """One start of a training; its loss each step, its focus each `every` steps."""
    folder = create_attempt(run)
    writer = RankWriter(folder, 0, int(folder.parent.name[8:]), max_file_bytes=3000)
    writer.note({"kind": "start", "step": steps.start})
    for spec, of_it in ((LOSS, list(steps)), (FOCUS, [s for s in steps if s % every == 0])):
        at = np.array(of_it, np.int64)
        values = np.repeat(at[:, None] + mark, spec.width, axis=1).astype(spec.dtype)
        writer.append(spec, Rows(at, at * 1.0, values))
        writer.flush()
    writer.close()


def test_twenty_restarts_from_checkpoints(tmp_path: Path) -> None:
    """Against a table of step -> value that each attempt overwrites from its start on."""
    chance = random.Random(1)
    size = 4000
    loss = np.full(size, np.nan)
    focus = np.full(size, np.nan)
    reached = 0
    spans = []
    for attempt in range(1, RESTARTS + 1):
        start = max(0, reached - chance.randint(0, 150)) if attempt > 1 else 0
        end = start + chance.randint(1, 300)
        mark = attempt / 64
        write_attempt(tmp_path, range(start, end), 7, mark)
        spans.append((start, end, mark))
        loss[start:] = focus[start:] = np.nan
        steps = np.arange(start, end)
        loss[steps] = steps + mark
        focus[steps[steps % 7 == 0]] = steps[steps % 7 == 0] + mark
        reached = end
    run = open_folder(tmp_path)
    assert run.attempts == list(range(1, RESTARTS + 1))
    for tag, wanted in ((LOSS.tag, loss), (FOCUS.tag, focus)):
        merged = run.series(tag)
        assert merged.steps.tolist() == np.flatnonzero(~np.isnan(wanted)).tolist()
        found = merged.rows.values[:, 0]
        np.testing.assert_array_equal(found, wanted[merged.steps].astype(found.dtype))
    everything = run.series(LOSS.tag, attempt="all")
    assert len(everything) == sum(end - start for start, end, _ in spans)
    for attempt in (1, 7, RESTARTS):
        start, end, mark = spans[attempt - 1]
        alone = run.series(LOSS.tag, attempt=attempt)
        assert alone.steps.tolist() == list(range(start, end))
        assert (alone.values == alone.steps + mark).all()
        shown = query(tmp_path, "--attempt", str(attempt), "--limit", "0")
        assert len(shown) == end - start
    assert len(query(tmp_path, "--attempt", "all", "--limit", "0")) == len(everything)


def query(run: Path, *options: str) -> list[str]:
    """The rows that the command prints, as text."""
    arguments = ["query", str(run), "--tag", "train_loss", *options]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return [line for line in result.stdout.splitlines() if line.strip()[:1].isdigit()]


def test_two_processes_of_one_rank_never_share_a_file(tmp_path: Path) -> None:
    context = forking()
    for trial in range(15):
        run = tmp_path / str(trial)
        together = context.Barrier(2)
        jobs = [
            context.Process(target=start_rank, args=(str(run), mark, together)) for mark in (1, 2)
        ]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
            assert job.exitcode == 0
        opened = open_folder(run)
        assert opened.attempts == [1, 2]
        marks = [set(opened.series("train_loss", rank=3, attempt=n).values) for n in (1, 2)]
        assert sorted(marks, key=min) == [{1.0}, {2.0}]
        assert len(opened.id) == 32


def test_three_readers_beside_a_writer(tmp_path: Path) -> None:
    """No gap, no duplicate, no wrong value, over several new parts."""
    for seen in write_and_follow(tmp_path, FOLLOWED_ROWS, max_file_bytes=700_000):
        assert seen.problems == []
        assert seen.rows == {"train_loss": FOLLOWED_ROWS, "attn_focus": FOLLOWED_ROWS}
        print(f"p99 delay {np.percentile(seen.delays_ms, 99):.1f} ms")
    assert len(list(tmp_path.glob("attempt-*/rank-*/train_loss*.ms"))) == 5


@pytest.fixture
def writer(tmp_path: Path) -> RankWriter:
    return RankWriter(create_attempt(tmp_path), 0, 1, max_file_bytes=4000)


def add(writer: RankWriter, steps: range) -> None:
    writer.append(LOSS, rows_of(LOSS, steps))
    writer.flush()


@pytest.mark.parametrize("how", ["unlink", "rename"])
def test_a_reader_survives_deletion(tmp_path: Path, writer: RankWriter, how: str) -> None:
    """The file is begun anew, and may well get the inode of the one that was deleted."""
    tail = RunTail(tmp_path)
    told: list[int] = []
    for first in range(0, 200, 10):
        add(writer, range(first, first + 10))
        told += steps_of(tail.poll())
        path = sorted(writer.directory.glob("*.ms"))[-1]
        path.unlink() if how == "unlink" else path.rename(tmp_path / f"moved{first}")
    assert told == list(range(200))


def copy_by_rename(source: Path, target: Path) -> None:
    """As rsync does: a hidden copy that takes the name of the old one."""
    for path in sorted(p for p in source.rglob("*") if p.is_file()):
        other = target / path.relative_to(source)
        other.parent.mkdir(parents=True, exist_ok=True)
        hidden = other.with_name(f".{other.name}.Xy12Zq")
        shutil.copy2(path, hidden)
        hidden.replace(other)


def copy_in_place(source: Path, target: Path) -> None:
    """As `rsync --inplace` does: block after block over the old bytes, then the length."""
    for path in sorted(p for p in source.rglob("*") if p.is_file()):
        other = target / path.relative_to(source)
        other.parent.mkdir(parents=True, exist_ok=True)
        data = path.read_bytes()
        fd = os.open(other, os.O_RDWR | os.O_CREAT, 0o644)
        for at in range(0, len(data), 700):
            os.pwrite(fd, data[at : at + 700], at)
        os.ftruncate(fd, len(data))
        os.close(fd)


@pytest.mark.parametrize("copy", [copy_by_rename, copy_in_place])
def test_a_reader_of_a_copy_is_told_each_row_once(tmp_path: Path, copy: object) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    writer = RankWriter(create_attempt(source), 0, 1, max_file_bytes=4000)
    tail = RunTail(target)
    told: list[int] = []
    for first in range(0, 300, 10):
        add(writer, range(first, first + 10))
        writer.note({"kind": "at", "step": first})
        writer.flush()
        copy(source, target)  # type: ignore[operator]
        found = tail.poll()
        told += steps_of(found)
        assert [note.step for note in found if not isinstance(note, Chunk)] == [first]
    assert told == list(range(300))


def test_a_copy_of_an_older_state_tells_nothing_twice(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    writer = RankWriter(create_attempt(source), 0, 1)
    add(writer, range(10))
    copy_by_rename(source, target)
    old = shutil.copytree(source, tmp_path / "old")
    add(writer, range(10, 20))
    copy_by_rename(source, target)
    tail = RunTail(target)
    assert steps_of(tail.poll()) == list(range(20))
    copy_by_rename(old, target)
    assert steps_of(tail.poll()) == []
    add(writer, range(20, 30))
    copy_by_rename(source, target)
    assert steps_of(tail.poll()) == list(range(20, 30))


def test_a_file_in_place_of_another_is_read_from_its_beginning(tmp_path: Path) -> None:
    """Even with the same inode, the same length and the same shape."""
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, first in ((one, 0), (other, 100)):
        made = RankWriter(folder, 0, 1, clock=lambda at=first: float(at))
        made.append(LOSS, rows_of(LOSS, range(first, first + 10)))
        made.close()
    path = one / "train_loss.ms"
    tail = FileTail(path)
    assert tail.poll().steps.tolist() == list(range(10))
    with path.open("r+b") as file:
        file.write((other / "train_loss.ms").read_bytes())
    # Within one tick of the clock of the file system nothing tells that it changed, until it grows.
    told = tail.poll().steps.tolist()
    with path.open("ab") as file:
        file.write(RowCodec(LOSS).encode(rows_of(LOSS, range(110, 111))))
    assert told + tail.poll().steps.tolist() == list(range(100, 111))
    assert tail.restarts == 1


def test_rows_that_arrive_late_from_a_network_are_waited_for(tmp_path: Path) -> None:
    """The size grows first; pages come in any order, zeros stand where one has not come yet."""
    wide = SeriesSpec("w", "v", "", ("c",), tuple((str(i),) for i in range(30)))
    for spec in (LOSS, wide):
        run = tmp_path / spec.tag
        writer = RankWriter(run / "made", 0, 1)
        writer.append(spec, rows_of(spec, range(500)))
        writer.close()
        (source,) = (run / "made").glob("*.ms")
        data = source.read_bytes()
        path = run / source.name
        tail = FileTail(path)
        chance = random.Random(7)
        told: list[int] = []
        seen = bytearray()
        for end in [1000, 9000, 20_000, len(data)]:
            seen += bytes(min(end, len(data)) - len(seen))
            pages = list(range(0, len(seen), 4096))
            chance.shuffle(pages)
            for at in pages:
                stop = min(at + 4096, len(seen))
                seen[at:stop] = data[at:stop]
                path.write_bytes(seen)
                told += tail.poll().steps.tolist()
        assert told == list(range(500))
        assert tail.damaged_rows == 0


def test_zeros_that_stay_are_damage_and_hide_nothing(tmp_path: Path) -> None:
    """Pages that a power loss took: an old file is not waited for."""
    writer = RankWriter(tmp_path, 0, 1)
    add(writer, range(500))
    path = tmp_path / "train_loss.ms"
    data = bytearray(path.read_bytes())
    data[4096:8192] = bytes(4096)
    path.write_bytes(data)
    os.utime(path, (1e9, 1e9))
    tail = FileTail(path)
    found = tail.poll().steps.tolist()
    assert found[-1] == 499
    assert len(found) + tail.damaged_rows == 500


def test_zeros_in_a_file_that_is_written_are_waited_for_ten_seconds(tmp_path: Path) -> None:
    writer = RankWriter(tmp_path, 0, 1)
    add(writer, range(500))
    path = tmp_path / "train_loss.ms"
    data = bytearray(path.read_bytes())
    data[4096:8192] = bytes(4096)
    path.write_bytes(data)
    now = [path.stat().st_mtime]
    tail = FileTail(path, clock=lambda: now[0])
    before = len(tail.poll())
    assert before < 120
    for _ in range(9):
        now[0] += 1.0
        os.utime(path, (now[0], now[0]))  # somebody is still writing
        assert len(tail.poll()) == 0
    now[0] += 2.0
    os.utime(path, (now[0], now[0]))
    rest = tail.poll().steps.tolist()
    assert rest[-1] == 499
    assert before + len(rest) + tail.damaged_rows == 500
