"""From the text of a rule to an `Expression`: a whitelist over Python's own parser.

Nothing is ever given to `eval`. The parser's tree is walked once; each node that is on the list
becomes a small function (`nodes`), any other is an error that points at its character. The grammar
stands in `docs/rules.md`.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from mindpulse.errors import RuleError
from mindpulse.rules import nodes
from mindpulse.rules.expression import Expression, Node, WindowRef
from mindpulse.rules.functions import (
    COLUMN_FUNCTIONS,
    NUMBER_FUNCTIONS,
    REDUCERS,
    WINDOW_FUNCTIONS,
    documentation,
)
from mindpulse.rules.syntax import parse

MAX_ROWS = 100_000
NUMBER, TRUTH = "number", "condition"
STEP = "step"

Typed = tuple[str, Node]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_ARITHMETIC: dict[type[ast.operator], nodes.Operation] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
}
_COMPARISON: dict[type[ast.cmpop], nodes.Operation] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}


@lru_cache(maxsize=256)
def compile_expression(text: str) -> Expression:
    """The expression that `text` describes.

    Raises:
        RuleError: it is not in the language; points at the character.

    Example:
        >>> dict(compile_expression("std(attn_focus[100]) < 0.01").needs)
        {'attn_focus': 100}
    """
    line, tree = parse(text)
    compiler = _Compiler(line)
    node = compiler.condition(tree)
    return Expression(line, compiler.needs, node)


class _Compiler:
    """Walks one tree; `needs` collects the rows that each series has to provide."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.needs: dict[str, int] = {}

    def condition(self, tree: ast.expr) -> Node:
        kind, node = self.visit(tree)
        if kind != TRUTH:
            raise self.error(
                "a condition is wanted: compare with a number, for example `... > 50`", tree
            )
        return node

    def number(self, tree: ast.expr) -> Node:
        kind, node = self.visit(tree)
        if kind != NUMBER:
            raise self.error("a number is wanted here, this is a condition", tree)
        return node

    def visit(self, tree: ast.expr) -> Typed:
        visitor = _VISITORS.get(type(tree))
        if visitor is None:
            raise self.error(f"{type(tree).__name__} is not part of the rule language", tree)
        return visitor(self, tree)

    def error(self, message: str, tree: ast.expr) -> RuleError:
        return RuleError(message, self.line, tree.col_offset)

    # What may stand in a rule, one method for each kind of node.

    def constant(self, tree: ast.Constant) -> Typed:
        return NUMBER, nodes.constant(self.literal(tree))

    def name(self, tree: ast.Name) -> Typed:
        if tree.id == STEP:
            return NUMBER, nodes.step()
        if tree.id in documentation():
            raise self.error(
                f"{tree.id} is a function: call it, for example last(train_loss)", tree
            )
        raise self.error(
            f"the series {tree.id} has many rows: say which, for example last(...)", tree
        )

    def subscript(self, tree: ast.Subscript) -> Typed:
        raise self.error("a window has many rows: reduce it, for example mean(...)", tree)

    def unary(self, tree: ast.UnaryOp) -> Typed:
        if isinstance(tree.op, ast.Not):
            return TRUTH, nodes.apply(nodes.logical_not, self.condition(tree.operand))
        if isinstance(tree.op, ast.Invert):
            raise self.error("`~` is not part of the rule language: use `not`", tree)
        inner = self.number(tree.operand)
        return NUMBER, inner if isinstance(tree.op, ast.UAdd) else nodes.apply(np.negative, inner)

    def binary(self, tree: ast.BinOp) -> Typed:
        operation = _ARITHMETIC.get(type(tree.op))
        if operation is None:
            raise self.error("only + - * / calculate", tree)
        return NUMBER, nodes.both(operation, self.number(tree.left), self.number(tree.right))

    def compare(self, tree: ast.Compare) -> Typed:
        sides = [self.number(side) for side in (tree.left, *tree.comparators)]
        parts = []
        for left, operator, right in zip(sides, tree.ops, sides[1:], strict=False):
            operation = _COMPARISON.get(type(operator))
            if operation is None:
                raise self.error("only < <= > >= == != compare", tree)
            parts.append(nodes.both(nodes.comparing(operation), left, right))
        return TRUTH, nodes.conjunction(parts)

    def boolean(self, tree: ast.BoolOp) -> Typed:
        join = nodes.conjunction if isinstance(tree.op, ast.And) else nodes.disjunction
        return TRUTH, join([self.condition(value) for value in tree.values])

    def call(self, tree: ast.Call) -> Typed:
        if not isinstance(tree.func, ast.Name):
            raise self.error("only the listed functions can be called", tree.func)
        if tree.keywords:
            raise self.error("arguments have no names here", tree.keywords[0].value)
        name = tree.func.id
        if name in ("min", "max") and len(tree.args) > 1:
            return NUMBER, self.elementwise(tree, np.minimum if name == "min" else np.maximum)
        if name in REDUCERS:
            return NUMBER, self.reducer(tree, name)
        if name in COLUMN_FUNCTIONS:
            return self.column_function(tree, name)
        if name in NUMBER_FUNCTIONS:
            self.arity(tree, name, 1)
            return NUMBER, nodes.apply(NUMBER_FUNCTIONS[name][0], self.number(tree.args[0]))
        if name in WINDOW_FUNCTIONS:
            raise self.error(
                f"{name}() gives a window: reduce it, for example mean({name}(...))", tree
            )
        raise self.error(f"no function {name!r}{nearest(name, documentation())}", tree.func)

    # The kinds of calls.

    def arity(self, tree: ast.Call, name: str, wanted: int) -> None:
        if len(tree.args) != wanted:
            plural = "" if wanted == 1 else "s"
            raise self.error(
                f"{name}() takes {wanted} argument{plural}, {len(tree.args)} given", tree
            )

    def elementwise(self, tree: ast.Call, operation: nodes.Operation) -> Node:
        return nodes.chain(operation, [self.number(argument) for argument in tree.args])

    def column_function(self, tree: ast.Call, name: str) -> Typed:
        self.arity(tree, name, 1)
        function = COLUMN_FUNCTIONS[name]
        inner = (self.condition if function.truth else self.number)(tree.args[0])
        node = nodes.over_columns(function, inner, ast.unparse(tree))
        return TRUTH if function.gives_truth else NUMBER, node

    def reducer(self, tree: ast.Call, name: str) -> Node:
        reducer = REDUCERS[name]
        self.arity(tree, name, 1 + reducer.numbers)
        reference = self.window(tree.args[0], name, reducer.rows)
        numbers = [self.literal(argument) for argument in tree.args[1:]]
        return nodes.reduce(reducer, reference, numbers, reducer.rows, ast.unparse(tree))

    # Windows and numbers, the arguments of reducers.

    def literal(self, tree: ast.expr) -> float:
        value = tree.value if isinstance(tree, ast.Constant) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error("only plain numbers are allowed here", tree)
        if abs(value) > 1e300:
            raise self.error("this number is too large", tree)
        return float(value)

    def window(self, tree: ast.expr, function: str, fewest: int) -> WindowRef:
        partial = isinstance(tree, ast.Call) and ast.unparse(tree.func) in WINDOW_FUNCTIONS
        if isinstance(tree, ast.Call) and partial:
            self.arity(tree, ast.unparse(tree.func), 1)
            tree = tree.args[0]
        if isinstance(tree, ast.Name) and not partial:
            if fewest > 1:
                raise self.error(f"{function}() looks at several rows: write {tree.id}[100]", tree)
            return self.reference(tree, 0, 1, partial)
        if not (isinstance(tree, ast.Subscript) and isinstance(tree.value, ast.Name)):
            raise self.error(f"{function}() wants a window, for example train_loss[100]", tree)
        skip, end = self.bounds(tree.slice)
        if end - skip < fewest:
            raise self.error(f"{function}() needs at least {fewest} rows", tree)
        return self.reference(tree.value, skip, end - skip, partial)

    def bounds(self, tree: ast.expr) -> tuple[int, int]:
        if not isinstance(tree, ast.Slice):
            return 0, self.rows(tree)
        if tree.lower is None or tree.upper is None or tree.step is not None:
            raise self.error("write both ends and nothing else, for example [5:55]", tree)
        skip, end = self.rows(tree.lower), self.rows(tree.upper)
        if skip >= end:
            raise self.error(f"[{skip}:{end}] is empty: the first number must be the smaller", tree)
        return skip, end

    def rows(self, tree: ast.expr) -> int:
        value = tree.value if isinstance(tree, ast.Constant) else None
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_ROWS:
            raise self.error(f"a number of rows is wanted here, 1 to {MAX_ROWS}", tree)
        return value

    def reference(self, tree: ast.Name, skip: int, length: int, partial: bool) -> WindowRef:
        if not _NAME.match(tree.id) or tree.id == STEP or tree.id in documentation():
            raise self.error(f"{tree.id!r} cannot be a series here", tree)
        self.needs[tree.id] = max(self.needs.get(tree.id, 0), skip + length)
        return WindowRef(tree.id, skip, length, partial)


_VISITORS: dict[type[ast.expr], Callable[..., Typed]] = {
    ast.Constant: _Compiler.constant,
    ast.Name: _Compiler.name,
    ast.Subscript: _Compiler.subscript,
    ast.UnaryOp: _Compiler.unary,
    ast.BinOp: _Compiler.binary,
    ast.Compare: _Compiler.compare,
    ast.BoolOp: _Compiler.boolean,
    ast.Call: _Compiler.call,
}


def nearest(name: str, known: object) -> str:
    """A hint at the known name that looks most like `name`; "" if none does.

    Example:
        >>> nearest("grad_nrom", ["grad_norm", "train_loss"])
        "; did you mean 'grad_norm'?"
    """
    names = [str(item) for item in known] if isinstance(known, dict | list | set | tuple) else []
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
