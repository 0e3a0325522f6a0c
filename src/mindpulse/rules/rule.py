"""What a rule is, beside its expression: how long, how serious, which part, what to ask for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from mindpulse.control.schema import VERBS, check_args
from mindpulse.errors import RuleError, UsageError
from mindpulse.rules.compiler import compile_expression
from mindpulse.rules.derived import Record
from mindpulse.rules.expression import FIRED, Expression
from mindpulse.rules.fields import Fields, shown
from mindpulse.rules.nearest import nearest
from mindpulse.rules.running import ViewLike

SEVERITIES = ("info", "warning", "error", "critical")
PARTS = ("attention", "gradient", "memory", "hardware", "loss", "numerics", "throughput")
_GROUP = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\Z")


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
        group: rules of one group have one cause and ring once; "" for a rule of its own.
        inhibits: rules and groups that say nothing while this alert is firing.
        worse: higher severities with the condition of each, in rising order.
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
    group: str = ""
    inhibits: tuple[str, ...] = ()
    worse: tuple[tuple[str, Expression], ...] = ()

    @property
    def needs(self) -> dict[str, int]:
        """Rows that all its expressions look back, by series."""
        needs: dict[str, int] = {}
        for expression in self.expressions:
            for tag, rows in expression.needs.items():
                needs[tag] = max(rows, needs.get(tag, 0))
        return needs

    @property
    def expressions(self) -> Iterator[Expression]:
        """The condition, that of its action, and those of higher severities."""
        yield self.expression
        if self.action and self.action.when:
            yield self.action.when
        yield from (expression for _, expression in self.worse)

    def severity_at(self, view: ViewLike) -> str:
        """How severe it is at the view's step: the highest severity whose condition holds.

        Example:
            >>> from mindpulse.testing import view
            >>> rule = make_rule({"name": "big", "expr": "last(x) > 5", "severity": "warning",
            ...                   "worse": {"error": "last(x) > 50"}})
            >>> rule.severity_at(view(x=[9.0])), rule.severity_at(view(x=[99.0]))
            ('warning', 'error')
        """
        found = self.severity
        for severity, expression in self.worse:
            if expression.evaluate(view).state == FIRED:
                found = severity
        return found


KEYS = (
    "name",
    "expr",
    "for_steps",
    "severity",
    "part",
    "hold_steps",
    "cooldown_steps",
    "action",
    "worse",
    "group",
    "inhibits",
    "summary",
    "summary_zh",
    "disabled",
)
ACTION_KEYS = ("request", "when", "at_most")


def make_rule(table: Mapping[str, object], records: Mapping[str, Record] | None = None) -> Rule:
    """The rule that a table of a TOML file describes.

    Args:
        records: the derived series that it may read, by name.

    Raises:
        RuleError: a key is unknown or missing, a value has a wrong type, the expression is wrong.

    Example:
        >>> make_rule({"name": "big", "expr": "last(grad_norm) > 9", "severity": "info"}).for_steps
        1
    """
    rule, problems = read_rule(table, records)
    if rule is None:
        raise problems[0]
    return rule


def read_rule(
    table: Mapping[str, object], records: Mapping[str, Record] | None = None
) -> tuple[Rule | None, list[RuleError]]:
    """The rule of a table, None if something is wrong with it; and all that is wrong."""
    fields = Fields(table, KEYS)
    condition = partial(_condition, records or {})
    texts = {"en": fields.text("summary", ""), "zh": fields.text("summary_zh", "")}
    severity = fields.one_of("severity", SEVERITIES, "warning")
    name = fields.text("name")
    if "expr" not in table:
        fields.wrong("expr is missing")
    rule = Rule(
        name=name,
        expression=fields.make("expr", partial(condition, "expr"), _NEVER),
        for_steps=fields.whole("for_steps", 1),
        severity=severity,
        part=fields.one_of("part", PARTS, "loss"),
        hold_steps=fields.whole("hold_steps", 20),
        cooldown_steps=fields.whole("cooldown_steps", 50),
        action=fields.make("action", partial(_action, condition), None),
        texts={language: text for language, text in texts.items() if text},
        group=fields.make("group", _group, ""),
        inhibits=fields.texts("inhibits"),
        worse=fields.make("worse", partial(_worse, condition, severity), ()),
    )
    if rule.name in rule.inhibits or (rule.group and rule.group in rule.inhibits):
        fields.wrong(f"inhibits is {shown(list(rule.inhibits))}: a rule cannot silence itself")
    return (None if fields.problems else rule), fields.problems


_NEVER = compile_expression("1 < 0")
_Condition = Callable[[str, object], Expression]


def _condition(records: Mapping[str, Record], key: str, value: object) -> Expression:
    if not isinstance(value, str):
        raise RuleError(f"{key} is {shown(value)}: want a text")
    return compile_expression(value, records)


def _group(value: object) -> str:
    if not isinstance(value, str) or not _GROUP.match(value):
        raise RuleError(f'group is {shown(value)}: want small letters, for example "nan-loss"')
    return value


def _worse(
    condition: _Condition, severity: str, table: object
) -> tuple[tuple[str, Expression], ...]:
    higher = SEVERITIES[SEVERITIES.index(severity) + 1 :]
    if not isinstance(table, dict) or not set(table) <= set(higher):
        wanted = ", ".join(higher) or "nothing: it is the highest already"
        raise RuleError(
            f"worse is {shown(table)}: want a condition for a severity above {severity} ({wanted})"
        )
    return tuple((s, condition(f"worse.{s}", table[s])) for s in higher if s in table)


def _action(condition: _Condition, table: object) -> Action:
    if not isinstance(table, dict) or not isinstance(table.get("request"), str):
        wanted = '{ request = "scale_lr", factor = 0.5 }'
        raise RuleError(f"action is {shown(table)}: want a table such as {wanted}")
    verb = table["request"]
    if verb not in VERBS:
        raise RuleError(f"no request {verb!r}{nearest(verb, VERBS)}; there are {', '.join(VERBS)}")
    fields = Fields({key: table[key] for key in ACTION_KEYS if key in table}, ACTION_KEYS)
    at_most = fields.whole("at_most", 1) if "at_most" in table else None
    when = fields.make("when", partial(condition, "when"), None)
    if fields.problems:
        raise fields.problems[0]
    args = {key: value for key, value in table.items() if key not in ACTION_KEYS}
    for key, value in args.items():
        if isinstance(value, dict | list):
            raise RuleError(f"{key} is {shown(value)}: want a single value")
    try:
        return Action(verb, check_args(verb, args), when, at_most)
    except UsageError as error:
        raise RuleError(str(error)) from None
