"""What each command tells about a run."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from mindpulse import open_run
from mindpulse.cli import demo as cli_demo
from mindpulse.cli.follow import follow_chunks, joined
from mindpulse.cli.halfblock import picture, shades
from mindpulse.recorder import Recorder
from mindpulse.series import Rows, SeriesSpec
from mindpulse.store.reader import Chunk, RunTail
from mindpulse.summary import SummaryRecord
from mindpulse.testing import write_run as run_of_arrays
from synthetic import HEAD_COLUMNS, LAYERS, write_run
from test_cli_group import call


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "healthy", steps=120)


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    """Two ranks; rank 0 was started twice, the second time from step 4."""
    spec = SeriesSpec("train_loss")
    for rank, first, values in ((0, 1, [5.0, 4.0, 3.0, 2.0]), (0, 4, [2.5, 1.5]), (1, 1, [9.0])):
        recorder = Recorder(tmp_path / "run", rank=rank)
        for offset, value in enumerate(values):
            recorder.write(spec, Rows.one(first + offset, 100.0 + offset, value))
        recorder.close()
    return tmp_path / "run"


# analyze


def test_analyze_counts_files_and_series(run: Path) -> None:
    told = json.loads(call("analyze", run, "--json").stdout)
    assert told["files"] == {
        "total": 7,
        "valid": 7,
        "damaged": 0,
        "foreign": 0,
        "rows": 840,
        "damaged_rows": 0,
        "torn_bytes": 0,
    }
    loss = next(series for series in told["series"] if series["tag"] == "train_loss")
    assert (loss["rows"], loss["first_step"], loss["last_step"]) == (120, 1, 120)
    assert loss["last"] == open_run(run).series("train_loss").values[-1]
    assert told["attempts"], told["ranks"] == ([1], [0])
    assert len(told["snapshots"]) == LAYERS * 4 * 2


def test_analyze_finds_damage_and_foreign_files(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    (copy / "notes.txt").write_text("mine")
    target = copy / "attempt-0001" / "rank-0000" / "train_loss.ms"
    data = bytearray(target.read_bytes())
    data[-20] ^= 1
    target.write_bytes(data)
    result = call("analyze", copy)
    assert result.exit_code == 1
    assert "1 damaged" in result.stdout
    assert "1 foreign" in result.stdout
    assert "train_loss.ms: 1 of 120 rows are damaged" in result.stdout
    assert (copy / "notes.txt").read_text() == "mine"


def test_analyze_shows_the_map_of_a_layer(run: Path) -> None:
    shown = call("analyze", run, "--layer", "1").stdout
    assert "attention of layer 1, step 120" in shown
    assert "██" in shown
    assert "attention of" not in call("analyze", run, "--no-maps").stdout


def test_brackets_in_names_are_no_markup(tmp_path: Path) -> None:
    folder = tmp_path / "[red] [/nothing]"
    with SummaryRecord(folder) as record:
        record.add_value("scalar", "a [bold] [/x] tag", 1.0)
        record.add_value("map", "attn_map", np.eye(3))
    shown = call("analyze", folder)
    assert shown.exit_code == 0
    assert "a [bold] [/x] tag" in shown.stdout
    assert "[red] [/nothing]" in shown.stdout


def test_half_blocks_hold_two_rows_of_pixels_each() -> None:
    text = picture(np.eye(5), top=1.0)
    lines = text.plain.rstrip("\n").split("\n")
    assert [len(line) for line in lines] == [5, 5, 5]
    assert len({str(span.style) for span in text.spans}) > 2


def test_shades_keep_the_form_and_mark_what_is_no_number() -> None:
    values = np.array([[1.0, 0.0], [np.nan, 0.25]])
    assert shades(values, top=1.0) == "██  \n??▒▒"


# query


def test_query_prints_the_last_rows(run: Path) -> None:
    lines = call("query", run, "--tag", "train_loss", "--limit", "2").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["step", "119", "120"]
    assert len(call("query", run, "--tag", "train_loss", "--limit", "0").stdout.splitlines()) == 121


def test_query_json_holds_every_digit(run: Path) -> None:
    told = json.loads(call("query", run, "--tag", "train_loss", "--limit", "1", "--json").stdout)
    series = open_run(run).series("train_loss")
    assert told["rows"] == [
        {"step": 120, "wall_time": series.wall_times[-1], "value": series.values[-1]}
    ]


def test_query_chooses_columns(run: Path) -> None:
    words = ("query", run, "--tag", "attn_focus", "--limit", "1", "--columns", "layer=2 *")
    told = json.loads(call(*words, "--json").stdout)
    assert told["columns"] == [f"layer=2 head={head}" for head in range(4)]
    stored = open_run(run).series("attn_focus").values[-1][8:12]
    assert np.array_equal(np.array(told["rows"][0]["values"], np.float32), stored)
    wide = call("query", run, "--tag", "attn_focus", "--limit", "1").stdout
    assert f"{len(HEAD_COLUMNS) - 8} more columns" in wide


@pytest.mark.parametrize(
    ("words", "steps", "values"),
    [
        ([], [1, 2, 3, 4, 5], [5.0, 4.0, 3.0, 2.5, 1.5]),
        (["--attempt", "1"], [1, 2, 3, 4], [5.0, 4.0, 3.0, 2.0]),
        (["--attempt", "all"], [1, 2, 3, 4, 4, 5], [5.0, 4.0, 3.0, 2.0, 2.5, 1.5]),
        (["--rank", "1"], [1], [9.0]),
    ],
)
def test_query_by_attempt_and_rank(ranks: Path, words, steps, values) -> None:
    told = json.loads(call("query", ranks, "--tag", "train_loss", "--json", *words).stdout)
    assert [row["step"] for row in told["rows"]] == steps
    assert [row["value"] for row in told["rows"]] == values


def test_query_writes_nan_as_strict_json(tmp_path: Path) -> None:
    with SummaryRecord(tmp_path) as record:
        for value in (np.nan, np.inf, -np.inf):
            record.add_value("scalar", "train_loss", value)
    told = json.loads(call("query", tmp_path, "--tag", "train_loss", "--json").stdout)
    assert [row["value"] for row in told["rows"]] == ["nan", "inf", "-inf"]


def test_following_gives_what_is_there_and_then_what_comes(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    spec = SeriesSpec("train_loss")
    recorder.write(spec, Rows.one(1, 1.0, 3.0))
    recorder.flush()
    blocks = follow_chunks(RunTail(tmp_path), "train_loss", None, None)
    assert next(blocks)[1].steps.tolist() == [1]
    recorder.write(spec, Rows.one(2, 2.0, 2.0))
    recorder.add_scalars(2, {"other": 1.0})
    recorder.flush()
    assert next(blocks)[1].steps.tolist() == [2]
    recorder.close()
    again = Recorder(tmp_path)
    again.write(spec, Rows.one(2, 3.0, 2.5))
    again.close()
    assert next(blocks)[1].values.tolist() == [[2.5]]
    blocks.close()


def test_a_first_block_of_several_attempts_is_merged() -> None:
    spec = SeriesSpec("x")
    steps = [np.arange(1, 6), np.arange(4, 7)]
    chunks = [
        Chunk(0, number, spec, Rows(s, s * 1.0, s[:, None] * float(number)))
        for number, s in enumerate(steps, 1)
    ]
    assert joined(chunks).steps.tolist() == [1, 2, 3, 4, 5, 6]
    assert len(joined(chunks, keep_all=True)) == 8


# export


def test_csv_reads_back_bit_for_bit(run: Path, tmp_path: Path) -> None:
    result = call("export", run, "--output-dir", tmp_path, "--tags", "train_loss,attn_*")
    assert result.exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "attn_entropy.csv",
        "attn_focus.csv",
        "train_loss.csv",
    ]
    for tag in ("train_loss", "attn_focus"):
        series = open_run(run).series(tag)
        with (tmp_path / f"{tag}.csv").open(newline="") as file:
            head, *rows = csv.reader(file)
        table = np.array(rows, float)
        assert head[:2] == ["step", "wall_time"]
        assert np.array_equal(table[:, 0], series.steps)
        assert np.array_equal(table[:, 1], series.wall_times)
        assert np.array_equal(table[:, 2:].astype(series.values.dtype), series.rows.values)


def test_json_export_reads_back_bit_for_bit(run: Path, tmp_path: Path) -> None:
    call("export", run, "--format", "json", "--output-dir", tmp_path, "--tags", "attn_focus")
    told = json.loads((tmp_path / "attn_focus.json").read_text())
    assert told["columns"][5] == ["1", "1"]
    assert np.array_equal(
        np.array(told["values"], np.float32), open_run(run).series("attn_focus").values
    )


def test_export_of_several_ranks_names_them(ranks: Path, tmp_path: Path) -> None:
    call("export", ranks, "--output-dir", tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["train_loss.rank-0000.csv", "train_loss.rank-0001.csv"]


def test_a_tag_cannot_leave_the_folder(tmp_path: Path) -> None:
    with SummaryRecord(tmp_path / "run") as record:
        record.add_value("scalar", "../../evil tag", 1.0)
    call("export", tmp_path / "run", "--output-dir", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["..%2F..%2Fevil%20tag.csv"]


def test_export_to_a_place_that_cannot_be_written(run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = call("export", run, "--output-dir", tmp_path / "file" / "below")
    assert result.exit_code == 2
    assert "choose a place that can be written" in result.stderr


# report


def test_report_writes_by_ending_and_prints_to_a_pipe(run: Path, tmp_path: Path) -> None:
    for name, begin in (("a.html", "<!doctype"), ("a.md", "# "), ("a.json", "{")):
        result = call("report", run, "--output", tmp_path / name)
        assert result.exit_code == 0
        assert (tmp_path / name).read_text().startswith(begin)
        assert str(tmp_path / name) in result.stdout
    assert call("report", run, "--format", "md", "--output", "-").stdout.startswith("# ")
    assert "Healthy" in call("report", run).stdout
    assert (run / "report.html").exists()
    assert json.loads(call("analyze", run, "--json").stdout)["files"]["foreign"] == 0


def test_report_fails_under(run: Path, tmp_path: Path) -> None:
    bad = write_run(tmp_path / "bad", fault="lr-explosion", snapshots=False)
    assert call("report", run, "--fail-under", "50").exit_code == 0
    result = call("report", bad, "--fail-under", "50")
    assert result.exit_code == 1
    assert "below 50" in result.stderr
    assert "no finding" not in result.stderr
    assert call("report", bad).exit_code == 0


def test_a_limit_that_no_run_reaches_is_said_to_be_one(run: Path) -> None:
    told = json.loads(call("report", run, "--json").stdout)["score"]
    assert told["value"] == told["at_best"] < 100
    result = call("report", run, "--fail-under", "100")
    assert result.exit_code == 1
    assert f"with these signals and no finding it would be {told['at_best']:.0f}" in result.stderr


def test_an_unknown_score_is_not_above_a_limit(tmp_path: Path) -> None:
    with SummaryRecord(tmp_path) as record:
        record.add_value("scalar", "mine", 1.0)
    result = call("report", tmp_path, "--fail-under", "1")
    assert result.exit_code == 1
    assert "unknown" in result.stderr


def test_report_by_own_rules(run: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(
        '[[rule]]\nname = "mine"\nexpr = "last(train_loss) > 0"\nsummary = "too much"\n'
    )
    told = json.loads(call("report", run, "--rules", rules, "--json").stdout)
    assert [(a["rule"], a["message"]) for a in told["alerts"]] == [("mine", "Too much")]


# demo


def test_demo_without_mindspore_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindpulse.demo.require.find_spec", lambda name: None)
    result = call("demo", "bert")
    assert result.exit_code == 2
    assert "pip install" in result.stderr


def test_demo_passes_its_choices_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}

    def run(kind: str, **choices: object) -> int:
        seen.update(kind=kind, **choices)
        return 1

    monkeypatch.setattr("mindpulse.demo.run", run)
    words = ("--fault", "nan-batch", "--act", "--steps", "9", "--mode", "jit", "--seed", "3")
    assert call("demo", "vit", *words, "--dir", "there").exit_code == 1
    assert seen == {
        "kind": "vit",
        "fault": "nan-batch",
        "act": True,
        "steps": 9,
        "mode": "jit",
        "seed": 3,
        "directory": Path("there"),
        "as_json": False,
    }


@pytest.mark.mindspore
def test_demo_offers_the_faults_that_there_are() -> None:
    from mindpulse.demo.faults import FAULTS

    assert set(cli_demo.FAULTS) == set(FAULTS)


def test_a_run_without_rows_says_so_and_a_file_without_any_needs_no_repair(tmp_path: Path) -> None:
    run_of_arrays(tmp_path / "run", train_loss=[1.0, 2.0], grad_norm=[1.0])
    target = tmp_path / "run" / "attempt-0001" / "rank-0000" / "train_loss.ms"
    target.write_bytes(b"")
    result = call("analyze", tmp_path / "run")
    assert result.exit_code == 1
    assert "train_loss.ms: the file is empty" in result.stdout
    assert "mindpulse repair" not in result.stdout  # it would leave the file as it is
    run_of_arrays(tmp_path / "begun", train_loss=np.empty(0))
    result = call("analyze", tmp_path / "begun")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "no series yet")
