"""The page of the measures is what the catalogue says now, in both languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mindpulse.catalogue import FAMILIES, MEASURES
from mindpulse.catalogue.measure import PLACES, WITHIN
from mindpulse.catalogue.user import AXES
from mindpulse.errors import UsageError
from mindpulse.messages import LANGUAGES, measure_text
from mindpulse.messages.measure_page import page
from mindpulse.messages.measure_page_texts import COLUMN_TEXTS, PLACE_TEXTS, REDUCTION_TEXTS
from mindpulse.messages.measure_texts import FAMILY_TEXTS, MEASURE_TEXTS, SOURCE_TEXTS
from mindpulse.series import REDUCTIONS

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {"en": "measures.md", "zh": "measures.zh-CN.md"}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_page_is_up_to_date(lang: str) -> None:
    assert (DOCS / PAGES[lang]).read_text("utf-8") == page(lang), (
        f"write it again: python -m mindpulse.messages.measure_page {lang} > docs/{PAGES[lang]}"
    )


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_measure_has_its_paragraph(lang: str) -> None:
    whole = page(lang)
    assert re.findall(r"^### (\w+)$", whole, re.MULTILINE) == list(MEASURES)
    assert not re.search(r"[{}]", whole)
    for measure in MEASURES.values():
        paragraph = whole.partition(f"\n### {measure.tag}\n")[2].partition("\n#")[0]
        assert (f"`{measure.level}`" in paragraph) == (measure.place != "watcher")
        assert measure_text(measure.tag, "formula", lang) in paragraph
        assert measure_text(measure.tag, "source", lang) in paragraph
        assert ("10" in paragraph.replace("arXiv", "")) or measure.cost == "cheap"


def test_the_texts_cover_the_catalogue_and_nothing_else() -> None:
    assert list(MEASURE_TEXTS) == list(MEASURES)
    assert list(FAMILY_TEXTS) == list(FAMILIES)
    assert set(PLACE_TEXTS) == set(PLACES)
    assert {place for place, (_, own) in PLACE_TEXTS.items() if own} == set(AXES)
    assert set(COLUMN_TEXTS) == {measure.axes for measure in MEASURES.values()}
    assert set(REDUCTION_TEXTS) == {*REDUCTIONS, *WITHIN}
    assert set(SOURCE_TEXTS) <= {measure.source for measure in MEASURES.values()}


@pytest.mark.parametrize("tag", MEASURES)
def test_every_measure_explains_itself_in_chinese(tag: str) -> None:
    tells, formula = (measure_text(tag, part, "zh") for part in ("tells", "formula"))
    assert any("\u4e00" <= character <= "\u9fff" for character in tells)
    assert formula
    assert measure_text(tag, "formula") == MEASURES[tag].formula


def test_the_correction_is_told() -> None:
    assert "not* fragmented" in page("en")
    assert "没有*碎片化" in page("zh")


def test_an_unknown_measure_has_no_text() -> None:
    with pytest.raises(UsageError, match="attn_fokus"):
        measure_text("attn_fokus", "tells")
