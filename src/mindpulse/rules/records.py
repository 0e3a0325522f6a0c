"""The derived series of a rule file: each compiled after those that it reads."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from mindpulse.catalogue import MEASURES
from mindpulse.errors import RuleError
from mindpulse.rules.compiler import compile_record
from mindpulse.rules.derived import MAX_DEPTH, Record
from mindpulse.rules.fields import Fields
from mindpulse.rules.references import is_name
from mindpulse.rules.syntax import parse
from mindpulse.rules.tables import Table

RECORD_KEYS = ("name", "expr", "unit")


def make_records(tables: Mapping[str, Table]) -> tuple[dict[str, Record], list[RuleError]]:
    """The derived series by name, in the order in which they can be computed; what is wrong.

    Example:
        >>> tables = {name: Table("record", name, {"name": name, "expr": expr}, "my.toml")
        ...           for name, expr in {"a": "last(b)", "b": "mean(a[3])"}.items()}
        >>> make_records(tables)[1][0].message
        "my.toml, record 'a': derived series read each other in a circle: a -> b -> a"
    """
    maker = _Maker(tables)
    for name in tables:
        maker.make(name, ())
    return maker.made, maker.problems


class _Maker:
    """Makes a record after what it reads."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = tables
        self._begun: set[str] = set()
        self.made: dict[str, Record] = {}
        self.problems: list[RuleError] = []

    def make(self, name: str, path: tuple[str, ...]) -> None:
        """Makes the record of that name, once; `path`: the records that are waiting for it."""
        table = self._tables[name]
        if name in path:
            chain = " -> ".join((*path[path.index(name) :], name))
            self._wrong(table, f"derived series read each other in a circle: {chain}")
            return
        if name in self._begun:
            return
        if len(path) > MAX_DEPTH:
            raise RuleError(f"derived series read one another, more than {MAX_DEPTH} deep")
        self._begun.add(name)
        fields = Fields(table.content, RECORD_KEYS)
        text, unit = fields.text("expr"), fields.text("unit", "")
        self.problems += [table.located(problem) for problem in fields.problems]
        if name_problem := _wrong_name(name):
            self._wrong(table, name_problem)
        if fields.problems or name_problem:
            return
        try:
            for other in self._read_by(text):
                self.make(other, (*path, name))
            self.made[name] = compile_record(name, text, self.made, unit)
        except RuleError as error:
            self.problems.append(table.located(error))

    def _read_by(self, text: str) -> list[str]:
        _, tree = parse(text)
        names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
        return [name for name in dict.fromkeys(names) if name in self._tables]

    def _wrong(self, table: Table, message: str) -> None:
        self.problems.append(table.located(RuleError(message)))


def _wrong_name(name: str) -> str:
    if not is_name(name):
        return "a name has letters, digits and _, and is no function of the language"
    if name in MEASURES:
        return f"{name} is a series that is measured; give the derived one another name"
    return ""
