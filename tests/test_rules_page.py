"""The pages of the rules: written from the code, in both languages, and their examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mindpulse.errors import RuleError
from mindpulse.messages import LANGUAGES, rule_text
from mindpulse.messages.rules_texts import FUNCTION_TEXTS, KEY_TEXTS, RECORD_KEY_TEXTS
from mindpulse.rules.functions import documentation
from mindpulse.rules.load import load_rules, read_rules
from mindpulse.rules.page import page
from mindpulse.rules.records import RECORD_KEYS
from mindpulse.rules.rule import KEYS, PARTS
from mindpulse.testing.outcome import check_text

DOCS = Path(__file__).parent.parent / "docs"
FILES = {"en": DOCS / "rules.md", "zh": DOCS / "rules.zh-CN.md"}
RULES = load_rules()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_page_is_up_to_date(lang: str) -> None:
    assert FILES[lang].read_text(encoding="utf-8") == page(lang)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_shipped_rule_has_its_paragraph(lang: str) -> None:
    text = page(lang)
    for rule in RULES:
        _, found, rest = text.partition(f"\n### {rule.name}\n")
        assert found, rule.name
        paragraph = rest.partition("\n### ")[0]
        for expression in rule.expressions:
            assert f"`{' '.join(expression.text.split())}`" in paragraph, rule.name
        for part in ("summary", "why", "causes", "next"):
            words = rule_text(rule.name, part, lang)
            assert words, (rule.name, part)
            assert words in paragraph, (rule.name, part)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_function_key_and_part_is_documented(lang: str) -> None:
    text = page(lang)
    assert set(FUNCTION_TEXTS) == set(documentation())
    for name, meaning in documentation().items():
        meaning = meaning if lang == "en" else FUNCTION_TEXTS[name]
        assert f"| `{name}` | {meaning} |" in text
    assert set(KEY_TEXTS) == set(KEYS)
    assert set(RECORD_KEY_TEXTS) == set(RECORD_KEYS)
    for word in (*KEYS, *RECORD_KEYS, *PARTS):
        assert f"`{word}`" in text


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_examples_of_the_page_are_real(lang: str, tmp_path: Path) -> None:
    text = page(lang)
    examples = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 2
    (tmp_path / "my.toml").write_text("\n".join(examples), encoding="utf-8")
    assert "overfit-for-me" in [rule.name for rule in load_rules(tmp_path / "my.toml")]
    block = re.search(r"    scenario a norm.*?\n\n", text, re.DOTALL)
    assert block
    (outcome,) = check_text(block[0])
    assert outcome.failures == ()


def test_the_mistakes_that_the_page_shows_are_told_so(tmp_path: Path) -> None:
    shown = re.search(r"    my\.toml:1.*?0 to 1000000\n", page("en"), re.DOTALL)
    assert shown
    expr = "last(grad_norm) > 50 and lsat(train_loss) > 9"
    path = tmp_path / "my.toml"
    path.write_text(f'[[rule]]\nname = "a"\nexpr = "{expr}"\nfor_steps = -1\n')
    told = "\n".join(str(problem) for problem in read_rules(path).problems)
    assert told.replace(str(tmp_path), "").replace("/my", "my") == re.sub(
        "^    ", "", shown[0].rstrip(), flags=re.MULTILINE
    )
    with pytest.raises(RuleError, match="lsat"):
        load_rules(path)
