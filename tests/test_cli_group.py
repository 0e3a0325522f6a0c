"""The command line as a whole: start-up, help, errors, exit codes, plain pipes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mindpulse.cli import main
from mindpulse.cli.group import COMMANDS
from mindpulse.testing import write_run as run_of_arrays
from synthetic import write_run

RULE = """
[[rule]]
name = "mine"
expr = "last(train_loss) > {}"
"""


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], prog_name="mindpulse")


def process(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "mindpulse.cli", *map(str, words)]
    env = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, env=env, check=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "healthy", steps=120)


def test_help_imports_no_command_and_is_quick() -> None:
    code = """
import sys
from mindpulse.cli import main
try:
    main(["--help"])
except SystemExit:
    pass
heavy = {"numpy", "rich", "mindspore", "mindpulse.cli.analyze"} & set(sys.modules)
assert not heavy, heavy
"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.3
    assert all(name in result.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_explains_itself(name: str) -> None:
    result = call(name, "--help")
    assert result.exit_code == 0
    assert "--json" in result.output
    assert "Usage: mindpulse " + name in result.output


def test_version() -> None:
    assert call("--version").output.startswith("mindpulse 0.")


@pytest.mark.parametrize("name", ["analyze", "query", "export", "report"])
def test_a_folder_that_is_no_run_is_named_in_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    extra = ["--tag", "train_loss"] if name == "query" else []
    for folder in (tmp_path, tmp_path / "missing", tmp_path / "notes.txt"):
        result = call(name, folder, *extra)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert result.stderr.startswith("mindpulse: ")
        assert str(folder) in result.stderr
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["nosuch"], "No such command"),
        (["query", "DIR"], "--tag"),
        (["query", "DIR", "--tag", "train_los"], "did you mean 'train_loss'?"),
        (["query", "DIR", "--tag", "train_loss", "--rank", "7"], "rank 7"),
        (["query", "DIR", "--tag", "train_loss", "--attempt", "x"], "'x'"),
        (["query", "DIR", "--tag", "train_loss", "--attempt", "9"], "attempt 9"),
        (["query", "DIR", "--tag", "attn_focus", "--columns", "no*"], "layer=0 head=0"),
        (["export", "DIR", "--tags", "grad_nrom"], "grad_norm"),
        (["export", "DIR", "--format", "xls"], "xls"),
        (["report", "DIR", "--fail-under", "200"], "200"),
        (["report", "DIR", "--json", "--output", "-"], "use --format json"),
        (["watch", "DIR", "--once", "--act", "explode"], "explode"),
        (["analyze", "DIR", "--layer", "77"], "77"),
        (["demo", "gpt"], "gpt"),
    ],
)
def test_a_wrong_call_exits_with_2_and_says_what_was_wanted(words, wanted, run: Path) -> None:
    result = call(*(run if word == "DIR" else word for word in words))
    assert result.exit_code == 2
    assert wanted in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ["report", "watch"])
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (RULE.format("nosuch(1)"), "nosuch"),
        (RULE.format("("), "^"),
        (RULE.format(1) + "severty = 'info'", "severty"),
        ("not toml", "not TOML"),
    ],
)
def test_a_wrong_rule_file_is_pointed_at(name, text, wanted, run: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(text)
    extra = ["--once"] if name == "watch" else []
    result = call(name, run, "--rules", rules, *extra)
    assert result.exit_code == 2
    assert wanted in result.stderr
    assert str(rules) in result.stderr


def test_a_pipe_gets_no_colour_codes(run: Path) -> None:
    for words in (
        ["analyze", run],
        ["query", run, "--tag", "train_loss"],
        ["watch", run, "--once"],
    ):
        result = process(*words)
        assert result.returncode == 0
        assert b"\x1b" not in result.stdout + result.stderr


def test_a_reader_that_goes_away_is_no_error(run: Path) -> None:
    command = f"{sys.executable} -m mindpulse.cli query {run} --tag train_loss --limit 0 | head -1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "step" in result.stdout
    assert result.stderr == ""


def test_a_terminal_without_unicode(run: Path) -> None:
    result = process("analyze", run, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert result.returncode == 0
    assert b"@@" in result.stdout
    result.stdout.decode("ascii")


@pytest.mark.parametrize(
    "words",
    [
        ["analyze", "DIR"],
        ["query", "DIR", "--tag", "train_loss"],
        ["export", "DIR", "--output-dir", "OUT"],
        ["report", "DIR", "--output", "OUT/report.html"],
    ],
)
def test_json_is_one_strict_document(words, run: Path, tmp_path: Path) -> None:
    places = {"DIR": str(run), "OUT": str(tmp_path)}
    for key, value in places.items():
        words = [word.replace(key, value) for word in words]
    result = call(*words, "--json")
    assert result.exit_code == 0
    json.loads(result.stdout, parse_constant=pytest.fail)


OUTPUTS = [
    ["--help"],
    ["query", "--help"],
    ["analyze", "DIR"],
    ["query", "DIR", "--tag", "train_loss", "--limit", "0"],
    ["report", "DIR", "--output", "-"],
    ["compare", "DIR", "DIR"],
    ["compare", "DIR", "DIR", "--json"],
]


@pytest.mark.parametrize("words", OUTPUTS, ids=" ".join)
def test_a_reader_that_has_gone_is_no_finding(words: list[str], run: Path) -> None:
    command = [str(run) if word == "DIR" else word for word in words]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "-m", "mindpulse.cli", *command],
            stdout=gone,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
@pytest.mark.parametrize("words", OUTPUTS, ids=" ".join)
def test_a_full_disk_behind_the_output_is_told(words: list[str], run: Path) -> None:
    command = [str(run) if word == "DIR" else word for word in words]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mindpulse.cli", *command],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == b"mindpulse: the output: No space left on device\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "gbk"])
