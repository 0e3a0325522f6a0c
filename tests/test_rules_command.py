"""`mindpulse rules`: list, check, test, explain, as text and as JSON, in both languages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mindpulse.cli import main
from mindpulse.rules.load import load_rules
from mindpulse.testing import write_run

NAMES = [rule.name for rule in load_rules()]
MINE = """
[[record]]
name = "smooth_loss"
expr = "mean(train_loss[10])"
unit = "nats"

[[rule]]
name = "mine"
expr = "last(smooth_loss) > 2 and last(power_w) > 100"
severity = "error"
group = "loss-up"
inhibits = ["loss-divergence"]
worse = { critical = "last(smooth_loss) > 9" }
summary = "too much"
summary_zh = "太多"

[[rule]]
name = "gradient-spike"
severity = "info"

[[rule]]
name = "step-time-outlier"
disabled = true
"""


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["rules", *map(str, words)], prog_name="mindpulse")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(MINE, encoding="utf-8")
    return path


def test_list_shows_what_ships_and_what_is_yours(mine: Path) -> None:
    assert [row["name"] for row in json.loads(call("list", "--json").stdout)["rules"]] == NAMES
    told = json.loads(call("list", "--rules", mine, "--json").stdout)
    origins = {row["name"]: row["origin"] for row in told["rules"]}
    assert origins["mine"] == "own"
    assert origins["gradient-spike"] == "changed"
    assert origins["nonfinite"] == "shipped"
    assert told["disabled"] == ["step-time-outlier"]
    assert told["derived"] == {"smooth_loss": {"expr": "mean(train_loss[10])", "unit": "nats"}}
    text = call("list", "--rules", mine, "--lang", "zh").stdout
    assert "太多" in text
    assert "已停用: step-time-outlier" in text
    assert "loss-up" in text


def test_check_says_that_a_file_is_fine_and_what_is_not_measured(mine: Path) -> None:
    result = call("check", mine)
    assert result.exit_code == 0
    assert "mine reads power_w, which MindPulse does not measure itself" in result.stdout
    assert f"{mine}: 2 rules and 1 derived series are fine" in result.stdout
    assert "2 条规则" in call("check", mine, "--lang", "zh").stdout


def test_check_tells_every_mistake_and_points(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(
        "[[rule]]\nname = 'a'\nexpr = 'lsat(x) > 1'\nfor_steps = -1\n[[rule]]\nname = 'b'\n"
    )
    result = call("check", path)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == f"{path}:1, rule 'a': no function 'lsat'; did you mean 'last'?"
    assert lines[1:3] == ["  lsat(x) > 1", "  ^"]
    assert lines[-1] == f"{path}: 3 mistakes"
    told = json.loads(call("check", path, "--json").stdout)
    assert [problem["column"] for problem in told["problems"]] == [0, 0, 0]
    assert told["problems"][2]["message"].endswith("rule 'b': expr is missing")
    for other in ("list", "explain"):
        words = (other, "nonfinite") if other == "explain" else (other,)
        assert call(*words, "--rules", path).exit_code == 2


def test_a_file_that_is_not_there_or_no_toml_is_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "not.toml").write_text("[[rule]\n")
    for name, words in (("none.toml", "No such file"), ("not.toml", "not TOML")):
        result = call("check", tmp_path / name)
        assert result.exit_code == 2
        assert words in result.stderr


def test_test_judges_scenarios(tmp_path: Path, mine: Path) -> None:
    path = tmp_path / "my.scenario"
    good = "scenario fine\n rules gradient-explosion\n grad_norm: 1x9\n"
    path.write_text(good)
    result = call("test", path)
    assert (result.exit_code, result.stdout) == (
        0, "ok      fine\n1 of 1 scenarios went as expected\n"
    )  # fmt: skip
    path.write_text(good + good.replace("fine", "loud").replace("1x9", "80"))
    result = call("test", path)
    assert result.exit_code == 1
    assert "FAILED  loud (line 4)" in result.stdout
    assert "not expected: at 1: gradient-explosion firing error" in result.stdout
    told = json.loads(call("test", path, "--json").stdout)
    assert [len(row["failures"]) for row in told] == [0, 1]
    path.write_text("scenario s\n rules mine\n train_loss: 3x12\n power_w: 200x12\n"
                    " at 10: mine firing error\n")  # fmt: skip
    assert call("test", path, "--rules", mine).exit_code == 0
    assert call("test", path).exit_code == 2
    path.write_text("scenario s\n x y\n")
    result = call("test", path)
    assert result.exit_code == 2
    assert f"{path}:2: " in result.stderr


def test_explain_says_all_of_it(mine: Path) -> None:
    told = json.loads(call("explain", "mine", "--rules", mine, "--json").stdout)
    assert told["series"] == {"train_loss": 10, "power_w": 1}
    assert told["worse"] == {"critical": "last(smooth_loss) > 9"}
    assert set(told["functions"]) == {"last", "mean"}
    text = call("explain", "mine", "--rules", mine).stdout
    for words in (
        "too much",
        "`last(smooth_loss) > 2 and last(power_w) > 100`",
        "critical if `last(smooth_loss) > 9`",
        "`smooth_loss` = `mean(train_loss[10])` (nats)",
        "loss-divergence",
        "`train_loss`, the last 10 rows",
        "`mean`: arithmetic mean",
    ):
        assert words in text
    for name in NAMES:
        assert "可能原因" in call("explain", name, "--lang", "zh").stdout
    result = call("explain", "nonfinit")
    assert result.exit_code == 2
    assert "did you mean 'nonfinite'?" in result.stderr


def test_explain_says_what_a_rule_says_of_a_run(tmp_path: Path, mine: Path) -> None:
    run = tmp_path / "run"
    heads = np.full((30, 8), 0.9)
    heads[-1, :6] = 0.2
    write_run(run, train_loss=np.linspace(9, 6, 30), grad_norm=np.full(20, 1.5), attn_entropy=heads)

    def now(rule: str, *words: str | Path) -> dict[str, Any]:
        (told,) = json.loads(call("explain", rule, "--run", run, "--json", *words).stdout)["now"]
        return told

    assert now("gradient-explosion") == {
        "rank": 0, "step": 20, "state": "quiet", "severity": "", "reason": "",
        "comparisons": [
            {"text": "last(grad_norm) > 50", "state": "quiet", "sides": [[1.5], [50.0]]}
        ],
    }  # fmt: skip
    assert now("nonfinite")["step"] == 20  # as far as both its series have come
    spike = now("gradient-spike")
    assert (spike["state"], spike["reason"]) == (
        "unknown", "grad_norm has 17 of the 50 rows needed"
    )  # fmt: skip
    collapse = now("entropy-collapse")
    assert collapse["state"] == "fired"
    assert collapse["severity"] == "error"
    sharp = next(c for c in collapse["comparisons"] if c["text"] == "last(attn_entropy) < 0.05")
    assert sharp["state"] == "quiet"
    assert sharp["sides"] == [pytest.approx([0.2, 0.9]), [0.05]]
    own = now("mine", "--rules", mine)
    assert own["reason"] == "power_w has no rows yet"
    own_loss = np.linspace(12, 9.5, 30)
    write_run(run, first_step=31, train_loss=own_loss, power_w=np.full(20, 150.0))
    own = now("mine", "--rules", mine)  # the rows of the loss that run ahead are not looked at
    assert (own["state"], own["step"], own["severity"]) == ("fired", 50, "critical")
    assert [c["text"] for c in own["comparisons"]] == [
        "last(smooth_loss) > 2",
        "last(power_w) > 100",
    ]
    assert own["comparisons"][0]["sides"][0] == [pytest.approx(np.mean(own_loss[10:20]))]
    assert own["comparisons"][1]["sides"] == [[150.0], [100.0]]
    text = call("explain", "gradient-explosion", "--run", run, "--lang", "zh").stdout
    assert "rank 0，第 20 步：条件不成立\n" in text
    assert "`last(grad_norm) > 50`：1.5 | 50：条件不成立" in text
    text = call("explain", "nonfinite-eval", "--run", run).stdout
    assert "the run has no row of these series" in text
