"""docs/doctor.md is held to the code: each check, each rule it names; each finding has words."""

from __future__ import annotations

import re
from pathlib import Path

from mindpulse.catalogue import MEASURES
from mindpulse.messages import CATALOGUE
from mindpulse.rules.load import load_rules

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "doctor.md").read_text("utf-8")
SOURCES = {path: path.read_text() for path in (ROOT / "src/mindpulse/doctor").glob("*.py")}
CHECKS = {key[len("doctor.check.") :] for key in CATALOGUE if key.startswith("doctor.check.")}
PARTS = ("summary", "run", "env", "memory", "debug", "data")


def test_every_check_has_its_paragraph() -> None:
    sections = dict(re.findall(r"^### (\S+)\n(.+)$", PAGE, re.MULTILINE))
    assert set(sections) == CHECKS
    assert all(len(text) > 20 for text in sections.values())


def test_every_check_of_the_code_has_its_title() -> None:
    names = "|".join(PARTS)
    found = {
        name
        for text in SOURCES.values()
        for name in re.findall(rf'"((?:{names})\.[a-z_]+)"', text)
        if not name.endswith((".py", ".md"))
    }
    assert found <= CHECKS
    put_together = {f"env.{part}" for part in ("mindformers", "mindnlp")}
    assert CHECKS - found <= put_together


def test_every_finding_can_be_said_and_every_text_is_used() -> None:
    """A problem and what could not be told have a cure; what is ok needs none."""
    quoted = {name for text in SOURCES.values() for name in re.findall(r'"(\w+)"', text)}
    quoted |= {"run_monitor_error", "run_recorder_error"}  # put together of parts
    quoted |= {f"memory_{a}_{b}" for a in ("pool", "peaks") for b in ("fine", "fragmented")}
    said = {k.split(".")[1] for k in CATALOGUE if re.fullmatch(r"doctor\.\w+\.evidence", k)}
    assert said <= quoted
    cured = {k.split(".")[1] for k in CATALOGUE if re.fullmatch(r"doctor\.\w+\.cure", k)}
    assert cured - {"head"} <= said


def test_texts_are_in_both_languages() -> None:
    for key, (english, chinese) in CATALOGUE.items():
        if key.startswith("doctor.") and key.endswith((".evidence", ".cure")):
            bare = re.sub(r"\{\w+\}", "", chinese)
            assert english
            assert chinese == english or re.search(r"[\u4e00-\u9fff]", bare) or len(bare) < 30, key


def test_thirty_complaints_and_only_rules_and_measures_that_exist() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+?) \| (.+) \|$", PAGE, re.MULTILINE)
    assert [int(number) for number, *_ in rows] == list(range(1, 31))
    assert all("https://" in symptom for _, symptom, _ in rows)
    rules = {rule.name for rule in load_rules()}
    checks = CHECKS | {f"doctor {part}" for part in PARTS}
    commands = {"mindpulse query", "mindpulse export", "mindpulse compare", "stop"}
    for _, _, found in rows:
        for name in re.findall(r"`([^`]+)`", found):
            assert name in rules | set(MEASURES) | checks | commands, name


def test_the_code_of_the_page_runs(capsys: object) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "docs/doctor.md", "exec"), {})
