"""Reading rule files: the shipped one, and the user's over it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from mindpulse.errors import RuleError
from mindpulse.rules.derived import Record
from mindpulse.rules.fields import shown
from mindpulse.rules.nearest import nearest
from mindpulse.rules.records import make_records
from mindpulse.rules.rule import Rule, read_rule
from mindpulse.rules.tables import Table, Tables, read_file, read_tables

SHIPPED = "shipped.toml"


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of one or two files.

    Attributes:
        rules: that are judged.
        records: the derived series that they may read, by name.
        problems: what is wrong; a rule with a problem is not among the rules.
        origins: by name of a rule "shipped", "changed" (shipped, and changed by the user), "own",
            or "disabled".
    """

    rules: tuple[Rule, ...]
    records: Mapping[str, Record] = field(default_factory=dict)
    problems: tuple[RuleError, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)


def load_rules(path: str | Path | None = None) -> tuple[Rule, ...]:
    """The shipped rules, changed and extended by those of a file.

    A rule of the file with the name of a shipped one changes only the keys that it gives;
    `disabled = true` takes it away.

    Raises:
        RuleError: the file cannot be read or a rule in it is wrong; names file, rule, character.

    Example:
        >>> "gradient-explosion" in [rule.name for rule in load_rules()]
        True
    """
    found = read_rules(path)
    if found.problems:
        raise found.problems[0]
    return found.rules


def read_rules(path: str | Path | None = None) -> RuleSet:
    """The same with all that is wrong, and where each rule comes from.

    Raises:
        RuleError: the file cannot be read at all.
    """
    own = Tables() if path is None else read_tables(read_file(Path(path)), str(path))
    return joined(shipped_tables(), own)


def shipped_tables() -> Tables:
    """The tables that ship."""
    text = files("mindpulse.rules").joinpath(SHIPPED).read_text(encoding="utf-8")
    return read_tables(text, SHIPPED)


def joined(shipped: Tables, own: Tables) -> RuleSet:
    """The rules of both, `own` over `shipped`."""
    records, problems = make_records({**shipped.of("record"), **own.of("record")})
    problems = [*shipped.problems, *own.problems, *problems]
    known, changes = shipped.of("rule"), own.of("rule")
    tables = dict(known)
    for name, table in changes.items():
        below = known[name].content if name in known else {}
        tables[name] = Table("rule", name, {**below, **table.content}, table.source, table.line)
    rules: dict[str, Rule] = {}
    origins: dict[str, str] = {}
    for name, table in tables.items():
        origins[name] = ("changed" if name in known else "own") if name in changes else "shipped"
        disabled = table.content.get("disabled", False)
        if disabled is True:
            origins[name] = "disabled"
            continue
        rule, wrong = read_rule(table.content, records)
        if not isinstance(disabled, bool):
            rule, wrong = (
                None,
                [*wrong, RuleError(f"disabled is {shown(disabled)}: want true or false")],
            )
        problems += [table.located(problem) for problem in wrong]
        if rule is not None:
            rules[name] = rule
    problems += [tables[name].located(error) for name, error in _inhibitions(rules, set(tables))]
    return RuleSet(tuple(rules.values()), records, tuple(problems), origins)


def _inhibitions(rules: Mapping[str, Rule], names: set[str]) -> Iterator[tuple[str, RuleError]]:
    """What is wrong with who silences whom."""
    groups = {rule.group for rule in rules.values() if rule.group}
    silences = {
        name: [n for n, other in rules.items() if {n, other.group} & set(rule.inhibits)]
        for name, rule in rules.items()
    }
    for name, rule in rules.items():
        for target in rule.inhibits:
            if target not in names | groups:
                hint = nearest(target, sorted(names | groups))
                yield name, RuleError(f"inhibits {target!r}: no rule or group of that name{hint}")
        if chain := _circle(name, silences):
            yield name, RuleError(f"rules silence each other in a circle: {' -> '.join(chain)}")


def _circle(name: str, silences: Mapping[str, list[str]]) -> list[str]:
    """The shortest way from a rule back to itself, [] if there is none."""
    ways = [[name]]
    seen: set[str] = set()
    for way in ways:
        for target in silences[way[-1]]:
            if target == name:
                return [*way, name]
            if target not in seen:
                seen.add(target)
                ways.append([*way, target])
    return []


def check_rules(rules: Iterable[Rule], known_tags: Iterable[str]) -> list[str]:
    """A sentence for each series that a rule reads and nobody writes in this run.

    Example:
        >>> rules = [rule for rule in load_rules() if rule.name == "gradient-explosion"]
        >>> check_rules(rules, ["train_loss", "grad_nrom"])[0][:51]
        "rule 'gradient-explosion': the series 'grad_norm' i"
    """
    known = sorted(known_tags)
    return [
        f"rule {rule.name!r}: the series {tag!r} is written by nobody in this run"
        f"{nearest(tag, known)}; the rule stays unknown"
        for rule in rules
        for tag in rule.needs
        if tag not in known
    ]
