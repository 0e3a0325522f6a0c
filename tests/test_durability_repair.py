"""`mindpulse repair`: what can be rebuilt is, nothing is ever lost by it."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from faulty_files import FaultyFiles
from killed_writer import Nursery
from mindpulse.cli import main
from mindpulse.errors import StoreError
from mindpulse.recorder import Recorder
from mindpulse.series import SeriesSpec
from mindpulse.store import flips
from mindpulse.store.codec import RowCodec
from mindpulse.store.crc import checksum
from mindpulse.store.folder import create_attempt
from mindpulse.store.folder_run import FolderRun, open_folder
from mindpulse.store.index_format import index_path
from mindpulse.store.index_writer import rebuild_index
from mindpulse.store.one_file import read_file
from mindpulse.store.overview import overview_of
from mindpulse.store.repair import Outcome, Repair
from mindpulse.store.resync import RowSearch
from mindpulse.store.writer import RankWriter
from power_loss import LossyFiles, PowerLostError
from series_samples import FOCUS, LOAD, LOSS, assert_same, rows_of

COUNT = 40


def written(run: Path, *specs: SeriesSpec, rank: int = 0) -> dict[str, Path]:
    """The files of a new attempt, by tag."""
    folder = create_attempt(run, rank, {"git": "abc"})
    writer = RankWriter(folder, rank, int(folder.parent.name[8:]))
    writer.note({"kind": "fingerprint", "tags": {"git": "abc"}})
    for spec in specs:
        writer.append(spec, rows_of(spec, range(COUNT)))
    writer.close()
    return {
        spec.tag: path
        for spec in specs
        for path in folder.glob("*.ms")
        if (header := read_file(path).header) and header.spec == spec
    }


def start_of(path: Path) -> int:
    header = read_file(path).header
    assert header
    return header.size


def repaired(run: Path, **options: bool) -> list[Outcome]:
    return list(Repair(run, **options).outcomes())


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


def whole(run: Path) -> FolderRun:
    """The run, in which nothing is damaged."""
    opened = open_folder(run)
    assert all(report.valid or report.foreign for report in opened.files())
    return opened


@pytest.mark.parametrize("spec", [LOSS, FOCUS, LOAD], ids=lambda spec: spec.plugin)
def test_rows_behind_inserted_bytes_are_found_again(tmp_path: Path, spec: SeriesSpec) -> None:
    path = written(tmp_path, spec)[spec.tag]
    data, start, size = path.read_bytes(), start_of(path), RowCodec(spec).row_bytes
    at = start + 10 * size
    path.write_bytes(
        data[:at]
        + b"\x12\x20 noise"
        + data[at : at + 9 * size + 5]
        + b"x"
        + data[at + 9 * size + 5 :]
    )
    (outcome,) = repaired(tmp_path)
    assert (outcome.action, outcome.rows, outcome.header) == ("rebuilt", COUNT - 1, "kept")
    kept = np.arange(COUNT) != 19
    assert_same(whole(tmp_path).series(spec.tag).rows, rows_of(spec, range(COUNT))[kept])
    assert outcome.lost_rows >= 1


@pytest.mark.parametrize("spec", [LOSS, FOCUS, LOAD], ids=lambda spec: spec.plugin)
@pytest.mark.parametrize("removed", [1, 7, 33, 34, 100])
def test_rows_behind_missing_bytes_are_found_again(
    tmp_path: Path, spec: SeriesSpec, removed: int
) -> None:
    path = written(tmp_path, spec)[spec.tag]
    data, start, size = path.read_bytes(), start_of(path), RowCodec(spec).row_bytes
    at = start + 10 * size + 20
    path.write_bytes(data[:at] + data[at + removed :])
    (outcome,) = repaired(tmp_path)
    gone = set(range(10, 10 + (20 + removed - 1) // size + 1))
    steps = [step for step in range(COUNT) if step not in gone]
    series = whole(tmp_path).series(spec.tag)
    assert series.steps.tolist() == steps
    assert outcome.rows == len(steps)
    assert outcome.lost_rows >= 1


@pytest.mark.parametrize("spec", [LOSS, FOCUS, LOAD], ids=lambda spec: spec.plugin)
def test_every_flipped_bit_is_put_right(tmp_path: Path, spec: SeriesSpec) -> None:
    """Bit for bit as it was: rows, and the header with its labels, without any neighbour."""
    path = written(tmp_path, spec)[spec.tag]
    data = path.read_bytes()
    for bit in random.Random(3).sample(range(8 * len(data)), 150):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        (outcome,) = repaired(tmp_path)
        assert outcome.lost_rows == 0, bit
        assert path.read_bytes() == data, bit
        aside = path.with_name(outcome.kept_as)
        assert aside.read_bytes() == flipped
        aside.unlink()


@given(st.binary(min_size=1, max_size=300), st.data())
def test_one_flipped_bit_is_told_from_its_checksum(body: bytes, data: st.DataObject) -> None:
    message = body + checksum(body).to_bytes(4, "little")
    bit = data.draw(st.integers(0, 8 * len(message) - 1))
    flipped = bytearray(message)
    flipped[bit // 8] ^= 1 << bit % 8
    assert flips.mend(bytes(flipped)) == message


def test_several_flipped_bits_are_not_guessed_at() -> None:
    chance = random.Random(5)
    body = bytes(range(100))
    message = body + checksum(body).to_bytes(4, "little")
    for _ in range(2000):
        wrong = bytearray(message)
        for bit in chance.sample(range(8 * len(message)), chance.randint(2, 4)):
            wrong[bit // 8] ^= 1 << bit % 8
        assert flips.mend(bytes(wrong)) is None


def test_lost_labels_come_from_another_attempt_or_rank(tmp_path: Path) -> None:
    written(tmp_path, FOCUS, rank=1)
    path = written(tmp_path, FOCUS, LOAD)[FOCUS.tag]
    start = start_of(path)
    path.write_bytes(bytes(start) + path.read_bytes()[start:])
    (outcome,) = repaired(tmp_path)
    assert outcome.header == "labels from attempt-0001/rank-0001/attn_focus.ms"
    content = read_file(path)
    assert content.header
    assert (content.header.spec, content.header.attempt, content.header.rank) == (FOCUS, 1, 0)
    assert content.header.start_time == content.rows.wall_times[0]
    assert_same(whole(tmp_path).series(FOCUS.tag).rows, rows_of(FOCUS, range(COUNT)))


def test_labels_that_nobody_knows_are_lost_and_it_is_told(tmp_path: Path) -> None:
    other = SeriesSpec("attn_focus", "v", "", ("a",), (("x",), ("y",)), "float32")
    written(tmp_path, other)  # another width
    path = written(tmp_path, FOCUS)[FOCUS.tag]
    start = start_of(path)
    path.write_bytes(os.urandom(start) + path.read_bytes()[start:])
    (outcome,) = repaired(tmp_path)
    assert (outcome.header, outcome.rows) == ("labels lost", COUNT)
    assert whole(tmp_path).series(FOCUS.tag, attempt=2).spec.columns == (("0",), ("1",), ("2",))


@pytest.mark.parametrize("length", [0, 20, 10_000, 2**32 - 1])
def test_a_wrong_length_is_set_right(tmp_path: Path, length: int) -> None:
    path = written(tmp_path, LOSS)[LOSS.tag]
    data = path.read_bytes()
    path.write_bytes(data[:6] + length.to_bytes(4, "little") + data[10:])
    (outcome,) = repaired(tmp_path)
    assert outcome.rows == COUNT
    assert path.read_bytes() == data


def test_a_file_that_was_cut_becomes_whole_without_what_is_gone(tmp_path: Path) -> None:
    path = written(tmp_path, LOSS)[LOSS.tag]
    os.truncate(path, path.stat().st_size - 100)
    (outcome,) = repaired(tmp_path)
    assert (outcome.rows, outcome.lost_rows) == (COUNT - 3, 3)
    assert len(whole(tmp_path).series(LOSS.tag)) == COUNT - 3


def test_the_old_file_is_kept_again_and_again(tmp_path: Path) -> None:
    path = written(tmp_path, LOSS)[LOSS.tag]
    olds = []
    for row in (3, 5, 7):
        data = bytearray(path.read_bytes())
        data[-34 * row - 20 : -34 * row] = os.urandom(20)
        path.write_bytes(data)
        olds.append(bytes(data))
        assert len(repaired(tmp_path)) == 1
        assert repaired(tmp_path) == []
    kept = [path.with_name(path.name + end) for end in (".damaged", ".damaged.2", ".damaged.3")]
    assert [other.read_bytes() for other in kept] == olds
    opened = whole(tmp_path)
    assert len(opened.series(LOSS.tag)) == COUNT - 3
    told = [note.data for note in opened.notes() if note.kind == "repaired"]
    assert told[0] == {"file": path.name, "rows": COUNT - 1, "mended": 0, "lost": 1}
    assert len(told) == 3


def test_a_dry_run_and_a_sound_run_change_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, LOSS, FOCUS)[LOSS.tag]
    assert repaired(tmp_path) == []
    os.truncate(path, path.stat().st_size - 5)
    before = snapshot_of(tmp_path)
    (outcome,) = repaired(tmp_path, dry_run=True)
    assert outcome.kept_as == "train_loss.ms.damaged"
    assert snapshot_of(tmp_path) == before
    path.write_bytes(b"")
    (path.parent / "foreign.txt").write_text("x")
    before = snapshot_of(tmp_path)
    (outcome,) = repaired(tmp_path)
    assert (outcome.action, outcome.problem) == ("left", "the file is empty")
    assert snapshot_of(tmp_path) == before


def snapshot_of(run: Path) -> dict[Path, tuple[bytes, int]]:
    return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in run.rglob("*") if p.is_file()}


def damaged_run(run: Path) -> Path:
    """Two files and the description are damaged."""
    paths = written(run, LOSS, FOCUS)
    for path in paths.values():
        data = bytearray(path.read_bytes())
        data[start_of(path) + 70 : start_of(path) + 90] = bytes(20)
        path.write_bytes(data)
    (run / "run.json").write_bytes(b'{"id": "' + b"ab" * 16 + b'", "crea')
    return run


def test_killed_at_any_call_nothing_is_lost(tmp_path: Path) -> None:
    """And the next repair does the rest: the same result as without the kill."""
    counting = FaultyFiles(lambda number, name: False, 0)
    wanted = damaged_run(tmp_path / "wanted")
    assert len(list(Repair(wanted, files=counting).outcomes())) == 3
    for nth in range(1, len(counting.calls) + 1):
        run = damaged_run(tmp_path / str(nth))
        olds = [path.read_bytes() for path in sorted(run.rglob("*.ms"))]

        def kill(number: int, name: str, n: int = nth) -> bool:
            if number == n:
                raise PowerLostError
            return False

        with pytest.raises(PowerLostError):
            list(Repair(run, files=FaultyFiles(kill, 0)).outcomes())
        for old in olds:
            assert old in [path.read_bytes() for path in run.rglob("*.ms*")], nth
        repaired(run)
        opened = whole(run)
        assert opened.id == "ab" * 16
        for tag in (LOSS.tag, FOCUS.tag):
            assert_same(opened.series(tag).rows, open_folder(wanted).series(tag).rows)
        assert len(list(run.rglob("*.ms.damaged"))) == 2
        assert not list(run.rglob("*.damaged.2"))
        assert not list(run.rglob(".*.repair"))


def test_a_power_loss_during_the_repair_loses_nothing(tmp_path: Path) -> None:
    for seed in range(60):
        chance = random.Random(seed)
        root = tmp_path / str(seed)
        root.mkdir()
        damaged_run(root / "run")
        files = LossyFiles(root, chance)
        files.take_all_as_safe()
        files.stop_at = files.calls + chance.randint(1, 30)
        olds = [path.read_bytes() for path in sorted(root.rglob("*.ms"))]
        with suppress(PowerLostError):
            list(Repair(root / "run", files=files).outcomes())
        after = tmp_path / f"{seed}-after"
        files.lose_power(after)
        files.close_all()
        for old in olds:
            assert old in [path.read_bytes() for path in after.rglob("*.ms*")], seed
        repaired(after / "run")
        assert {len(whole(after / "run").series(tag)) for tag in (LOSS.tag, FOCUS.tag)} <= {38, 39}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_an_error_leaves_all_as_it_was(tmp_path: Path, code: int) -> None:
    for name in ("open", "pwrite", "fdatasync", "rename"):
        run = damaged_run(tmp_path / name)
        before = {p: p.read_bytes() for p in run.rglob("*.ms")}
        files = FaultyFiles(lambda number, called, n=name: called == n, code)
        with pytest.raises(StoreError, match=os.strerror(code)):
            list(Repair(run, files=files).outcomes())
        assert {p: p.read_bytes() for p in run.rglob("*.ms")} == before
        assert not list(run.rglob(".*.repair"))


def test_without_hard_links_the_old_file_is_copied(tmp_path: Path) -> None:
    run = damaged_run(tmp_path / "run")
    olds = {path.name: path.read_bytes() for path in run.rglob("*.ms")}
    files = FaultyFiles(lambda number, name: name == "link", errno.EPERM)
    assert len(list(Repair(run, files=files).outcomes())) == 3
    for path in run.rglob("*.ms.damaged"):
        assert path.read_bytes() == olds[path.name.removesuffix(".damaged")]


def test_a_rank_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    damaged_run(tmp_path)
    recorder = Recorder(tmp_path, rank=0)
    recorder.add_scalars(1, {"train_loss": 1.0})
    assert recorder.flush()
    living = recorder.directory / "train_loss.ms"
    os.truncate(living, living.stat().st_size - 1)
    before = living.read_bytes()
    outcomes = {outcome.path: outcome for outcome in repaired(tmp_path)}
    assert outcomes[recorder.directory].action == "held"
    assert living.read_bytes() == before
    assert sum(outcome.action == "rebuilt" for outcome in outcomes.values()) == 3
    recorder.close()
    (outcome,) = repaired(tmp_path)
    assert outcome.path == living


def test_without_locks_a_young_file_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    damaged_run(tmp_path)
    monkeypatch.setattr("mindpulse.store.holding.fcntl.flock", no_locks)
    held, _ = repaired(tmp_path)
    assert held.action == "held"
    assert "--force" in held.problem
    later = max(p.stat().st_mtime for p in tmp_path.rglob("*.ms")) + 601
    assert len(list(Repair(tmp_path, clock=lambda: later, dry_run=True).outcomes())) == 2
    assert len(repaired(tmp_path, force=True)) == 2
    assert len(whole(tmp_path).series(LOSS.tag)) >= 38


def test_a_missing_description_is_told_by_the_ranks(tmp_path: Path) -> None:
    path = written(tmp_path, LOSS)[LOSS.tag]
    (tmp_path / "run.json").unlink()
    (outcome,) = repaired(tmp_path)
    assert (outcome.path, outcome.kept_as) == (tmp_path / "run.json", "")
    run = open_folder(tmp_path)
    header = read_file(path).header
    assert header
    assert (len(run.id), run.created, run.run_tags) == (32, header.start_time, {"git": "abc"})
    assert repaired(tmp_path) == []


def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    run = str(damaged_run(tmp_path))
    assert call("analyze", run).exit_code == 1
    assert "mindpulse repair" in call("analyze", run).stdout
    dry = call("repair", run, "--dry-run")
    assert dry.exit_code == 1
    assert "nothing was changed" in dry.stdout
    done = call("repair", run, "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert (told["rebuilt"], told["dry_run"]) == (3, False)
    by_name = {Path(item["file"]).name: item for item in told["files"]}
    assert by_name["train_loss.ms"]["kept_as"] == "train_loss.ms.damaged"
    assert by_name["train_loss.ms"]["lost_rows"] == 1
    again = call("repair", run)
    assert (again.exit_code, again.stdout.strip()) == (0, f"{run}: nothing to repair")
    assert call("analyze", run).exit_code == 0
    assert call("repair", str(tmp_path / "nowhere")).exit_code == 2


def test_analyze_lists_files_without_a_row(tmp_path: Path) -> None:
    path = written(tmp_path, LOSS)[LOSS.tag]
    (path.parent / "empty.ms").write_bytes(b"")
    told = json.loads(call("analyze", str(tmp_path), "--json").stdout)
    assert told["without_rows"] == ["attempt-0001/rank-0000/empty.ms"]
    assert (told["files"]["total"], told["files"]["valid"], told["files"]["damaged"]) == (2, 1, 1)
    assert told["advice"] == ""  # there is nothing in it that could be kept


@settings(max_examples=60)
@given(st.binary(max_size=400), st.integers(0, 20), st.integers(0, 5))
def test_any_bytes_between_rows(noise: bytes, before: int, after: int) -> None:
    codec = RowCodec(LOSS)
    rows = codec.encode(rows_of(LOSS, range(25)))
    data = rows[: before * 34] + noise + rows[before * 34 : (before + after) * 34]
    found = RowSearch(data, codec.layout).run(0)
    assert b"".join(found.pieces) == rows[: (before + after) * 34]
    assert found.lost_bytes + found.torn_bytes == len(noise)


def test_bytes_that_look_like_rows_do_not_take_for_ever() -> None:
    wide = SeriesSpec("w", "v", "", ("c",), tuple((str(i),) for i in range(2000)))
    layout = RowCodec(wide).layout
    begin = layout.blank[: layout.dtype.fields["values"][1]]  # type: ignore[index]
    data = (begin * 40_000)[: 1 << 20]
    found = RowSearch(data, layout).run(0)
    assert found.rows == 0
    assert found.lost_bytes + found.torn_bytes == len(data)


def test_the_overview_is_of_the_repaired_rows(tmp_path: Path) -> None:
    """An index that was written beside the old file must not speak for the new one."""
    count = 200_000
    writer = RankWriter(create_attempt(tmp_path), 0, 1)
    for first in range(0, count, 10_000):
        writer.append(LOSS, rows_of(LOSS, range(first, first + 10_000)))
        writer.flush()
    writer.close()
    path = writer.directory / "train_loss.ms"
    data = path.read_bytes()
    start = start_of(path)
    path.write_bytes(data[: start + 34 * 1000] + data[start + 34 * 70_000 + 5 :])
    (outcome,) = repaired(tmp_path)
    run = open_folder(tmp_path)
    series = run.series(LOSS.tag)
    assert len(series) == outcome.rows == count - 69_001
    seen, wanted = run.overview(LOSS.tag, points=50), overview_of(series, 50)
    assert seen.counts.sum() == len(series)
    assert seen.maximum.max() == wanted.maximum.max() == series.values.max()
    assert seen.first_steps[0] == series.steps[0]
    gap = [step for step in seen.first_steps.tolist() if 1000 <= step <= 70_000]
    assert gap == []


def test_a_killed_training_lets_go_at_once(tmp_path: Path) -> None:
    Nursery().kill_one(tmp_path, random.Random(0))
    assert repaired(tmp_path) == []
    (path,) = tmp_path.glob("attempt-*/rank-*/train_loss.ms")
    os.truncate(path, path.stat().st_size - 200)
    assert [outcome.action for outcome in repaired(tmp_path)] == ["rebuilt"]


def test_a_forked_child_neither_holds_nor_lets_go(tmp_path: Path) -> None:
    """A data loader that outlives its training must not keep the folder."""
    code = """
