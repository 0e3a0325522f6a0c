"""Rule files: what they change, every mistake in them, bounds on them, and reading them again."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from mindpulse.errors import RuleError
from mindpulse.rules.load import check_rules, load_rules, read_rules
from mindpulse.rules.reload import RulesFile
from mindpulse.rules.rule import Rule, make_rule
from mindpulse.rules.tables import MAX_BYTES, MAX_TABLES
from mindpulse.testing import view

RULES = load_rules()


def write(folder: Path, text: str) -> Path:
    path = folder / "rules.toml"
    path.write_text(text, encoding="utf-8")
    return path


def find(rules: tuple[Rule, ...], name: str) -> Rule:
    return next(rule for rule in rules if rule.name == name)


def test_a_file_changes_extends_and_disables(tmp_path: Path) -> None:
    rules = load_rules(write(tmp_path, """
        [[rule]]
        name = "gradient-explosion"
        expr = "last(grad_norm) > 500"
        [[rule]]
        name = "step-time-outlier"
        disabled = true
        [[rule]]
        name = "mine"
        expr = "last(mine) > 1"
        summary = "too much"
        summary_zh = "太多"
    """))  # fmt: skip
    changed = find(rules, "gradient-explosion")
    assert changed.expression.text == "last(grad_norm) > 500"
    assert changed.severity == "error"
    assert changed.action is not None
    assert "step-time-outlier" not in [rule.name for rule in rules]
    assert find(rules, "mine").texts == {"en": "too much", "zh": "太多"}
    assert len(rules) == len(RULES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[rule]\n", "not TOML"),
        ("[rules]\n", "only [[rule]] and [[record]] tables"),
        ("rule = 3\n", "only [[rule]] and [[record]] tables"),
        ("[[rule]]\nexpr = 'last(x) > 1'\n", ":1: rule number 1 has no name"),
        ("[[rule]]\nname = 'a'\n", "rule 'a': expr is missing"),
        ("[[rule]]\nname = 'a'\nexpr = 3\n", "rule 'a': expr is 3: want a text"),
        ("[[rule]]\nname = 'a'\nexpr = 'lsat(x) > 1'\n", "rule 'a': no function 'lsat'; did you"),
        ("[[rule]]\nname = 'a'\nexpr = 'last(x) >'\n", "rule 'a': syntax"),
        (
            "[[rule]]\nname = 'a'\nexpr = 'last(x)>1'\nfor_step = 3\n",
            "'for_step'; did you mean 'for_",
        ),
        ("[[rule]]\nname = 'a'\nexpr = 'last(x)>1'\nfor_steps = -1\n", "for_steps is -1"),
        ("[[rule]]\nname = 'a'\nexpr = 'last(x)>1'\nfor_steps = true\n", "for_steps is True"),
        ("[[rule]]\nname = 'a'\nexpr = 'last(x)>1'\nseverity = 'bad'\n", "severity is 'bad'"),
        ("[[rule]]\nname = 'a'\nexpr = 'last(x)>1'\npart = 'bad'\n", "part is 'bad'"),
        ("[[rule]]\nname = 'a'\nexpr = 'last(x)>1'\ndisabled = 1\n", "disabled is 1"),
        ("[[rule]]\nname = 'a'\nexpr = 'last(x)>1'\naction = 'stop'\n", "action is 'stop'"),
        ("[[rule]]\nname = 'a'\nexpr = 'last(x)>1'\naction = {request = 'stp'}\n", "mean 'stop'"),
        ("[[rule]]\nname = 'a'\nexpr = 'last(x)>1'\naction = {request = 'scale_lr'}\n", "factor"),
        (
            "[[rule]]\nname = 'a'\nexpr = 'last(x)>1'\n"
            "action = {request = 'scale_lr', factor = 0.0}\n",
            "between 0 and 1000",
        ),
        (
            "[[rule]]\nname = 'a'\nexpr = 'last(x)>1'\naction = {request = 'stop', when = 'x'}\n",
            "has many rows",
        ),
        (
            "[[rule]]\nname = 'a'\nexpr = 'last(x)>1'\naction = {request = 'stop', at_most = -1}\n",
            "at_most is -1",
        ),
        ("[[rule]]\nname = 'a'\n[[rule]]\nname = 'a'\n", "two rules are called 'a'"),
    ],
)
def test_a_mistake_names_file_and_rule(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(RuleError) as caught:
        load_rules(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_a_missing_or_unreadable_file_is_a_rule_error(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="No such file"):
        load_rules(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(RuleError, match="not UTF-8"):
        load_rules(tmp_path / "bytes.toml")


def test_an_unknown_series_is_told_with_the_nearest_name() -> None:
    rules = [make_rule({"name": "a", "expr": "last(grad_nrom) > 1"})]
    assert check_rules(rules, ["grad_norm", "train_loss"]) == [
        "rule 'a': the series 'grad_nrom' is written by nobody in this run; "
        "did you mean 'grad_norm'?; the rule stays unknown"
    ]
    assert check_rules(rules, ["grad_nrom"]) == []


def test_all_mistakes_of_a_file_are_told_with_the_line_of_their_table(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """# mine
[[rule]]
name = "a"
expr = "last(x) > 1 and lsat(x) > 1"
for_steps = -1
prt = "loss"
[[record]]
name = "mean"
expr = "last(x) > 1"
[[rule]]
name = "over-lines"
expr = '''
last(x) > 1
[[rule]]
'''
[[rule]]
name = "b"
expr = "last(x) > 1"
worse = { info = "last(x) > 2" }
inhibits = ["gradient-explosoin"]
[[rule]]
""",
    )
    told = [problem.message.replace(str(path), "F") for problem in read_rules(path).problems]
    starts = [
        "F:21: rule number 4 has no name",
        "F:7, record 'mean': a name has letters",
        "F:2, rule 'a': unknown key 'prt'; did you mean 'part'?",
        "F:2, rule 'a': no function 'lsat'; did you mean 'last'?",
        "F:2, rule 'a': for_steps is -1",
        "F:10, rule 'over-lines': a window has many rows",
        "F:16, rule 'b': worse is {'info': 'last(x) > 2'}: want a condition for a severity above",
    ]
    assert len(told) == len(starts)
    for message, start in zip(told, starts, strict=True):
        assert message.startswith(start), (message, start)
    assert read_rules(path).problems[3].column == 16


def rules_of(tmp_path: Path, **tables: str) -> list[str]:
    """What is wrong with rules that have these lines beside name and expr."""
    text = "".join(
        f"[[rule]]\nname = '{name}'\nexpr = 'last(x) > 1'\n{lines}\n"
        for name, lines in tables.items()
    )
    return [problem.message for problem in read_rules(write(tmp_path, text)).problems]


def test_groups_and_inhibitions_are_read(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        [[rule]]
        name = "a"
        expr = "last(x) > 1"
        group = "lost-loss"
        inhibits = ["b", "gradient"]
        [[rule]]
        name = "b"
        expr = "last(x) > 2"
        [[rule]]
        name = "gradient-spike"
        group = "gradient"
    """,
    )
    rules = load_rules(path)
    assert find(rules, "a").group == "lost-loss"
    assert find(rules, "a").inhibits == ("b", "gradient")
    assert find(rules, "gradient-spike").group == "gradient"


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"a": "group = 'A b'"}, "group is 'A b': want small letters"),
        ({"a": "group = 3"}, "group is 3"),
        ({"a": "inhibits = 3"}, "inhibits is 3: want a list of names"),
        ({"a": "inhibits = 'nonfinite'"}, "inhibits is 'nonfinite': want a list of names"),
        ({"a": "inhibits = ['']"}, "inhibits is ['']"),
        ({"a": "inhibits = ['a']"}, "cannot silence itself"),
        ({"a": "group = 'g'\ninhibits = ['g']"}, "cannot silence itself"),
        ({"a": "inhibits = ['nonfinit']"}, "no rule or group of that name; did you mean 'nonfini"),
        ({"a": "inhibits = ['b']", "b": "inhibits = ['a']"}, "in a circle: a -> b -> a"),
        (
            {"a": "inhibits = ['g']", "b": "group = 'g'\ninhibits = ['c']", "c": "inhibits=['a']"},
            "in a circle: a -> b -> c -> a",
        ),
        ({"a": "worse = { fatal = 'last(x) > 2' }"}, "above warning (error, critical)"),
        ({"a": "worse = 'last(x) > 2'"}, "want a condition for a severity above warning"),
        ({"a": "severity = 'critical'\nworse = { error = 'last(x) > 2' }"}, "the highest already"),
        ({"a": "worse = { error = 'last(x)' }"}, "a condition is wanted"),
        ({"a": "worse = { error = 2 }"}, "worse.error is 2: want a text"),
    ],
)
def test_a_wrong_group_inhibition_or_severity_is_refused(
    tmp_path: Path, tables: dict[str, str], message: str
) -> None:
    told = rules_of(tmp_path, **tables)
    assert any(message in one for one in told), told


