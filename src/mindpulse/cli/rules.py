"""`mindpulse rules`: what rules there are, whether a file of them is right, what one means."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from mindpulse.catalogue import MEASURES
from mindpulse.cli import options
from mindpulse.cli.group import EXIT_FINDINGS
from mindpulse.cli.output import console, print_json
from mindpulse.errors import RuleError, UsageError
from mindpulse.messages import text
from mindpulse.rules.explain import (
    explain,
    explanation_lines,
    now_lines,
    reading_lines,
    says_now,
)
from mindpulse.rules.load import RuleSet, load_rules, read_rules
from mindpulse.rules.nearest import nearest
from mindpulse.rules.rule import Rule

rule_file = click.argument("path", metavar="FILE", type=click.Path(path_type=Path))


@click.group("rules")
def command() -> None:
    """List, check, test and explain rules: those that ship, and your own.

    Each of these commands has --json and --lang.
    """


@command.command("list")
@options.rules
@options.lang
@options.as_json
def list_rules(rules_file: Path | None, lang: str, as_json: bool) -> None:
    """List the rules that ship, with yours over them."""
    found = read_rules(rules_file)
    _refuse(found)
    rows = [{**explain(rule, lang), "origin": found.origins[rule.name]} for rule in found.rules]
    disabled = [name for name, origin in found.origins.items() if origin == "disabled"]
    if as_json:
        records = {
            name: {"expr": record.expression.text, "unit": record.unit}
            for name, record in found.records.items()
        }
        print_json({"rules": rows, "disabled": disabled, "derived": records})
    else:
        _print_table(rows, disabled, lang)


def _refuse(found: RuleSet) -> None:
    if found.problems:
        raise RuleError("\n".join(str(problem) for problem in found.problems))


def _print_table(rows: Sequence[dict[str, Any]], disabled: Sequence[str], lang: str) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for key in ("name", "severity", "part", "for", "group", "origin", "says"):
        table.add_column(text(f"rules.{key}", lang), overflow="fold")
    for row in rows:
        table.add_row(
            escape(row["name"]),
            text(f"severity.{row['severity']}", lang),
            row["part"],
            str(row["for_steps"]),
            escape(row["group"]),
            text(f"rules.origin.{row['origin']}", lang),
            escape(row["summary"]),
        )
    out = console()
    out.print(table)
    if disabled:
        out.print(escape(f"{text('rules.origin.disabled', lang)}: {', '.join(disabled)}"))


@command.command("check")
@rule_file
@options.lang
@options.as_json
def check(path: Path, lang: str, as_json: bool) -> None:
    """Check a rule file: every mistake, with the line and the character.

    Exit code 1 says that there is a mistake.
    """
    found = read_rules(path)
    own = [rule for rule in found.rules if found.origins[rule.name] in ("own", "changed")]
    notes = [
        text("rules.check.unmeasured", lang, rule=rule.name, tag=tag, hint=nearest(tag, MEASURES))
        for rule in own
        for tag in rule.needs
        if tag not in MEASURES
    ]
    if as_json:
        problems = [
            {"message": p.message, "text": p.text, "column": p.column} for p in found.problems
        ]
        print_json({"path": str(path), "problems": problems, "notes": notes})
    else:
        for problem in found.problems:
            click.echo(str(problem))
        for note in notes:
            click.echo(note)
        click.echo(_conclusion(path, found, len(own), lang))
    if found.problems:
        click.get_current_context().exit(EXIT_FINDINGS)


def _conclusion(path: Path, found: RuleSet, own: int, lang: str) -> str:
    if found.problems:
        return text("rules.check.problems", lang, path=path, count=len(found.problems))
    return text("rules.check.fine", lang, path=path, rules=own, records=len(found.records))


@command.command("test")
@click.argument(
    "paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@options.rules
@options.lang
@options.as_json
def test(paths: Sequence[Path], rules_file: Path | None, lang: str, as_json: bool) -> None:
    """Judge the scenarios of files: series as text, and the alerts that are expected.

    Exit code 1 says that something went otherwise.
    """
    from mindpulse.testing.outcome import check_file

    rules = load_rules(rules_file) if rules_file else None
    outcomes = [(path, outcome) for path in paths for outcome in check_file(path, rules)]
    passed = sum(not outcome.failures for _, outcome in outcomes)
    if as_json:
        print_json(
            [
                {
                    "path": str(path),
                    "scenario": outcome.scenario,
                    "line": outcome.line,
                    "failures": list(outcome.failures),
                }
                for path, outcome in outcomes
            ]
        )
    else:
        for _, outcome in outcomes:
            key = "rules.test.failed" if outcome.failures else "rules.test.passed"
            click.echo(text(key, lang, scenario=outcome.scenario, line=outcome.line))
            for failure in outcome.failures:
                click.echo(f"        {failure}")
        click.echo(text("rules.test.total", lang, passed=passed, count=len(outcomes)))
    if passed < len(outcomes):
        click.get_current_context().exit(EXIT_FINDINGS)


@command.command("explain")
@click.argument("name", metavar="RULE")
@click.option(
    "--run",
    "run_dir",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A run: also tell what the rule says of its newest step.",
)
@options.rules
@options.lang
@options.as_json
def explain_rule(
    name: str, run_dir: Path | None, rules_file: Path | None, lang: str, as_json: bool
) -> None:
    """Explain a rule: condition, reasons, causes, next steps, and what it says of a run."""
    rules = {rule.name: rule for rule in load_rules(rules_file)}
    if name not in rules:
        raise UsageError(f"no rule {name!r}{nearest(name, rules)}; there are {', '.join(rules)}")
    rule = rules[name]
    told = explain(rule, lang)
    now = _now(rule, run_dir) if run_dir else None
    if as_json:
        print_json({**told, "now": now} if now is not None else told)
        return
    click.echo(f"{rule.name} ({text(f'severity.{rule.severity}', lang)}, {rule.part})")
    label_before = ""
    for label, words in (*explanation_lines(told, lang), *reading_lines(told, lang)):
        click.echo(f"{'' if label == label_before else label}\n    {words}".lstrip("\n"))
        label_before = label
    if now is not None:
        click.echo(text("rules.now", lang))
        lines = [line for row in now for line in now_lines(row["rank"], row, lang)]
        for line in lines or [text("rules.now_nothing", lang)]:
            click.echo(f"    {line}")


def _now(rule: Rule, run_dir: Path) -> list[dict[str, Any]]:
    """What the rule says of each rank."""
    from mindpulse.cli.newest import newest_views
    from mindpulse.interop import open_run

    views = newest_views(open_run(run_dir), rule)
    return [{"rank": view.rank, **says_now(rule, view)} for view in views]
