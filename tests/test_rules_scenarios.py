"""Scenarios: those of the shipped rules, the notation, and that a scenario can fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindpulse.alerts.judge import Judge
from mindpulse.errors import RuleError
from mindpulse.rules.load import load_rules
from mindpulse.rules.rule import make_rule
from mindpulse.testing.outcome import check, check_file, check_text
from mindpulse.testing.scenario import Scenario, parse_scenarios, read_scenarios
from mindpulse.testing.values import MAX_VALUES, read_values

FOLDER = Path(__file__).parent / "scenarios"
RULES = load_rules()
NAMES = [rule.name for rule in RULES]
BIG = [make_rule({"name": "big", "expr": "last(x) > 5", "hold_steps": 2, "severity": "warning",
                  "worse": {"error": "last(x) > 50"}})]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_scenarios_of_a_shipped_rule(name: str) -> None:
    outcomes = check_file(FOLDER / f"{name}.scenario", RULES)
    assert [outcome for outcome in outcomes if outcome.failures] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_rule_has_scenarios_in_which_it_rings_is_quiet_and_is_unknown(name: str) -> None:
    scenarios = read_scenarios(FOLDER / f"{name}.scenario").scenarios
    assert all(name in scenario.rules for scenario in scenarios)
    wanted = [{e.what for e in s.expected if e.rule == name} for s in scenarios]
    assert any("firing" in what for what in wanted)
    assert any("firing" not in what and "unknown" not in what for what in wanted)
    assert any("unknown" in what for what in wanted)


def test_there_is_no_scenario_of_a_rule_that_does_not_exist() -> None:
    assert {path.stem for path in FOLDER.glob("*.scenario")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_scenarios_come_out_alike_step_by_step(name: str) -> None:
    for scenario in read_scenarios(FOLDER / f"{name}.scenario").scenarios:
        rules = [rule for rule in RULES if rule.name in scenario.rules]
        told = []
        for every_step in (False, True):
            judge = Judge(rules, every_step=every_step)
            told.append(repr(judge.feed(scenario.chunks) + judge.finish()))
        assert told[0] == told[1], scenario.name


# What a scenario says when it goes otherwise.


@pytest.mark.parametrize(
    ("lines", "failure"),
    [
        ("x: 1x3 9x2 1x5", "not expected: at 4: big firing warning"),
        ("x: 1x3 9 1x5\nat 4: big firing", "not expected: at 6: big resolved"),
        ("x: 1x9\nat 4: big firing error", "line 3: did not happen: at 4: big firing error"),
        ("x: 1x3 9\nat 4: big firing error", "line 3: did not happen: at 4: big firing error"),
        ("x: 1x3 9\nat 1..3: big firing", "line 3: did not happen: at 1..3: big firing"),
        ("x: 1x3\nat 2: big fired", "line 3: wanted at 2: big fired, it is quiet"),
        ("x: 1x3\nat 0: big quiet",
         "line 3: wanted at 0: big quiet, it is unknown (x has no rows yet)"),
        ("x rank 1: 9\nat 1: big firing", "line 3: did not happen: at 1: big firing"),
        ("x: [1 9]\nat 1: big firing where column=c0",
         "line 3: did not happen: at 1: big firing where column=c0"),
    ],
)  # fmt: skip
def test_what_goes_otherwise_is_told(lines: str, failure: str) -> None:
    (outcome,) = check_text(f"scenario s\n{lines}\n", BIG)
    assert failure in outcome.failures


@pytest.mark.parametrize(
    "lines",
    [
        "x: 1x3 90x2 1x5\nat 4: big firing error\nat 7: big resolved",
        "x: 1x3 9x2 1x5\nat 3..5: big firing warning\nat 7: big resolved warning\nat 5: big fired",
        "x rank 1: 9\nat 1: big firing rank 1",
        "x: [1 9]\nat 1: big firing where column=c1",
        "x layers 2 heads 2: [1*3 9]\nat 1: big firing where layer=1 head=1",
        "x columns a.0.w,a.1.w: [1 9]\nat 1: big firing where param=a.1.w",
        "x every 10 from 5: 1x2\n... 9 1x3\nat 25: big firing\nat 45: big resolved",
        "x: 1x3 9 1\nx attempt 2 from 5: 1x3\nat 4: big firing\nat 5: big resolved",
        "x attempt 2 from 5: 1x3\nx: 1x3 9 1\nat 4: big firing\nat 5: big resolved",
        "rules big\nx: 1x3 # nothing\n\n# rings\n",
    ],
)
def test_what_goes_as_expected_is_fine(lines: str) -> None:
    (outcome,) = check_text(f"scenario s\n{lines}\n", BIG)
    assert outcome.failures == ()


def test_a_file_names_its_rules(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text("[[rule]]\nname = 'mine'\nexpr = 'last(x) > 5'\n")
    path = tmp_path / "my.scenario"
    path.write_text("file my.toml\nscenario s\n x: 1x3 9\n at 4: mine firing\n")
    assert check_file(path)[0].failures == ()
    with pytest.raises(RuleError, match="scenario 's': no rule 'mine'"):
        check_file(path, RULES)


# The notation.


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("1x3 2", [[1], [1], [1], [2]]),
        ("9..3x4", [[9], [7], [5], [3]]),
        ("1+2x3 9-1x3", [[1], [3], [5], [9], [8], [7]]),
        ("-1e-3 +2.5 inf -inf", [[-0.001], [2.5], [np.inf], [-np.inf]]),
        ("1e+2x2 1+1e1x2", [[100], [100], [1], [11]]),
        ("[1 2*2]x2 5", [[1, 2, 2], [1, 2, 2], [5, 5, 5]]),
        ("[1..2 5]x2", [[1, 5], [2, 5]]),
        ("-1..-3x3", [[-1], [-2], [-3]]),
    ],
)
def test_values_stand_for_rows(text: str, rows: list[list[float]]) -> None:
    np.testing.assert_allclose(read_values(text, 0).table, rows)


def test_gaps_leave_steps_out() -> None:
    values = read_values("1 _x3 nan 2", 0)
    assert values.places.tolist() == [0, 4, 5]
    np.testing.assert_array_equal(values.table[:, 0], [1, np.nan, 2])


def test_noise_is_normal_and_the_same_each_time() -> None:
    (one, other) = (read_values("5~0.5x2000", 2).table for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert abs(one.mean() - 5) < 0.05
    assert abs(one.std() - 0.5) < 0.03
    assert abs(np.corrcoef(one.T)[0, 1]) < 0.1
    assert not np.array_equal(one, read_values("5~0.5x2000", 2, (1,)).table)


def scenario_of(line: str) -> Scenario:
    return parse_scenarios(f"scenario s\n{line}\n", "my.scenario").scenarios[0]


@pytest.mark.parametrize(
    ("line", "message", "at"),
    [
        ("x: 1x3 2y", "not in the notation", "2y"),
        ("x: 1x0", "a count of 0", "1x0"),
        ("x: 1x9999999", "a count of 9999999", "1x9999999"),
        ("x: [1 2]x3 [1 2 3]", "2 columns, where there are 3", "[1 2]"),
        ("x columns 2: [1 2 3]", "3 columns, where there are 2", "[1 2 3]"),
        ("x: []x3", "no column", "]"),
        ("x: [1 b]", "not a column", "b]"),
        ("x:", "has no row", "x"),
        ("x: _x5", "has no row", "x"),
        ("x evry 10: 1", "'evry': want every N", "evry"),
        ("x every: 1", "'every': want", "every"),
        ("x every ten: 1", "every 'ten': want a whole number", "x"),
        ("x every 10 every 5: 1", "each once", "every 5"),
        ("x layers 100000 heads 100000: 1", "at most", "x"),
        ("x columns 100000: 1x1000", "at most 2,000,000 values", "1x1000"),
        ("at 5 big firing", "want `at STEP: RULE firing`", "at"),
        ("at 5: big frying", "'frying': want one of firing, resolved", "frying"),
        ("at 5: big firing fatal", "'fatal': want one of info", "fatal"),
        ("at 5: big quiet error", "'error': want one of info", "error"),
        ("at 5..2: big firing", "A below B", "at"),
        ("at 2..5: big quiet", "want one step", "at"),
        ("hello", "want a series", "hello"),
        (": 1x3", "want the name of a series", ":"),
    ],
)
def test_a_wrong_line_is_told_with_its_number_and_character(
    line: str, message: str, at: str
) -> None:
    with pytest.raises(RuleError) as caught:
        scenario_of(line)
    assert caught.value.message.startswith("my.scenario:2: ")
    assert message in caught.value.message
    assert caught.value.text == line
    assert caught.value.column == line.index(at)


def test_before_the_first_scenario_there_is_only_the_name_of_a_file() -> None:
    with pytest.raises(RuleError, match="before the first scenario"):
        parse_scenarios("x: 1\n")
    with pytest.raises(RuleError, match="needs a name"):
        parse_scenarios("scenario\n")


def test_an_expectation_of_an_unknown_rule_is_refused() -> None:
    with pytest.raises(RuleError, match="no rule 'bgi'; did you mean 'big'"):
        check(scenario_of("x: 1\nat 1: bgi firing"), BIG)


PIECES = [
    *("1", "x3", "9..3", "+2", "~0.1", "nan", "[", "]", "*2", " ", "_", "x", "at 3: ", "big "),
    *("firing", "\n", "scenario s\n", "rules ", "every 2 ", ":", "...", "#", "where "),
]


def outcome_or_refusal(text: str) -> RuleError | None:
    try:
        assert check_text(text, BIG)
    except RuleError as error:
        return error
    return None


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_scenario_or_refused(text: str) -> None:
    error = outcome_or_refusal(f"scenario s\n{text}")
    assert error is None or 0 <= error.column <= len(error.text)


def test_a_large_scenario_is_refused_before_it_is_made() -> None:
    with pytest.raises(RuleError, match="at most"):
        read_values(f"[1*2]x{MAX_VALUES}", 0)
