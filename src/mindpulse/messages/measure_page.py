"""Writes the page of the measures, in one language, from the catalogue and its texts.

python -m mindpulse.messages.measure_page zh > docs/measures.zh-CN.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.resources import files

from mindpulse.catalogue import FAMILIES, MEASURES, Measure
from mindpulse.catalogue.attention import MASKED_BY
from mindpulse.catalogue.histogram import HISTOGRAM_LABELS
from mindpulse.catalogue.selection import CHEAP_INTERVAL, DEAR_INTERVAL
from mindpulse.messages import LANGUAGES, measure_text
from mindpulse.messages.measure_page_texts import (
    COLUMN_TEXTS,
    LABELS,
    PLACE_TEXTS,
    REDUCTION_TEXTS,
)
from mindpulse.messages.measure_texts import FAMILY_TEXTS


def page(lang: str) -> str:
    """The whole page as Markdown: the prose of `measure_page.LANG.md`, filled in.

    Example:
        >>> page("zh").splitlines()[0]
        '# 指标'
    """
    prose = files("mindpulse.messages").joinpath(f"measure_page.{lang}.md").read_text("utf-8")
    number = LANGUAGES.index(lang)
    zero, first, second, *_, before_last, last = HISTOGRAM_LABELS
    return prose.format(
        families="\n".join(_families(number)),
        places="\n".join(_places(number)),
        measures="\n".join(_measures(lang)).rstrip(),
        dear=DEAR_INTERVAL,
        masked=f"{-MASKED_BY:g}",
        zero=zero,
        first=first,
        second=second,
        before_last=before_last,
        last=last,
    )


def _families(number: int) -> Iterator[str]:
    yield f"| {LABELS['family'][number]} | {LABELS['measures'][number]} |"
    yield "|---|---|"
    for family in FAMILIES:
        tags = " ".join(_code(measure.tag) for measure in _of(family))
        yield f"| {FAMILY_TEXTS[family][number]} ({_code(family)}) | {tags} |"


def _places(number: int) -> Iterator[str]:
    yield f"| `place` | {LABELS['looked'][number]} | {LABELS['own'][number]} |"
    yield "|---|---|---|"
    for place, (what, own) in PLACE_TEXTS.items():
        yield f"| {_code(place)} | {what[number]} | {_code(own)} |"


def _measures(lang: str) -> Iterator[str]:
    for family in FAMILIES:
        yield f"## {FAMILY_TEXTS[family][LANGUAGES.index(lang)]}\n"
        for measure in _of(family):
            yield from _lines(measure, lang)
            yield ""


def _lines(measure: Measure, lang: str) -> Iterator[str]:
    number = LANGUAGES.index(lang)
    colon, semicolon = ((": ", "; "), ("：", "；"))[number]
    level = f"{LABELS['selection'][number]} {_code(measure.level)}"
    beside = measure.place == "watcher"
    yield f"### {measure.tag}\n"
    for label, words in (
        ("tells", measure_text(measure.tag, "tells", lang)),
        ("formula", measure_text(measure.tag, "formula", lang)),
        ("unit", measure.unit),
        ("columns", COLUMN_TEXTS[measure.axes][number]),
        ("place", PLACE_TEXTS[measure.place][0][number]),
        ("reduction", REDUCTION_TEXTS[measure.reduction][number]),
        ("within", "" if beside else REDUCTION_TEXTS[measure.within][number]),
        ("interval", _interval(measure, number) + ("" if beside else f"{semicolon}{level}")),
        ("source", measure_text(measure.tag, "source", lang)),
    ):
        if words:
            yield f"- **{LABELS[label][number]}**{colon}{words}"


def _interval(measure: Measure, number: int) -> str:
    if measure.place == "watcher":
        return LABELS["watched" if measure.tag.startswith("npu_") else "profiled"][number]
    steps = CHEAP_INTERVAL if measure.cost == "cheap" else DEAR_INTERVAL
    return LABELS["each" if steps == 1 else "every"][number].format(steps=steps)


def _of(family: str) -> list[Measure]:
    return [measure for measure in MEASURES.values() if measure.family == family]


def _code(words: str) -> str:
    return f"`{words}`" if words else ""


if __name__ == "__main__":
    sys.stdout.write(page(sys.argv[1] if len(sys.argv) > 1 else "en"))
