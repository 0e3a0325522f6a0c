"""Which tables a query names, by DuckDB's own parser; anything but one SELECT is refused.

The allow-list of table functions is the first wall and the locked database the second: a function
that takes a path or a memory address is never even bound.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mindpulse.cli.sql.engine import worded_errors
from mindpulse.errors import UsageError

MAX_QUERY_BYTES = 100_000
TABLE_FUNCTIONS = {"range", "generate_series", "unnest"}
NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}


@dataclass(frozen=True, slots=True)
class TableName:
    """A table as a query names it; `offset` is its place in the text, in bytes, -1 if unknown."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a query reads.

    Attributes:
        tables: the names in its FROM clauses.
        own: names that its WITH clauses give, in lower case; a table may have the same name.
        point_tags: tags that a reading of `points` is limited to, None if it is not.
    """

    tables: tuple[TableName, ...]
    own: frozenset[str]
    point_tags: frozenset[str] | None


def parse(connection: Any, query: str) -> Parsed:
    """Checks a query and lists its tables.

    Raises:
        UsageError: it is no SQL, no single SELECT, or calls a table function that is not allowed.
    """
    if len(query.encode()) > MAX_QUERY_BYTES:
        raise UsageError(f"the query has over {MAX_QUERY_BYTES} bytes; use a shorter one")
    with worded_errors():
        statements = connection.extract_statements(query)
        asked = "SELECT json_serialize_sql(?::VARCHAR)"
        [(text,)] = connection.execute(asked, [query]).fetchall()
    if len(statements) != 1:
        raise UsageError(f"--sql takes one SELECT; this is {len(statements)} statements")
    kind = statements[0].type.name
    try:
        told = json.loads(text)
        if kind != "SELECT" or told["error"]:
            what = kind if kind != "SELECT" else f"none: {told['error_message']}"
            raise UsageError(f"--sql takes one SELECT and changes nothing; this is {what}")
        return _read(told["statements"][0])
    except RecursionError:
        raise UsageError("the query is nested too deeply; use a simpler one") from None


def _read(tree: Any) -> Parsed:
    own: set[str] = set()
    tables: list[TableName] = []
    limits: list[frozenset[str] | None] = []
    for node in _nodes(tree):
        kind = node.get("type")
        if isinstance(kind, str) and kind.endswith("_NODE") and kind not in NODES:
            raise UsageError(f"--sql takes one SELECT and changes nothing; this has {kind}")
        if kind == "TABLE_FUNCTION":
            _check_function(node["function"])
        if kind == "SELECT_NODE":
            limits += _point_limits(node)
        if kind in ("BASE_TABLE", "SHOW_REF"):
            tables += _table(node)
        own |= {entry["key"].casefold() for entry in (node.get("cte_map") or {}).get("map", [])}
    whole = sum(table.name.casefold() == "points" for table in tables) != len(limits)
    limited = [limit for limit in limits if limit is not None]
    tags = None if whole or len(limited) < len(limits) else frozenset().union(*limited)
    return Parsed(tuple(tables), frozenset(own), tags)


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += reversed(node.values())
        elif isinstance(node, list):
            waiting += reversed(node)


def _check_function(function: dict[str, Any]) -> None:
    name = str(function.get("function_name", "")).casefold()
    if name not in TABLE_FUNCTIONS:
        allowed = ", ".join(sorted(TABLE_FUNCTIONS))
        raise UsageError(f"{name}() is not allowed in --sql; table functions are {allowed}")


def _table(node: dict[str, Any]) -> Iterator[TableName]:
    name = str(node.get("table_name", ""))
    schema = [str(node.get(key) or "") for key in ("catalog_name", "schema_name")]
    if node["type"] == "SHOW_REF":
        if not name:  # what it describes stands below it, as a query
            return
        name = name.strip('"').replace('""', '"')
    if any(part not in ("", "main", "memory") for part in schema):
        name = ".".join([*filter(None, schema), name])
    offset = node.get("query_location", -1)
    yield TableName(name, offset if isinstance(offset, int) and offset < 2**40 else -1)


def _point_limits(select: dict[str, Any]) -> Iterator[frozenset[str] | None]:
    """If a SELECT reads `points` and nothing else: the tags that its WHERE allows, or None."""
    source = select.get("from_table") or {}
    if source.get("type") != "BASE_TABLE" or str(source.get("table_name")).casefold() != "points":
        return
    where = select.get("where_clause")
    parts = [where] if where else []
    if where and where.get("type") == "CONJUNCTION_AND":
        parts = where["children"]
    here = {"", str(source.get("alias") or "points").casefold()}
    found = [tags for part in parts if (tags := _tags_of(part, here)) is not None]
    yield frozenset.intersection(*found) if found else None


def _tags_of(condition: dict[str, Any], here: set[str]) -> frozenset[str] | None:
    """The tags of `tag = '...'` or `tag IN ('...', ...)`, None for any other condition."""
    if condition.get("type") == "COMPARE_EQUAL":
        column, *values = condition["left"], condition["right"]
    elif condition.get("type") == "COMPARE_IN":
        column, *values = condition["children"]
    else:
        return None
    *table, name = ["", *column.get("column_names", [""])][-2:]
    texts = [_constant(value) for value in values]
    if name.casefold() != "tag" or table[0].casefold() not in here or None in texts:
        return None
    return frozenset(text for text in texts if text is not None)


def _constant(node: dict[str, Any]) -> str | None:
    if node.get("class") != "CONSTANT":
        return None
    literal, value = node.get("literal") or {}, node.get("value") or {}
    found = literal.get("text") if literal.get("kind") == "STRING" else value.get("value")
    return found if isinstance(found, str) else None