def test_json_and_pages_are_whole_in_every_encoding(encoding: str, tmp_path: Path) -> None:
    run_of_arrays(tmp_path / "run", **{"\u635f\u5931\U0001f600\xe9": [1.0]})
    words = ["query", tmp_path / "run", "--tag", "\u635f\u5931\U0001f600\xe9", "--json"]
    found = json.loads(process(*words, PYTHONIOENCODING=encoding).stdout.decode(encoding))
    assert found["tag"] == "\u635f\u5931\U0001f600\xe9"
    words = ["report", tmp_path / "run", "--output", "-", "--lang", "zh"]
    page = process(*words, PYTHONIOENCODING=encoding).stdout.decode("utf-8")
    assert "\u8bad\u7ec3\u5065\u5eb7\u62a5\u544a" in page


def test_ctrl_c_is_no_finding(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mindpulse.cli.query.open_run", interrupted)
    result = call("query", run, "--tag", "train_loss")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "\nmindpulse: interrupted\n"


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "DIR", "DIR", "--limit", "nan"],
        ["compare", "DIR", "DIR", "--band", "nan"],
        ["compare", "DIR", "DIR", "--tolerance", "nan"],
        ["compare", "DIR", "DIR", "--target", "inf"],
        ["report", "DIR", "--fail-under", "nan"],
        ["query", "DIR", "--sql", "select 1", "--timeout", "inf"],
    ],
    ids=" ".join,
)
def test_nan_and_infinity_are_no_settings(words: list[str], run: Path) -> None:
    result = call(*(run if word == "DIR" else word for word in words))
    assert result.exit_code == 2
    assert f"{words[-1]!r}: use a finite number" in result.stderr


def test_a_report_goes_to_where_a_link_points(run: Path, tmp_path: Path) -> None:
    (tmp_path / "link.md").symlink_to("real.md")
    assert call("report", run, "--output", tmp_path / "link.md").exit_code == 0
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "real.md").read_text("utf-8").startswith("# ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.md", "real.md"]


def test_a_pipe_is_written_and_stays(run: Path, tmp_path: Path) -> None:
    """What held for a pipe held for `/dev/null` too: it was replaced by a file."""
    pipe = tmp_path / "pipe.md"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    assert call("report", run, "--output", pipe).exit_code == 0
    assert reader.communicate()[0].startswith(b"# ")
    assert pipe.is_fifo()