import os, sys, time
from mindpulse.recorder import Recorder
from mindpulse.store.holding import Hold
recorder = Recorder(sys.argv[1])
reads, writes = os.pipe()
short = os.fork()
if short == 0:
    os._exit(0)
os.waitpid(short, 0)
assert Hold(recorder.directory).taken_elsewhere
long = os.fork()
if long == 0:
    os.read(reads, 1)
    os._exit(0)
recorder.close()
assert not Hold(recorder.directory).taken_elsewhere
os.write(writes, b"x")
os.waitpid(long, 0)
"""
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path)]
    subprocess.run(command, check=True, timeout=60)


def test_the_index_of_a_repaired_file_is_written_again(tmp_path: Path) -> None:
    path = long_run(tmp_path)
    data = bytearray(path.read_bytes())
    data[start_of(path) + 100 * 34 + 12 : start_of(path) + 100 * 34 + 20] = bytes(8)
    path.write_bytes(data)
    outcomes = list(Repair(tmp_path).outcomes())
    assert [(o.action, o.lost_rows) for o in outcomes] == [("rebuilt", 1)]
    again = index_path(path, 0).read_bytes()
    assert rebuild_index(path)
    assert index_path(path, 0).read_bytes() == again


def test_a_run_without_an_index_is_given_one(tmp_path: Path) -> None:
    path = long_run(tmp_path)
    begun = index_path(path, 0).read_bytes()
    shutil.rmtree(index_path(path, 0).parent)
    assert CliRunner().invoke(main, ["repair", str(tmp_path)]).exit_code == 0
    assert not index_path(path, 0).exists()
    assert CliRunner().invoke(main, ["repair", str(tmp_path), "--index"]).exit_code == 0
    assert index_path(path, 0).read_bytes().startswith(begun)


def long_run(run: Path) -> Path:
    """The file of a series so long that it has an index."""
    folder = create_attempt(run)
    writer = RankWriter(folder, 0, 1)
    writer.append(LOSS, rows_of(LOSS, range(40_000)))
    writer.close()
    path = folder / "train_loss.ms"
    assert index_path(path, 0).exists()
    return path
