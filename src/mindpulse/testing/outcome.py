"""Judges scenarios, and tells what went otherwise than expected.

Example:
    >>> text = "scenario calm\\n rules gradient-explosion\\n grad_norm: 1x50\\n"
    >>> [outcome.failures for outcome in check_text(text)]
    [()]
    >>> check_text(text.replace("1x50", "1x50 80"))[0].failures
    ('not expected: at 51: gradient-explosion firing error',)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mindpulse.alerts.judge import Judge
from mindpulse.alerts.life import FIRING, AlertEvent
from mindpulse.errors import RuleError
from mindpulse.rules.load import load_rules
from mindpulse.rules.nearest import nearest
from mindpulse.rules.rule import Rule
from mindpulse.testing.scenario import (
    EVENTS,
    Expected,
    Scenario,
    ScenarioFile,
    parse_scenarios,
    read_scenarios,
)
from mindpulse.window import Window


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a scenario.

    Attributes:
        failures: a sentence for each thing that went otherwise; () if all went as expected.
    """

    scenario: str
    line: int
    failures: tuple[str, ...] = ()


def check_file(path: Path | str, rules: Sequence[Rule] | None = None) -> list[Outcome]:
    """Judges the scenarios of a file.

    Args:
        rules: what to judge by; None for the rules that the file names, else those that ship.

    Raises:
        RuleError: the file or its rules cannot be read.
    """
    file = read_scenarios(path)
    if rules is None:
        wish = file.rules_file
        rules = load_rules(Path(path).parent / wish if wish else None)
    return [check(scenario, rules) for scenario in file.scenarios]


def check_text(text: str, rules: Sequence[Rule] | None = None) -> list[Outcome]:
    """Judges the scenarios of a text, by the shipped rules if no others are given."""
    file: ScenarioFile = parse_scenarios(text)
    judged_by = load_rules() if rules is None else rules
    return [check(scenario, judged_by) for scenario in file.scenarios]


def check(scenario: Scenario, rules: Sequence[Rule]) -> Outcome:
    """Judges one scenario.

    Raises:
        RuleError: it names a rule that does not exist.
    """
    by_name = {rule.name: rule for rule in rules}
    for name in (*scenario.rules, *(wanted.rule for wanted in scenario.expected)):
        if name not in by_name:
            hint = nearest(name, list(by_name))
            raise RuleError(f"scenario {scenario.name!r}: no rule {name!r}{hint}")
    looked_at = [r for r in rules if not scenario.rules or r.name in scenario.rules]
    judge = Judge(looked_at)
    events = judge.feed(scenario.chunks) + judge.finish()
    failures = [*_alerts(scenario.expected, events), *_states(scenario, by_name)]
    return Outcome(scenario.name, scenario.line, tuple(failures))


def _alerts(expected: Sequence[Expected], events: Sequence[AlertEvent]) -> Iterator[str]:
    left = list(events)
    for wanted in expected:
        if wanted.what not in EVENTS:
            continue
        found = next((event for event in left if _fits(wanted, event)), None)
        if found is None:
            yield f"line {wanted.line}: did not happen: {_wanted(wanted)}"
        else:
            left.remove(found)
    for event in left:
        yield f"not expected: {_told(event)}"


def _fits(wanted: Expected, event: AlertEvent) -> bool:
    return (
        (event.rule, event.state, event.rank) == (wanted.rule, wanted.what, wanted.rank)
        and wanted.first <= event.step <= wanted.last
        and wanted.severity in ("", event.severity)
        and (not wanted.where or wanted.where in event.columns)
    )


def _states(scenario: Scenario, rules: dict[str, Rule]) -> Iterator[str]:
    window = Window({})
    for chunk in scenario.chunks:
        window.extend(chunk)
    for wanted in scenario.expected:
        if wanted.what in EVENTS:
            continue
        view = window.view(wanted.first, wanted.rank)
        verdict = rules[wanted.rule].expression.evaluate(view)
        if verdict.state != wanted.what:
            why = f" ({verdict.reason})" if verdict.reason else ""
            yield f"line {wanted.line}: wanted {_wanted(wanted)}, it is {verdict.state}{why}"


def _wanted(wanted: Expected) -> str:
    steps = f"{wanted.first}..{wanted.last}" if wanted.last > wanted.first else str(wanted.first)
    parts = [f"at {steps}: {wanted.rule} {wanted.what}", wanted.severity]
    parts += [f"rank {wanted.rank}" if wanted.rank else ""]
    parts += [f"where {wanted.where}" if wanted.where else ""]
    return " ".join(part for part in parts if part)


def _told(event: AlertEvent) -> str:
    severity = f" {event.severity}" if event.state == FIRING else ""
    rank = f" rank {event.rank}" if event.rank else ""
    where = f" where {event.columns[0]}" if event.columns else ""
    return f"at {event.step}: {event.rule} {event.state}{severity}{rank}{where}"
