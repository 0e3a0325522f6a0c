"""JSON with comments and trailing commas, as VS Code writes it: read, and added to in place.

What a person wrote stays as it is, byte for byte: entries are put in behind the last one.
"""

from __future__ import annotations

import json
import re
from typing import Any

from mindpulse.errors import UsageError

_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA = re.compile(r",(?=\s*[\]}])")
_SPACE = re.compile(r"\s*")
_INDENT = re.compile(r"\n([ \t]+)\S")


def blanked(text: str) -> str:
    """The same text as plain JSON: comments and trailing commas are spaces, every place stays.

    Example:
        >>> blanked('[1, /* two */ 2,] // end')
        '[1,           2 ]       '
    """

    def spaces(match: re.Match[str]) -> str:
        found = match[0]
        return found if found.startswith('"') else re.sub(r"[^\r\n]", " ", found)

    plain = _TOKEN.sub(spaces, text.replace("\ufeff", " ", 1))
    kept: list[str] = []
    position = 0
    strings = [m.span() for m in _TOKEN.finditer(plain)]
    for match in _COMMA.finditer(plain):
        if any(first <= match.start() < beyond for first, beyond in strings):
            continue
        kept += [plain[position : match.start()], " "]
        position = match.end()
    return "".join([*kept, plain[position:]])


def parse(text: str, name: str) -> dict[str, Any]:
    """The object that a file holds; an empty file holds an empty one.

    Raises:
        UsageError: it is no JSON, or no object; the message quotes the line.
    """
    plain = blanked(text)
    if not plain.strip():
        return {}
    try:
        value = json.loads(plain)
    except json.JSONDecodeError as error:
        line = text.splitlines()[error.lineno - 1] if text.splitlines() else ""
        raise UsageError(
            f"{name}:{error.lineno}: {error.msg}: {line.strip()[:80]!r}; mend it, or move the file "
            "away and run this again"
        ) from None
    if not isinstance(value, dict):
        raise UsageError(f"{name} holds {type(value).__name__}, want an object {{...}}")
    return value


def with_entries(text: str, key: str, entries: list[dict[str, Any]], name: str) -> str:
    """The text with entries put in at the end of the array of a key, which is made if need be.

    Raises:
        UsageError: the file is no object, or the key holds no array.
    """
    if not entries:
        return text
    parse(text, name)
    newline = "\r\n" if "\r\n" in text else "\n"
    found = _INDENT.search(text)
    indent = found[1] if found else "    "
    plain = blanked(text)
    if not plain.strip():
        return text + _lines({key: entries}, indent, 0, newline) + newline
    members = _members(plain)
    if key not in members:
        body = f"{json.dumps(key)}: " + _lines(entries, indent, 1, newline)
        return _put(text, _end_of_last(members.values(), plain.index("{") + 1), bool(members),
                    body, indent, newline, plain)  # fmt: skip
    first, beyond = members[key]
    if plain[first] != "[":
        raise UsageError(f"{name}: {key!r} is no array; mend it, or move the file away")
    elements = _elements(plain, first)
    body = f",{newline}{indent * 2}".join(_lines(e, indent, 2, newline) for e in entries)
    return _put(text, _end_of_last(elements, first + 1), bool(elements), body, indent * 2,
                newline, plain, closing=beyond - 1, outer=indent)  # fmt: skip


def _put(
    text: str,
    at: int,
    behind_others: bool,
    body: str,
    indent: str,
    newline: str,
    plain: str,
    closing: int | None = None,
    outer: str = "",
) -> str:
    """Puts a body in at a place; a closing bracket on the same line gets a line of its own."""
    comma = "," if behind_others else ""
    close = plain.rindex("}") if closing is None else closing
    tail = text[at:close]
    line_end = "" if "\n" in tail else f"{newline}{outer}"
    return f"{text[:at]}{comma}{newline}{indent}{body}{tail}{line_end}{text[close:]}"


def _lines(value: Any, indent: str, depth: int, newline: str) -> str:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return text.replace("\n", newline + indent * depth)


def _end_of_last(spans: Any, otherwise: int) -> int:
    ends = [beyond for _, beyond in spans]
    return max(ends) if ends else otherwise


def _skip(plain: str, at: int) -> int:
    found = _SPACE.match(plain, at)
    return found.end() if found else at


def _value_end(plain: str, at: int) -> int:
    return json.JSONDecoder().raw_decode(plain, at)[1]


def _members(plain: str) -> dict[str, tuple[int, int]]:
    """Where the value of each key of the object begins and ends."""
    found: dict[str, tuple[int, int]] = {}
    at = _skip(plain, plain.index("{") + 1)
    while plain[at] != "}":
        key, at = json.JSONDecoder().raw_decode(plain, at)
        at = _skip(plain, _skip(plain, at) + 1)  # over the colon
        end = _value_end(plain, at)
        found[key] = (at, end)
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return found


def _elements(plain: str, bracket: int) -> list[tuple[int, int]]:
    found = []
    at = _skip(plain, bracket + 1)
    while plain[at] != "]":
        end = _value_end(plain, at)
        found.append((at, end))
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return found
