"""What a rule is, beside its expression: how long, how serious, which part, what to ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mindpulse.control.schema import VERBS, check_args
from mindpulse.errors import RuleError, UsageError
from mindpulse.rules.compiler import compile_expression, nearest
from mindpulse.rules.expression import Expression

SEVERITIES = ("info", "warning", "error", "critical")
PARTS = ("attention", "gradient", "memory", "hardware", "loss", "numerics", "throughput")
MAX_STEPS = 1_000_000


@dataclass(frozen=True, slots=True)
class Action:
    """What to ask the training for while the rule's alert is firing.

    Attributes:
        request: the verb, see `control.schema.VERBS`.
        args: its arguments.
        when: a second condition that has to hold too before anything is asked, None for always.
        at_most: how often one alert may ask, None for as often as the run's budget allows.
    """

    request: str
    args: Mapping[str, float]
    when: Expression | None = None
    at_most: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as read from its table.

    Attributes:
        name: words joined by "-".
        expression: the condition.
        for_steps: how many steps it has to hold without a break before the alert fires.
        severity: info, warning, error or critical.
        part: the part of the health score that it belongs to.
        hold_steps: how many quiet steps resolve the alert.
        cooldown_steps: how many steps after that it cannot fire again.
        action: what to ask for, None for nothing.
        texts: own words of a user's rule by language, {} for a shipped one.
    """

    name: str
    expression: Expression
    for_steps: int = 1
    severity: str = "warning"
    part: str = "loss"
    hold_steps: int = 20
    cooldown_steps: int = 50
    action: Action | None = None
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def needs(self) -> dict[str, int]:
        """Rows that the rule and its action look back, by series."""
        needs = dict(self.expression.needs)
        if self.action and self.action.when:
            for tag, rows in self.action.when.needs.items():
                needs[tag] = max(rows, needs.get(tag, 0))
        return needs


KEYS = (
    "name",
    "expr",
    "for_steps",
    "severity",
    "part",
    "hold_steps",
    "cooldown_steps",
    "action",
    "summary",
    "summary_zh",
    "disabled",
)


def make_rule(table: Mapping[str, object]) -> Rule:
    """The rule that a table of a TOML file describes.

    Raises:
        RuleError: a key is unknown or missing, a value has a wrong type, the expression is wrong.

    Example:
        >>> make_rule({"name": "big", "expr": "last(grad_norm) > 9", "severity": "info"}).for_steps
        1
    """
    for key in table:
        if key not in KEYS:
            raise RuleError(f"unknown key {key!r}{nearest(key, KEYS)}; keys are {', '.join(KEYS)}")
    texts = {"en": _text(table, "summary", ""), "zh": _text(table, "summary_zh", "")}
    return Rule(
        name=_text(table, "name"),
        expression=compile_expression(_text(table, "expr")),
        for_steps=_whole(table, "for_steps", 1),
        severity=_one_of(table, "severity", SEVERITIES, "warning"),
        part=_one_of(table, "part", PARTS, "loss"),
        hold_steps=_whole(table, "hold_steps", 20),
        cooldown_steps=_whole(table, "cooldown_steps", 50),
        action=_action(table["action"]) if "action" in table else None,
        texts={language: text for language, text in texts.items() if text},
    )


def _action(table: object) -> Action:
    if not isinstance(table, dict) or not isinstance(table.get("request"), str):
        wanted = '{ request = "scale_lr", factor = 0.5 }'
        raise RuleError(f"action is {table!r}: want a table such as {wanted}")
    verb = table["request"]
    if verb not in VERBS:
        raise RuleError(f"no request {verb!r}{nearest(verb, VERBS)}; there are {', '.join(VERBS)}")
    when = compile_expression(_text(table, "when")) if "when" in table else None
    at_most = _whole(table, "at_most", 1) if "at_most" in table else None
    own = ("request", "when", "at_most")
    args = {key: value for key, value in table.items() if key not in own}
    try:
        return Action(verb, check_args(verb, args), when, at_most)
    except UsageError as error:
        raise RuleError(str(error)) from None


def _text(table: Mapping[str, object], key: str, default: str | None = None) -> str:
    value = table.get(key, default)
    if not isinstance(value, str) or (default is None and not value.strip()):
        raise RuleError(f"{key} is {value!r}: want a text" if key in table else f"{key} is missing")
    return value


def _whole(table: Mapping[str, object], key: str, default: int) -> int:
    value = table.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_STEPS:
        raise RuleError(f"{key} is {value!r}: want a whole number, 0 to {MAX_STEPS}")
    return value


def _one_of(table: Mapping[str, object], key: str, allowed: tuple[str, ...], default: str) -> str:
    value = table.get(key, default)
    if value not in allowed:
        raise RuleError(f"{key} is {value!r}: want one of {', '.join(allowed)}")
    return str(value)
