"""`mindpulse compare` on run folders: exit codes, JSON, files, languages, what it refuses."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mindpulse.cli.comparison.chart import print_chart
from mindpulse.recorder import Recorder
from mindpulse.series import Rows, SeriesSpec
from test_cli_group import call, process

REAL = Path(__file__).parent.parent.parent / "shared" / "real"
STEPS = np.arange(1, 401)


def falling(floor: float, seed: int) -> NDArray[np.float64]:
    noise = np.random.default_rng(seed).normal(0, 0.1, len(STEPS))
    return floor + (8 - floor) * 0.5 ** (STEPS / 40) + noise


def write(
    folder: Path,
    values: NDArray[Any],
    tag: str = "train_loss",
    step_time: float = 0.5,
    more: tuple[str, ...] = (),
    rank: int = 0,
    **tags: str,
) -> Path:
    recorder = Recorder(folder, rank=rank, fingerprint=tags)
    steps = STEPS[: len(values)]
    for name in (tag, *more):
        recorder.write(SeriesSpec(name), Rows(steps, 1.7e9 + steps * step_time, values[:, None]))
    tokens = (steps * 4096.0)[:, None]
    recorder.write(SeriesSpec("consumed_tokens"), Rows(steps, 1.7e9 + steps * step_time, tokens))
    recorder.close()
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write(folder / "a", falling(2, 0), lr="1e-4", model="bert")
    write(folder / "twin", falling(2, 1), lr="1e-4", model="bert")
    write(folder / "third", falling(2, 2))
    write(folder / "worse", falling(3, 3), step_time=1.0, more=("grad_norm",), lr="1e-3")
    write(folder / "short", falling(2, 4)[:3])
    write(folder / "other", falling(2, 5), tag="loss")
    return folder


@pytest.mark.parametrize(
    ("b", "options", "code", "word"),
    [
        ("twin", (), 0, "Same."),
        ("worse", (), 1, "Worse."),
        ("short", (), 1, "Cannot tell."),
        ("worse", ("--fail-on", "none"), 0, "Worse."),
        ("worse", ("--fail-on", "different,unknown"), 0, "Worse."),
        ("twin", ("--fail-on", "same"), 1, "Same."),
        ("worse", ("--tolerance", "0.3", "--limit", "0.3"), 0, "Same."),
        ("worse", ("--tolerance", "0.3", "--limit", "0.05"), 1, "Different."),
        ("worse", ("--goal", "max"), 0, "Better."),
        ("worse", ("--lang", "zh"), 1, "更差"),
    ],
)
def test_exit_code_and_verdict(
    runs: Path, b: str, options: tuple[str, ...], code: int, word: str
) -> None:
    result = call("compare", runs / "a", runs / b, *options)
    assert result.stdout.startswith(word), result.output
    assert result.exit_code == code


def test_the_better_run_is_better(runs: Path) -> None:
    result = call("compare", runs / "worse", runs / "a")
    assert (result.exit_code, result.stdout.split(".")[0]) == (0, "Better")


def test_json_tells_facts_ratios_and_differences(runs: Path) -> None:
    result = call("compare", runs / "a", runs / "worse", "--target", "4", "--json")
    told = json.loads(result.stdout)
    assert told["verdict"]["state"] == "worse"
    assert told["differences"]["tags"] == [["lr", "1e-4", "1e-3"], ["model", "bert", None]]
    assert told["differences"]["only_b"] == ["grad_norm"]
    assert told["a"]["final"] == {"step": 400, "value": falling(2, 0)[-1]}
    best = int(np.argmin(falling(2, 0)))
    assert told["a"]["best"] == {"step": best + 1, "value": falling(2, 0)[best]}
    assert told["ratios"]["step_time"] == pytest.approx(2.0)
    for side, floor in (("a", 2), ("b", 3)):
        reached = told[side]["reached"]
        assert reached["step"] == pytest.approx(40 * np.log2((8 - floor) / (4 - floor)), abs=4)
        assert reached["tokens"] == reached["step"] * 4096
    assert told["compared"]["parts_at"] < 60


def test_a_short_run_is_judged_on_what_is_common_and_that_is_told(
    runs: Path, tmp_path: Path
) -> None:
    half = write(tmp_path / "half", falling(2, 6)[:200])
    text = " ".join(call("compare", runs / "a", half).stdout.split())
    assert "Only 49.9 % of the steps that the runs cover are common to them: 1 to 200." in text
    assert "Only" not in call("compare", runs / "a", runs / "twin").stdout


def test_seeds_are_the_noise(runs: Path) -> None:
    seeds = ("--seeds", runs / "twin", "--seeds", runs / "third")
    result = call("compare", runs / "a", runs / "worse", *seeds)
    assert "rank p = 0.25 (with 3 seeds it cannot be below 0.25)" in " ".join(result.stdout.split())
    assert result.exit_code == 1


def test_html_needs_nothing_else(runs: Path, tmp_path: Path) -> None:
    target = tmp_path / "page" / "compare.html"
    result = call("compare", runs / "a", runs / "worse", "--output", target, "--target", "4")
    assert str(target) in result.stdout
    page = target.read_text("utf-8")
    assert "default-src &#x27;none&#x27;" in page
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", page)
    assert page.count("<figure") == 3
    assert "B ends worse than A" in page
    ET.fromstring(re.sub(r"<(script|style)>.*?</\1>", "", page.split("\n", 1)[1], flags=re.DOTALL))


def test_names_from_outside_are_escaped(runs: Path, tmp_path: Path) -> None:
    evil = write(tmp_path / "<b>&", falling(2, 1), lr="<script>alert(1)</script>")
    target = tmp_path / "compare.html"
    call("compare", runs / "a", evil, "--output", target)
    page = target.read_text("utf-8")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_svg_is_a_picture_with_its_own_labels(runs: Path, tmp_path: Path, lang: str) -> None:
    target = tmp_path / "compare.svg"
    seeds = ("--seeds", runs / "twin", "--lang", lang)
    call("compare", runs / "a", runs / "worse", "--output", target, *seeds)
    picture = ET.parse(target).getroot()
    space = {"s": "http://www.w3.org/2000/svg"}
    texts = [text.text for text in picture.findall(".//s:text", space)]
    assert "400" in texts
    assert ("B less A" if lang == "en" else "B 减 A") in texts
    assert len(picture.findall(".//s:path[@class='b']", space)) >= 2


def test_svg_of_nothing_is_refused(runs: Path, tmp_path: Path) -> None:
    result = call("compare", runs / "a", runs / "short", "--output", tmp_path / "x.svg")
    assert result.exit_code == 2
    assert "no picture" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_markdown_for_a_merge_request(runs: Path, tmp_path: Path) -> None:
    target = tmp_path / "compare.md"
    call("compare", runs / "a", runs / "worse", "--output", target)
    text = target.read_text("utf-8")
    assert text.startswith("# ❌ train_loss: Worse\n")
    assert "| lr | 1e-4 | 1e-3 |" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in tables} == {5, 4}


def test_another_cann_or_driver_is_told(tmp_path: Path) -> None:
    software = {"cann": "8.3.RC2", "driver": "25.3.rc1", "mindspore_commit": "2d550373"}
    write(tmp_path / "a", falling(2, 0), **software)
    write(tmp_path / "b", falling(2, 1), **software | {"cann": "8.5.0"})
    told = call("compare", str(tmp_path / "a"), str(tmp_path / "b")).output
    assert re.search(r"cann\W+8\.3\.RC2\W+8\.5\.0", told)
    assert "25.3.rc1" not in told


def test_a_tag_that_is_missing_is_answered_with_near_ones_of_both(runs: Path) -> None:
    result = call("compare", runs / "a", runs / "other")
    assert result.exit_code == 2
    assert f"no series 'train_loss' in {runs / 'other'}; near it: 'loss'" in result.stderr
    assert "both have 'consumed_tokens'" in result.stderr
    result = call("compare", runs / "a", runs / "other", "--tag", "lossy", "--tag-b", "lossy")
    assert result.stderr.count("no series 'lossy'") == 2


def test_a_series_may_have_another_name_in_b(runs: Path) -> None:
    result = call("compare", runs / "a", runs / "other", "--tag-b", "loss")
    assert (result.exit_code, result.stdout.split(".")[0]) == (0, "Same")


def test_two_attempts_of_one_run(tmp_path: Path) -> None:
    write(tmp_path / "run", falling(3, 0))
    write(tmp_path / "run", falling(2, 1))
    folder = tmp_path / "run"
    result = call("compare", folder, folder, "--attempt", "1", "--attempt-b", "2")
    assert result.stdout.startswith("Better.")
    assert call("compare", folder, folder, "--attempt", "7").exit_code == 2


def test_ranks(tmp_path: Path) -> None:
    write(tmp_path / "run", falling(2, 0))
    write(tmp_path / "run", falling(3, 1), rank=1)
    folder = tmp_path / "run"
    assert call("compare", folder, folder, "--rank-b", "1").stdout.startswith("Worse.")
    result = call("compare", folder, folder, "--rank", "5")
    assert result.exit_code == 2
    assert "it has [0, 1]" in result.stderr


def test_a_column_of_a_wide_series(tmp_path: Path) -> None:
    spec = SeriesSpec("loss_of", axes=("task",), columns=(("easy",), ("hard",)))
    for name, floor in (("a", 2), ("b", 3)):
        recorder = Recorder(tmp_path / name)
        values = np.stack([falling(2, 0), falling(floor, 1)], axis=1)
        recorder.write(spec, Rows(STEPS, STEPS * 1.0, values))
        recorder.close()
    both = (tmp_path / "a", tmp_path / "b", "--tag", "loss_of")
    assert call("compare", *both, "--column", "task=easy").stdout.startswith("Same.")
    assert call("compare", *both, "--column", "task=hard").stdout.startswith("Worse.")
    assert "'task=easy', 'task=hard'" in call("compare", *both).stderr
    assert "no column 'task=x'" in call("compare", *both, "--column", "task=x").stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--fail-on", "worst"), "'worst': use 'none' or some of same, better"),
        (("--output", "x.pdf"), "end the name with .html, .svg or .md"),
        (("--band", "2"), "--band"),
    ],
)
def test_usage_errors(runs: Path, options: tuple[str, ...], words: str) -> None:
    result = call("compare", runs / "a", runs / "twin", *options)
    assert result.exit_code == 2
    assert words in result.stderr


def test_a_run_that_is_not_there(runs: Path) -> None:
    result = call("compare", runs / "a", runs / "nowhere")
    assert result.exit_code == 2
    assert "nowhere" in result.stderr


def test_a_pipe_that_knows_only_ascii(runs: Path) -> None:
    done = process("compare", runs / "a", runs / "worse", LC_ALL="C", PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert done.stdout.isascii()
    assert b"Traceback" not in done.stderr


def test_the_chart_has_dots_in_colour_and_letters_without() -> None:
    from io import StringIO

    from rich.console import Console

    a, b = np.linspace(10, 0, 500), np.linspace(10, 5, 500)
    colour = Console(file=StringIO(), force_terminal=True, color_system="truecolor", width=80)
    colour._environ = {}
    plain = Console(file=StringIO(), width=80)
    for out in (colour, plain):
        print_chart(a, b, out)
    assert isinstance(plain.file, StringIO)
    lines = plain.file.getvalue().splitlines()
    assert len(lines) == 12
    assert lines[0].split("|")[1].strip().startswith("*")
    assert lines[-1].endswith("A")
    assert "B" not in lines[-1]


# Curves of other people; the pairs and their verdicts are told in INDEX.md.


@pytest.mark.parametrize(
    ("a", "b", "state", "least"),
    [
        ("tfevents/roberta_lora_agnews_run0", "tfevents/roberta_lora_agnews_run2", "same", 0.0),
        ("tfevents/roberta_lora_agnews_run0", "tfevents/roberta_lora_agnews_run4", "better", 0.15),
        ("tfevents/roberta_lora_agnews_run4", "tfevents/roberta_lora_agnews_run2", "worse", 0.15),
        (
            "other_logs/spam_llama60m_healthy.log",
            "other_logs/spam_llama60m_diverged.log",
            "worse",
            0.15,
        ),
    ],
)
def test_real_pairs(a: str, b: str, state: str, least: float) -> None:
    if not (REAL / a).exists():
        pytest.skip(
            f"{REAL / a} is not there: real files of other people stay out of the repository"
        )
    told = json.loads(call("compare", REAL / a, REAL / b, "--json").stdout)
    assert told["verdict"]["state"] == state
    assert told["compared"]["distance"] >= least


def test_a_diverged_run_parts_from_the_healthy_one_where_the_log_says_so() -> None:
    """Equal up to step 501; 5.28 against 5.41 at step 601, and 4.59 against 5.91 at step 701."""
    healthy = REAL / "other_logs" / "spam_llama60m_healthy.log"
    if not healthy.exists():
        pytest.skip(
            f"{healthy} is not there: real files of other people stay out of the repository"
        )
    diverged = healthy.with_name("spam_llama60m_diverged.log")
    told = json.loads(call("compare", healthy, diverged, "--json").stdout)
    assert 501 < told["compared"]["parts_at"] < 701
