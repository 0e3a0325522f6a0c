"""Every text exists in both languages and says the same things in both."""

from __future__ import annotations

import string

import pytest

from mindpulse.alerts import AlertEvent
from mindpulse.alerts.words import alert_text
from mindpulse.control.schema import STATUSES, VERBS
from mindpulse.errors import UsageError
from mindpulse.messages import CATALOGUE, LANGUAGES, request_text, rule_text, text
from mindpulse.rules.load import load_rules
from mindpulse.rules.rule import SEVERITIES


def placeholders(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


@pytest.mark.parametrize("key", sorted(CATALOGUE))
def test_both_languages_have_the_same_placeholders(key: str) -> None:
    english, chinese = CATALOGUE[key]
    assert english
    assert chinese
    assert placeholders(english) == placeholders(chinese)
    assert english.isascii()


@pytest.mark.parametrize("rule", [rule.name for rule in load_rules()])
def test_every_shipped_rule_explains_itself_in_both_languages(rule: str) -> None:
    for lang in LANGUAGES:
        for part in ("summary", "causes", "next"):
            assert rule_text(rule, part, lang)
    for part in ("summary", "causes", "next"):
        assert any(ord(character) > 0x4E00 for character in rule_text(rule, part, "zh"))


def test_every_severity_verb_and_status_has_its_words() -> None:
    for lang in LANGUAGES:
        assert all(text(f"severity.{severity}", lang) for severity in SEVERITIES)
        assert all(text(f"status.{status}", lang) for status in STATUSES)
        for verb, bounds in VERBS.items():
            assert request_text(verb, dict.fromkeys(bounds, 0.5), lang)


def test_a_users_rule_speaks_with_its_own_words() -> None:
    assert rule_text("mine", "summary", "zh", {"en": "too warm", "zh": "太热"}) == "太热"
    assert rule_text("mine", "summary", "zh", {"en": "too warm"}) == "too warm"
    assert rule_text("mine", "summary") == "the condition of your rule holds"
    assert rule_text("mine", "causes") == ""


def test_many_columns_are_counted_not_listed() -> None:
    columns = tuple(f"layer={n}" for n in range(12))
    event = AlertEvent("x", "mine", "firing", "error", "loss", 9, 9, 0.0, 0, 1, columns)
    assert alert_text(event).endswith("layer=3, layer=4 and 7 more")


def test_an_unknown_language_or_key_is_refused() -> None:
    with pytest.raises(UsageError, match="'de'"):
        text("verb.stop", "de")
    with pytest.raises(UsageError, match=r"no\.such"):
        text("no.such")