def test_a_rule_may_silence_one_that_the_user_took_away(tmp_path: Path) -> None:
    lines = "inhibits = ['gradient-spike']\n[[rule]]\nname='gradient-spike'\ndisabled=true"
    assert rules_of(tmp_path, a=lines) == []


def test_the_severity_is_that_of_the_worst_condition_that_holds() -> None:
    rule = make_rule(
        {
            "name": "a",
            "expr": "last(x) > 1",
            "severity": "info",
            "worse": {"critical": "last(x) > 100", "warning": "last(x) > 10"},
        }
    )
    found = [rule.severity_at(view(x=[value])) for value in (2.0, 20.0, 200.0, float("nan"))]
    assert found == ["info", "warning", "critical", "info"]
    assert dict(rule.needs) == {"x": 1}


# Derived series in files.


def test_derived_series_of_a_file_are_read_in_any_order(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        [[rule]]
        name = "a"
        expr = "last(fast) > last(slow)"
        [[record]]
        name = "fast"
        expr = "last(slow) * 2"
        unit = "nats"
        [[record]]
        name = "slow"
        expr = "mean(train_loss[10])"
    """,
    )
    found = read_rules(path)
    assert found.problems == ()
    assert list(found.records) == ["slow", "fast"]
    assert found.records["fast"].unit == "nats"
    assert dict(find(found.rules, "a").needs) == {"train_loss": 10}
    assert find(found.rules, "a").expression.evaluate(view(train_loss=range(1, 12))).columns


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ({"a": "last(b)", "b": "last(c)", "c": "last(a)"}, "in a circle: a -> b -> c -> a"),
        ({"a": "last(a)"}, "in a circle: a -> a"),
        ({"mean": "last(x)"}, "is no function of the language"),
        ({"step": "last(x)"}, "is no function of the language"),
        ({"grad_norm": "last(x)"}, "grad_norm is a series that is measured"),
        ({"a": "last(x) > 1"}, "a number is wanted"),
        ({"a": "1 + 1"}, "has to read a series"),
        ({"a": "last(x"}, "was never closed"),
    ],
)
def test_a_wrong_derived_series_is_refused(
    tmp_path: Path, records: dict[str, str], message: str
) -> None:
    text = "".join(f"[[record]]\nname = '{n}'\nexpr = '{e}'\n" for n, e in records.items())
    told = [problem.message for problem in read_rules(write(tmp_path, text)).problems]
    assert any(message in one for one in told), told


# Bounds: a file may be hostile.


ONE = "[[rule]]\nname = 'a'\nexpr = 'last(x) > 1'\n"
# kind -> (text, what is said of it)
BOMBS = {
    "large": (("# " + "a" * 1000 + "\n") * (MAX_BYTES // 1000), "more than 262,144 bytes"),
    "long line": ("x = '" + "a" * 100_000 + "'", ":1: a line of 100,006 characters"),
    "deep": ("x = " + "[" * 990 + "]" * 990, "brackets more than 30 deep"),
    "deep over lines": ("x = " + "[\n" * 50_000, "brackets more than 30 deep"),
    "deep tables": ("x = " + "{a=" * 450, "brackets more than 30 deep"),
    "dotted": ("a" + ".a" * 990 + " = 1", "only [[rule]] and [[record]] tables"),
    "dotted again": (
        "\n".join(f"b{n}" + ".a" * 990 + " = 1" for n in range(130)),
        "only [[rule]] and [[record]] tables",
    ),
    "deep value": (ONE + "action" + ".a" * 980 + " = 1", "action is {'a': {'a': {'a': {...}}}}"),
    "deep argument": (ONE + "action.request = 'stop'\naction.x" + ".a" * 980 + " = 1", "x is {"),
    "deep flag": (ONE + "disabled" + ".a" * 980 + " = 1", "disabled is {"),
    "deep name": ("[[rule]]\nname" + ".a" * 980 + " = 1", "rule number 1 has no name"),
    "deep severity": (ONE + "severity" + ".a" * 980 + " = 1", "severity is {"),
    "huge argument": (
        ONE + "action = { request = 'scale_lr', factor = " + "9" * 1500 + " }",
        "want a number between 0 and 1000",
    ),
    "many": (ONE * (MAX_TABLES + 1), "1,001 tables; at most 1,000"),
    "huge number": (ONE + "for_steps = " + "9" * 1500, "want a whole number, 0 to 1000000"),
    "infinity": (ONE + "for_steps = inf", "for_steps is inf"),
    "quotes": ("x = " + "\"\"\"'''\n" * 30_000, "not TOML"),
    "brackets in texts": (ONE + "summary = '" + "[" * 500 + "'\nfor_steps = -1", "for_steps is -1"),
    "date": ("[[rule]]\nname = 2026-01-01", "rule number 1 has no name"),
    "chain": (
        "".join(f"[[record]]\nname = 'r{n}'\nexpr = 'last(r{n + 1})'\n" for n in range(990)),
        "more than 8 deep",
    ),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_hostile_file_is_refused_quickly_and_in_few_words(tmp_path: Path, kind: str) -> None:
    text, message = BOMBS[kind]
    path = write(tmp_path, text)
    begin = time.process_time()
    with pytest.raises(RuleError) as caught:
        load_rules(path)
    assert time.process_time() - begin < 10.0  # seconds, where hours were possible
    assert message in str(caught.value)
    assert len(str(caught.value)) < 2500


# Reading a file again.


MINE = "[[rule]]\nname = 'mine'\nexpr = 'last(x) > {}'\n"


def change(path: Path, text: str) -> None:
    """Writes the file so that its entry differs, whatever the grain of the clock."""
    path.write_text(text, encoding="utf-8")
    stamp = path.stat()
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1_000_000_000))


def test_a_changed_file_is_read_again_and_the_rest_stays_the_same_object(tmp_path: Path) -> None:
    path = write(tmp_path, MINE.format(1))
    file = RulesFile(path)
    before = {rule.name: rule for rule in file.rules}
    assert [file.changed() for _ in range(3)] == [False] * 3
    change(path, MINE.format(2) + MINE.replace("mine", "more").format(3))
    assert [file.changed() for _ in range(3)] == [False, True, True]
    told = file.reload()
    assert (told.added, told.removed, told.changed, told.problem) == (("more",), (), ("mine",), "")
    assert find(file.rules, "mine").expression.text == "last(x) > 2"
    assert all(
        rule is before[rule.name] for rule in file.rules if rule.name in {r.name for r in RULES}
    )
    assert [file.changed() for _ in range(2)] == [False, False]
    change(path, "")
    assert file.reload().removed == ("mine", "more")


def test_a_broken_file_keeps_the_rules_and_is_told_once(tmp_path: Path) -> None:
    path = write(tmp_path, MINE.format(1))
    file = RulesFile(path)
    before = file.rules
    change(path, MINE.format("") + "for_steps = -1\n")
    told = file.reload()
    assert "syntax" in told.problem
    assert "for_steps is -1" in told.problem
    assert (told.added, told.removed, told.changed) == ((), (), ())
    assert file.rules is before
    assert file.reload().problem == ""
    change(path, MINE.format(5))
    assert file.reload().changed == ("mine",)
    change(path, MINE.format("") + "for_steps = -1\n")
    assert file.reload().problem != ""


def test_a_file_that_is_gone_keeps_the_rules_and_may_come_back(tmp_path: Path) -> None:
    path = write(tmp_path, MINE.format(1))
    file = RulesFile(path)
    path.unlink()
    assert [file.changed() for _ in range(2)] == [False, True]
    assert "No such file" in file.reload().problem
    assert file.changed() is False
    assert find(file.rules, "mine")
    change(path, MINE.format(7))
    assert [file.changed() for _ in range(2)] == [False, True]
    assert file.reload().changed == ("mine",)


def test_a_changed_derived_series_changes_the_rules_that_read_it(tmp_path: Path) -> None:
    record = "[[record]]\nname = 'm'\nexpr = 'mean(x[{}])'\n"
    path = write(tmp_path, MINE.replace("last(x)", "last(m)").format(1) + record.format(5))
    file = RulesFile(path)
    change(path, path.read_text() + "# nothing")
    assert file.reload().changed == ()
    change(path, MINE.replace("last(x)", "last(m)").format(1) + record.format(6))
    assert file.reload().changed == ("mine",)


def test_without_a_file_nothing_ever_changes() -> None:
    file = RulesFile()
    assert [rule.name for rule in file.rules] == [rule.name for rule in RULES]
    assert file.changed() is False


def test_a_file_that_is_wrong_at_the_beginning_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="syntax"):
        RulesFile(write(tmp_path, MINE.format("")))
