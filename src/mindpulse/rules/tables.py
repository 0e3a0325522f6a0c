"""The text of a rule file as tables: small, well formed, each with the line where it begins."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mindpulse.errors import RuleError
from mindpulse.rules.fields import shown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# What a parser of TOML needs grows with the square of a line, and with the depth.
MAX_BYTES = 256 * 1024
MAX_LINE = 2000  # characters
MAX_NESTED = 30
MAX_TABLES = 1000
KINDS = ("rule", "record")

_STRINGS = re.compile(
    r'"""(?:\\.|[^\\])*?"""|' + r"'''.*?'''|" + r'"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'|#[^\n]*",
    re.DOTALL,
)
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*(rule|record)[ \t]*\]\]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Table:
    """One [[rule]] or [[record]].

    Attributes:
        kind: "rule" or "record".
        source: the file.
        line: where it begins, 0 if that is not known.
    """

    kind: str
    name: str
    content: dict[str, object]
    source: str = ""
    line: int = 0

    def located(self, error: RuleError) -> RuleError:
        """The error with the place of the table before it."""
        place = f"{self.source}:{self.line}" if self.line else self.source
        message = f"{place}, {self.kind} {self.name!r}: {error.message}"
        return RuleError(message, error.text, error.column)


@dataclass(slots=True)
class Tables:
    """The tables of a file, and what is wrong with the others."""

    found: list[Table] = field(default_factory=list)
    problems: list[RuleError] = field(default_factory=list)

    def of(self, kind: str) -> dict[str, Table]:
        """The tables of a kind by name."""
        return {table.name: table for table in self.found if table.kind == kind}


def read_file(path: Path) -> str:
    """The text of a rule file.

    Raises:
        RuleError: it cannot be read, is no UTF-8, or larger than a rule file ever is.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RuleError(
            f"{path}: {error.strerror}; give a TOML file with [[rule]] tables"
        ) from None
    if len(data) > MAX_BYTES:
        raise RuleError(f"{path}: more than {MAX_BYTES:,} bytes; is it a rule file?")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RuleError(f"{path}: not UTF-8: {error}") from None


def read_tables(text: str, source: str) -> Tables:
    """The tables in a text.

    Raises:
        RuleError: nothing can be made of it: no TOML, too large, or too deep.

    Example:
        >>> tables = read_tables('[[rule]]\\nname = "a"\\n[[rule]]\\n', "my.toml")
        >>> [table.name for table in tables.found], [p.message for p in tables.problems]
        (['a'], ['my.toml:3: rule number 2 has no name'])
    """
    content = _parsed(text, source)
    wrong = set(content) - set(KINDS)
    if wrong or not all(isinstance(content.get(kind, []), list) for kind in KINDS):
        found = shown(sorted(content))
        raise RuleError(f"{source}: only [[rule]] and [[record]] tables are allowed, found {found}")
    tables = Tables()
    lines = _lines_of_headers(text)
    for kind in KINDS:
        items = content.get(kind, [])
        starts = lines[kind] if len(lines[kind]) == len(items) else [0] * len(items)
        _add(tables, kind, items, starts, source)
    return tables


def _add(tables: Tables, kind: str, items: list[object], lines: list[int], source: str) -> None:
    names: set[str] = set()
    for position, (content, line) in enumerate(zip(items, lines, strict=True), start=1):
        place = f"{source}:{line}" if line else source
        name = content.get("name") if isinstance(content, dict) else None
        if not isinstance(content, dict) or not isinstance(name, str) or not name:
            message = f"{place}: {kind} number {position} has no name"
        elif name in names:
            message = f"{place}: two {kind}s are called {shown(name)}; give one another name"
        else:
            names.add(name)
            tables.found.append(Table(kind, name, content, source, line))
            continue
        tables.problems.append(RuleError(message))


def _parsed(text: str, source: str) -> dict[str, list[object]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > MAX_LINE:
            raise RuleError(
                f"{source}:{number}: a line of {len(line):,} characters; at most {MAX_LINE:,}"
            )
    if max(_depths(text), default=0) > MAX_NESTED:
        raise RuleError(f"{source}: brackets more than {MAX_NESTED} deep")
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise RuleError(f"{source}: not TOML: {str(error)[:200]}") from None
    count = sum(len(tables) for tables in content.values() if isinstance(tables, list))
    if count > MAX_TABLES:
        raise RuleError(f"{source}: {count:,} tables; at most {MAX_TABLES:,}")
    return content


def _depths(text: str) -> Iterator[int]:
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", _STRINGS.sub("", text)):
        depth = depth + 1 if bracket in "[{" else max(0, depth - 1)
        yield depth


def _lines_of_headers(text: str) -> dict[str, list[int]]:
    lines: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for match in _HEADER.finditer(_STRINGS.sub(_blank, text)):
        lines[match[1]].append(text.count("\n", 0, match.start()) + 1)
    return lines


def _blank(match: re.Match[str]) -> str:
    """The same number of lines and characters, and nothing in them."""
    return re.sub(r"[^\n]", " ", match[0])
