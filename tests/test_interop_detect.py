"""What a file or folder is: recognised by content, refused in words that help."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from interop_samples import SAMPLES
from mindpulse.cli import main
from mindpulse.errors import FormatError, MindPulseError, UsageError
from mindpulse.interop import OURS, identify, open_run
from mindpulse.interop.aliases import ALIASES, HUGGING_FACE, KERAS, MINDFORMERS, our_name, resolve
from mindpulse.interop.detect import LOGS, WHOLE
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.folder import create_attempt
from mindpulse.store.writer import RankWriter

PAGE = Path(__file__).parent.parent / "docs" / "interop.md"


def make_run(folder: Path) -> None:
    writer = RankWriter(create_attempt(folder), 0, 1)
    writer.append(SeriesSpec("train_loss"), Rows.one(1, 1.7e9, 2.5))
    writer.close()


def sample(folder: Path, kind: str, name: str = "") -> Path:
    own, data = SAMPLES[kind]
    path = folder / (name or own)
    path.write_bytes(data)
    return path


def test_there_is_a_sample_of_every_kind() -> None:
    assert set(SAMPLES) == {*WHOLE, *LOGS}


@pytest.mark.parametrize("kind", list(SAMPLES))
def test_each_kind_whatever_its_name(tmp_path: Path, kind: str) -> None:
    for name in ("", "some file"):
        found = identify(sample(tmp_path, kind, name))
        assert found.kind == kind
        assert found.title
        assert found.why
        run = found.read()
        assert run.specs()
        assert all(len(run.series(tag, rank=run.ranks[0])) for tag in run.specs())


def test_our_own_run(tmp_path: Path) -> None:
    make_run(tmp_path / "a")
    assert identify(tmp_path / "a").kind == OURS
    assert open_run(str(tmp_path / "a")).series("train_loss").values.tolist() == [2.5]


def test_a_folder_of_our_runs_lists_them(tmp_path: Path) -> None:
    make_run(tmp_path / "a")
    make_run(tmp_path / "b")
    with pytest.raises(UsageError, match="is no run but holds runs: 'a', 'b'"):
        open_run(tmp_path)


def test_one_file_of_ours_points_at_its_folder(tmp_path: Path) -> None:
    make_run(tmp_path)
    with pytest.raises(FormatError, match="one series of a MindPulse run; give the run folder"):
        open_run(next(tmp_path.rglob("*.ms")))


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist; give a run folder, or a file"):
        open_run(tmp_path / "missing")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="neither a file nor a folder"):
        open_run(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04" + bytes(100), r"binary data of no kind that is known; it begins with b'PK"),
        (bytes(range(128, 256)) * 4, "binary data"),
        (b"Dear diary,\ntoday I trained.\n", r"no line in it is a step.*b'Dear diary.*JSON lines"),
        (b'{"a": "b"}', "no numbers|no line in it is a step"),
        (b"step,loss\n", "no numbers of a training"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 17\n", "LFS.*17 bytes"),
    ],
)
def test_what_cannot_be_read_is_quoted(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "thing.csv"
    path.write_bytes(data)
    with pytest.raises(MindPulseError, match=f"thing.csv.*({words})"):
        open_run(path)


def test_a_folder_with_one_thing_is_that_thing(tmp_path: Path) -> None:
    sample(tmp_path, "megatron-log")
    (tmp_path / "README.txt").write_text("how this was trained\n")
    (tmp_path / ".hidden.csv").write_text("step,loss\n1,2\n")
    assert identify(tmp_path).kind == "megatron-log"


def test_a_folder_with_several_things_lists_them(tmp_path: Path) -> None:
    sample(tmp_path, "megatron-log")
    sample(tmp_path, "csv")
    with pytest.raises(
        UsageError, match=r"2 things that could be the run: metrics.csv \(a CSV file\), t"
    ):
        open_run(tmp_path)


def test_an_empty_folder_says_what_is_understood(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is empty: no run has begun in it"):
        open_run(tmp_path)
    (tmp_path / "code").mkdir()
    with pytest.raises(UsageError, match=r"holds no run: no file.*'code'.*a Megatron log"):
        open_run(tmp_path)


def test_names_of_two_that_mean_the_same_stay_apart() -> None:
    found, told = resolve(["lm-loss", "loss", "other"], MINDFORMERS)
    assert {name: alias.ours for name, alias in found.items()} == {
        "lm-loss": "lm-loss",
        "loss": "train_loss",
        "other": "other",
    }
    assert told == ["'lm-loss' keeps its name: 'loss' is 'train_loss'"]


def test_a_name_of_ours_keeps_its_meaning_where_the_tool_has_no_other() -> None:
    found, _ = resolve(["loss", "train_loss"])
    assert found["train_loss"].ours == "train_loss"
    assert found["loss"].ours == "loss"
    # For the Trainer of Hugging Face "train_loss" is the mean over the whole run.
    found, _ = resolve(["loss", "train_loss"], HUGGING_FACE)
    assert found["loss"].ours == "train_loss"
    assert found["train_loss"].ours == "train_loss_mean"


def test_names_without_a_tool_are_translated_where_all_tools_agree() -> None:
    assert our_name("val_loss").ours == "eval_loss"
    assert our_name("train/loss").ours == "train_loss"
    assert our_name("elapsed time per iteration (ms)").divide == 1000.0
    assert our_name("time").ours == "time"  # in which unit, only the tool can say
    assert our_name("attn/focus").ours == "attn_focus"  # as our TensorBoard mirror writes it
    assert our_name("train/train_loss").ours == "train_loss_mean"
    assert our_name("val_loss", KERAS).ours == "eval_loss"


def test_no_name_stands_twice_in_the_table() -> None:
    keys = [(alias.tool, alias.theirs) for alias in ALIASES]
    assert len(keys) == len(set(keys))


def test_the_page_has_the_table() -> None:
    rows = re.findall(
        r"^\| (.+?) \| `(.+?)` \| `(.+?)` \| (.*?) \|$", PAGE.read_text("utf-8"), re.M
    )
    wanted = [
        (a.tool, a.theirs.replace("|", "\\|"), a.ours, note(a.unit, a.divide)) for a in ALIASES
    ]
    assert [tuple(row) for row in rows] == wanted


def note(unit: str, divide: float) -> str:
    factor = {1.0: "", 1000.0: "ms / 1000", 2.0**-20: "MiB x 2^20", 2.0**-30: "GiB x 2^30"}[divide]
    return ", ".join(part for part in (unit, factor) if part)


def test_importing_the_room_loads_none_of_its_readers() -> None:
    code = (
        "import sys, mindpulse.interop\n"
        "print([n for n in sys.modules if n.startswith('mindpulse.interop.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "call", [["watch", "--once"], ["query", "--tag", "train_loss", "--follow"]]
)
def test_what_waits_for_rows_refuses_files_of_others(tmp_path: Path, call: list[str]) -> None:
    path = sample(tmp_path, "megatron-log")
    for place in (path, tmp_path):
        done = CliRunner().invoke(main, [call[0], str(place), *call[1:]])
        assert done.exit_code == 2
        assert "was not written by MindPulse" in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        '{"jobInfo": "NA", "rank_id": 0, "cpuNums": 192}',
        '{"FLOPs": 8167.7, "FLOPS": 9868.9}\n',
        '{"step13": {"p2p": {"size": 12}}}',
    ],
)
def test_a_lone_object_without_a_step_is_no_row(tmp_path: Path, text: str) -> None:
    path = tmp_path / "info.json"
    path.write_text(text)
    with pytest.raises(FormatError, match="no line in it is a step of a training"):
        open_run(path)


@pytest.mark.parametrize(
    "text", ['{"iteration": 3, "lr": 0.1}', '{"train/loss": 2.5}\n', '{"lr": 0.1}\n{"lr": 0.2}\n']
)
def test_rows_of_a_training_that_has_just_begun(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(text)
    assert identify(path).kind == "json-rows"


@pytest.mark.parametrize("around", ["[{}]", '{{"traceEvents": [{}]}}'])
def test_the_trace_of_a_profiler_is_called_what_it_is(tmp_path: Path, around: str) -> None:
    path = tmp_path / "trace_view.json"
    path.write_text(around.format('{"name": "MatMul", "pid": 7, "ts": 12.5, "dur": 3, "ph": "X"}'))
    with pytest.raises(FormatError, match="a profiler's trace of events"):
        open_run(path)


def test_the_name_of_the_other_tool_is_understood_by_the_commands(tmp_path: Path) -> None:
    path = sample(tmp_path, "hugging-face-trainer-state")
    ours = [str(path), "--tag", "train_loss", "--json"]
    theirs = [str(path), "--tag", "loss", "--json"]
    runner = CliRunner()
    found = [runner.invoke(main, ["query", *words]) for words in (ours, theirs)]
    assert [result.exit_code for result in found] == [0, 0]
    assert found[0].stdout == found[1].stdout
    out = str(tmp_path / "out")
    result = runner.invoke(main, ["export", str(path), "--tags", "loss", "--output-dir", out])
    assert result.exit_code == 0
    assert [file.name for file in Path(out).iterdir()] == ["train_loss.csv"]
    words = ["compare", str(path), str(path), "--tag", "loss", "--fail-on", "none"]
    assert runner.invoke(main, words).exit_code == 0
