"""Writes the page of the shipped rules, in one language, from the catalogue of messages.

python -m mindpulse.rules.page zh > docs/rules.zh-CN.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from mindpulse.messages import request_text, rule_text, text
from mindpulse.rules.load import load_rules
from mindpulse.rules.rule import Rule

_HEADS = {
    "en": (
        "# The rules that ship\n",
        "Written by `python -m mindpulse.rules.page en`; the language is explained in rules.md.\n",
    ),
    "zh": (
        "# 内置规则\n",
        "本页由 `python -m mindpulse.rules.page zh` 从消息目录生成；"
        "规则语言的语法与函数见 [rules.md](rules.md)。\n",
    ),
}
_LABELS = {
    "en": ("What", "Condition", "For", "steps", "Likely causes", "What to do", "Action", "if"),
    "zh": ("含义", "条件", "持续", "步", "可能原因", "处理建议", "动作", "且"),
}


def page(lang: str) -> str:
    """The whole page as Markdown.

    Example:
        >>> page("zh").splitlines()[0]
        '# 内置规则'
    """
    parts = [*_HEADS[lang], *(_paragraph(rule, lang) for rule in load_rules())]
    return "\n".join(parts)


def _paragraph(rule: Rule, lang: str) -> str:
    return "\n".join(_lines(rule, lang)) + "\n"


def _lines(rule: Rule, lang: str) -> Iterator[str]:
    what, condition, lasting, steps, causes, next_steps, action, also = _LABELS[lang]
    yield f"## {rule.name} ({text(f'severity.{rule.severity}', lang)})\n"
    yield f"- **{what}**: {rule_text(rule.name, 'summary', lang)}"
    yield f"- **{condition}**: `{rule.expression.text}`"
    if rule.for_steps > 1:
        yield f"- **{lasting}**: {rule.for_steps} {steps}"
    yield f"- **{causes}**: {rule_text(rule.name, 'causes', lang)}"
    yield f"- **{next_steps}**: {rule_text(rule.name, 'next', lang)}"
    if rule.action:
        also_when = f", {also} `{rule.action.when.text}`" if rule.action.when else ""
        words = request_text(rule.action.request, rule.action.args, lang)
        yield f"- **{action}**: {words}{also_when}"


if __name__ == "__main__":
    sys.stdout.write(page(sys.argv[1] if len(sys.argv) > 1 else "en"))
