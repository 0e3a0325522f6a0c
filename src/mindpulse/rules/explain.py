"""What a rule means: its parts as data, the same in words, and what it says of a run right now."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mindpulse.catalogue import MEASURES
from mindpulse.messages import measure_text, request_text, rule_text, text
from mindpulse.messages.rules_texts import FUNCTION_TEXTS
from mindpulse.rules.compiler import compile_expression, compile_number
from mindpulse.rules.derived import Record
from mindpulse.rules.expression import FIRED, Expression
from mindpulse.rules.functions import documentation
from mindpulse.rules.rule import Action, Rule
from mindpulse.rules.running import ViewLike
from mindpulse.rules.single import Run

Told = dict[str, Any]


def explain(rule: Rule, lang: str = "en") -> Told:
    """All that a rule says, as an object that JSON can hold.

    Example:
        >>> from mindpulse.rules.load import load_rules
        >>> rule = next(rule for rule in load_rules() if rule.name == "gradient-explosion")
        >>> explain(rule)["series"]
        {'grad_norm': 1}
    """
    return {
        "name": rule.name,
        "summary": rule_text(rule.name, "summary", lang, rule.texts),
        "condition": rule.expression.text,
        "for_steps": rule.for_steps,
        "severity": rule.severity,
        "worse": {severity: expression.text for severity, expression in rule.worse},
        "part": rule.part,
        "group": rule.group,
        "inhibits": list(rule.inhibits),
        "hold_steps": rule.hold_steps,
        "cooldown_steps": rule.cooldown_steps,
        "why": rule_text(rule.name, "why", lang),
        "causes": rule_text(rule.name, "causes", lang),
        "next": rule_text(rule.name, "next", lang),
        "action": _action(rule.action, lang) if rule.action else None,
        "series": dict(rule.needs),
        "derived": {
            record.name: {"expr": record.expression.text, "unit": record.unit}
            for expression in rule.expressions
            for record in derived_series(expression)
        },
        "functions": {name: function_text(name, lang) for name in _functions(rule)},
    }


def _action(action: Action, lang: str) -> Told:
    return {
        "request": action.request,
        "args": dict(action.args),
        "words": request_text(action.request, action.args, lang),
        "when": action.when.text if action.when else None,
        "at_most": action.at_most,
    }


def derived_series(expression: Expression) -> Iterator[Record]:
    """The derived series behind an expression, those first that others read."""
    for window in expression.windows:
        if isinstance(window.record, Record):
            yield from derived_series(window.record.expression)
            yield window.record


def _functions(rule: Rule) -> list[str]:
    texts = [e.text for e in rule.expressions]
    texts += [record.expression.text for e in rule.expressions for record in derived_series(e)]
    nodes = [node for text in texts for node in ast.walk(ast.parse(text, mode="eval"))]
    called = {n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    return [name for name in documentation() if name in called]


def function_text(name: str, lang: str = "en") -> str:
    """What a function of the language does.

    Example:
        >>> function_text("median"), function_text("median", "zh")
        ('median', '中位数')
    """
    return documentation()[name] if lang == "en" else FUNCTION_TEXTS[name]


def explanation_lines(told: Told, lang: str = "en") -> Iterator[tuple[str, str]]:
    """(label, words) of each thing to say about a rule; several in a row have the same label."""

    def word(key: str, **values: object) -> str:
        return text(f"rules.{key}", lang, **values)

    yield word("what"), told["summary"]
    yield word("condition"), f"`{' '.join(told['condition'].split())}`"
    if told["for_steps"] > 1:
        yield word("lasting"), word("steps", count=told["for_steps"])
    for severity, expression in told["worse"].items():
        words = text(f"severity.{severity}", lang)
        yield word("worse"), word("worse_if", severity=words, expr=expression)
    yield (
        word("over"),
        word("over_after", hold=told["hold_steps"], cooldown=told["cooldown_steps"]),
    )
    for key in ("why", "causes", "next"):
        if told[key]:
            yield word(key), told[key]
    if told["action"]:
        yield word("action"), _action_words(told["action"], lang)
    if told["group"]:
        yield word("in_group"), told["group"]
    if told["inhibits"]:
        yield word("inhibits"), ", ".join(told["inhibits"])
    for name, record in told["derived"].items():
        unit = f" ({record['unit']})" if record["unit"] else ""
        yield word("derived"), word("record", name=name, expr=record["expr"], unit=unit)


def _action_words(action: Told, lang: str) -> str:
    words = str(action["words"])
    if action["at_most"] is not None:
        words = text("rules.at_most", lang, request=words, count=action["at_most"])
    if action["when"]:
        when = " ".join(action["when"].split())
        words = text("rules.action_if", lang, request=words, when=when)
    return words


def reading_lines(told: Told, lang: str = "en") -> Iterator[tuple[str, str]]:
    """(label, words) of each series that a rule reads and each function that it calls."""
    for tag, rows in told["series"].items():
        tells = measure_text(tag, "tells", lang) if tag in MEASURES else ""
        tells = text("rules.tells", lang, words=tells) if tells else ""
        words = text("rules.reads_rows", lang, tag=tag, rows=f"{rows:,}", tells=tells)
        yield text("rules.reads", lang), words
    for name, words in told["functions"].items():
        yield text("rules.functions", lang), f"`{name}`: {words}"


def says_now(rule: Rule, view: ViewLike) -> Told:
    """What the rule says at the step of a view: state, reason, and each comparison in it.

    A comparison has its text, its state, and the values of its sides: one, or the smallest and the
    largest of several columns; NaN where it is not known.
    """
    verdict = rule.expression.evaluate(view)
    return {
        "step": view.step,
        "state": verdict.state,
        "severity": rule.severity_at(view) if verdict.state == FIRED else "",
        "reason": verdict.reason,
        "comparisons": list(_comparisons(rule.expression, view)),
    }


def _comparisons(expression: Expression, view: ViewLike) -> Iterator[Told]:
    records = {record.name: record for record in derived_series(expression)}
    for node in ast.walk(ast.parse(expression.text, mode="eval")):
        if isinstance(node, ast.Compare):
            text = ast.unparse(node)
            sides = [compile_number(ast.unparse(side), records)
                     for side in (node.left, *node.comparators)]  # fmt: skip
            yield {
                "text": text,
                "state": compile_expression(text, records).evaluate(view).state,
                "sides": [_range(side, view) for side in sides],
            }


def _range(expression: Expression, view: ViewLike) -> list[float]:
    with np.errstate(all="ignore"):
        values = expression.node(Run(view, expression))
    known = values[~np.isnan(values)]
    if not len(known):
        return [float("nan")]
    return [float(end) for end in dict.fromkeys((known.min(), known.max()))]


def now_lines(rank: int, told: Mapping[str, Any], lang: str = "en") -> Iterator[str]:
    """What `says_now` tells of a rank, a line for the rule and one for each comparison."""
    detail = f"; {told['reason']}" if told["reason"] else ""
    state = text(f"rules.state.{told['state']}", lang)
    yield text("rules.now_state", lang, rank=rank, step=told["step"], state=state, detail=detail)
    for one in told["comparisons"]:
        sides = [" .. ".join(f"{value:.4g}" for value in side) for side in one["sides"]]
        yield text(
            "rules.now_comparison",
            lang,
            text=one["text"],
            values=" | ".join(sides),
            state=text(f"rules.state.{one['state']}", lang),
        )
