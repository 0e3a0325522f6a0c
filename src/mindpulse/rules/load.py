"""Reading rule files: the shipped one, and the user's over it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from mindpulse.errors import RuleError
from mindpulse.rules.compiler import nearest
from mindpulse.rules.rule import Rule, make_rule

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Table = dict[str, object]
SHIPPED = "shipped.toml"


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
    text = files("mindpulse.rules").joinpath(SHIPPED).read_text(encoding="utf-8")
    tables = _tables(text, SHIPPED)
    sources = dict.fromkeys(tables, SHIPPED)
    if path is not None:
        for name, table in _tables(_read(Path(path)), str(path)).items():
            tables[name] = {**tables.get(name, {}), **table}
            sources[name] = str(path)
    made = (_make(table, sources[name]) for name, table in tables.items())
    return tuple(rule for rule in made if rule is not None)


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


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise RuleError(
            f"{path}: {error.strerror}; give a TOML file with [[rule]] tables"
        ) from None
    except UnicodeDecodeError as error:
        raise RuleError(f"{path}: not UTF-8: {error}") from None


def _tables(text: str, source: str) -> dict[str, Table]:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RuleError(f"{source}: not TOML: {error}") from None
    rules = content.get("rule", [])
    if set(content) - {"rule"} or not isinstance(rules, list):
        raise RuleError(f"{source}: only [[rule]] tables are allowed, found {sorted(content)}")
    tables: dict[str, Table] = {}
    for position, table in enumerate(rules, start=1):
        name = table.get("name") if isinstance(table, dict) else None
        if not isinstance(name, str) or not name:
            raise RuleError(f"{source}: rule number {position} has no name")
        if name in tables:
            raise RuleError(f"{source}: two rules are called {name!r}; give one another name")
        tables[name] = table
    return tables


def _make(table: Table, source: str) -> Rule | None:
    disabled = table.get("disabled", False)
    try:
        if not isinstance(disabled, bool):
            raise RuleError(f"disabled is {disabled!r}: want true or false")
        return None if disabled else make_rule(table)
    except RuleError as error:
        message = f"{source}, rule {table['name']!r}: {error.message}"
        raise RuleError(message, error.text, error.column) from None
