"""Writes the page of the rules, in one language: the prose of `page.LANG.md`, filled in.

python -m mindpulse.rules.page en > docs/rules.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files

from mindpulse.messages import LANGUAGES, text
from mindpulse.messages.rules_texts import KEY_TEXTS, RECORD_KEY_TEXTS, Pair
from mindpulse.rules.derived import MAX_DEPTH as MAX_RECORDS_DEEP
from mindpulse.rules.explain import explain, explanation_lines, function_text
from mindpulse.rules.functions import REDUCERS, documentation
from mindpulse.rules.load import load_rules
from mindpulse.rules.references import MAX_ROWS, MAX_WORK
from mindpulse.rules.robust import WARM_UP
from mindpulse.rules.rule import Rule
from mindpulse.rules.running import MAX_WINDOW_VALUES
from mindpulse.rules.syntax import MAX_CHARACTERS, MAX_DEPTH, MAX_NODES
from mindpulse.rules.tables import MAX_BYTES, MAX_LINE


def page(lang: str) -> str:
    """The whole page as Markdown.

    Example:
        >>> page("zh").splitlines()[0]
        '# 规则'
    """
    prose = files("mindpulse.rules").joinpath(f"page.{lang}.md").read_text("utf-8")
    others = [name for name in documentation() if name not in REDUCERS]
    return prose.format(
        keys=_table(lang, ("key", "meaning", "default"), _keys(lang, KEY_TEXTS)),
        record_keys=_table(lang, ("key", "meaning", "default"), _keys(lang, RECORD_KEY_TEXTS)),
        reducers=_table(lang, ("function", "value_in_column"), _functions(lang, REDUCERS)),
        others=_table(lang, ("function", "value"), _functions(lang, others)),
        rules="\n".join(_paragraph(rule, lang) for rule in load_rules()).rstrip(),
        max_kib=MAX_BYTES // 1024,
        max_line=MAX_LINE,
        max_characters=MAX_CHARACTERS,
        max_nodes=MAX_NODES,
        max_depth=MAX_DEPTH,
        max_rows=MAX_ROWS,
        max_work=MAX_WORK,
        max_values=MAX_WINDOW_VALUES,
        max_records_deep=MAX_RECORDS_DEEP,
        warm_up=WARM_UP,
    )


def _keys(lang: str, texts: Mapping[str, tuple[Pair, Pair]]) -> Iterator[tuple[str, ...]]:
    number = LANGUAGES.index(lang)
    for key, (meaning, default) in texts.items():
        yield f"`{key}`", meaning[number], default[number]


def _functions(lang: str, names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    for name in names:
        yield f"`{name}`", function_text(name, lang)


def _table(lang: str, heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    head = tuple(text(f"rules.{key}", lang) for key in heads)
    lines = [head, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _paragraph(rule: Rule, lang: str) -> str:
    return "\n".join(_lines(rule, lang)) + "\n"


def _lines(rule: Rule, lang: str) -> Iterator[str]:
    colon = (": ", "：")[LANGUAGES.index(lang)]
    yield f"### {rule.name}\n"
    yield f"**{text(f'severity.{rule.severity}', lang)}**, `{rule.part}`\n"
    for label, words in explanation_lines(explain(rule, lang), lang):
        yield f"- **{label}**{colon}{words}"


if __name__ == "__main__":
    sys.stdout.write(page(sys.argv[1] if len(sys.argv) > 1 else "en"))
