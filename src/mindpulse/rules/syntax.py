"""The text of a rule as a tree, small and well formed; what it means is the compiler's part."""

from __future__ import annotations

import ast
import re
import warnings

from mindpulse.errors import RuleError

MAX_CHARACTERS = 1000
MAX_NODES = 300
MAX_DEPTH = 40


def parse(text: str) -> tuple[str, ast.expr]:
    """(the text on one line, its tree), both within the limits above.

    Raises:
        RuleError: a character that is not printable ASCII, a syntax error, too large or too deep.

    Example:
        >>> parse("last(grad_norm) >\\n 50")[0]
        'last(grad_norm) >  50'
    """
    if not isinstance(text, str) or not text.strip():
        raise RuleError(f"an expression is wanted, for example last(grad_norm) > 50, not {text!r}")
    line = re.sub(r"[ \t\r\n\f\v]", " ", text).strip(" ")
    _check_characters(line)
    tree = _tree(line)
    _check_size(line, tree)
    return line, tree


def _check_characters(line: str) -> None:
    if len(line) > MAX_CHARACTERS:
        raise RuleError(f"the expression has {len(line)} characters; at most {MAX_CHARACTERS}")
    for position, character in enumerate(line):
        if not (character.isascii() and character.isprintable()):
            raise RuleError(f"character {character!r} is not allowed", line, position)


def _tree(line: str) -> ast.expr:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(line, mode="eval").body
    except SyntaxError as error:
        column = min(max(0, (error.offset or 1) - 1), len(line))
        raise RuleError(f"syntax: {error.msg}", line, column) from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise RuleError(f"cannot be read: {str(error)[:100] or 'too deep'}", line) from None


def _check_size(line: str, tree: ast.expr) -> None:
    count, level = 0, [tree]
    for _ in range(MAX_DEPTH):
        count += len(level)
        level = [c for n in level for c in ast.iter_child_nodes(n) if isinstance(c, ast.expr)]
        if not level:
            break
    if level or count > MAX_NODES:
        raise RuleError("the expression is too large: split it into several rules", line)
