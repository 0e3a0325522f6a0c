"""From the text of a rule to an `Expression`: a whitelist over Python's own parser.

Nothing is ever given to `eval`. The parser's tree is walked once; each node that is on the list
becomes a small function (`nodes`), any other is an error that points at its character. The grammar
stands in `docs/rules.md`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from mindpulse.errors import RuleError
from mindpulse.rules import nodes
from mindpulse.rules.derived import Record, measured, work_of
from mindpulse.rules.expression import Expression
from mindpulse.rules.functions import (
    COLUMN_FUNCTIONS,
    LAYER_FUNCTIONS,
    NUMBER_FUNCTIONS,
    REDUCERS,
    WINDOW_FUNCTIONS,
    documentation,
)
from mindpulse.rules.nearest import nearest
from mindpulse.rules.references import STEP, References
from mindpulse.rules.running import Node
from mindpulse.rules.syntax import parse

NUMBER, TRUTH = "number", "condition"

Typed = tuple[str, Node]

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


def compile_expression(text: str, records: Mapping[str, Record] | None = None) -> Expression:
    """The condition that `text` describes.

    Args:
        records: the derived series that it may read, by name.

    Raises:
        RuleError: it is not in the language; points at the character.

    Example:
        >>> dict(compile_expression("std(attn_focus[100]) < 0.01").needs)
        {'attn_focus': 100}
    """
    return _compiled(text, _Compiler.condition, records) if records else _without_records(text)


def compile_record(
    name: str, text: str, records: Mapping[str, Record] | None = None, unit: str = ""
) -> Record:
    """The derived series that `text`, a number, describes.

    Raises:
        RuleError: it is not in the language, reads nothing, or is a condition.

    Example:
        >>> record = compile_record("smooth", "mean(train_loss[10])")
        >>> dict(compile_expression("std(smooth[5]) < 0.1", {"smooth": record}).needs)
        {'train_loss': 14}
    """
    expression = compile_number(text, records)
    if not expression.windows:
        raise RuleError("a derived series has to read a series", expression.text)
    return Record(name, expression, unit)


def compile_number(text: str, records: Mapping[str, Record] | None = None) -> Expression:
    """The number that `text` describes, for example one side of a comparison.

    Raises:
        RuleError: it is not in the language, or a condition.
    """
    return _compiled(text, _Compiler.number, records or {})


@lru_cache(maxsize=256)
def _without_records(text: str) -> Expression:
    return _compiled(text, _Compiler.condition, {})


def _compiled(
    text: str, wanted: Callable[[_Compiler, ast.expr], Node], records: Mapping[str, Record]
) -> Expression:
    line, tree = parse(text)
    compiler = _Compiler(line, records)
    node = wanted(compiler, tree)
    windows = tuple(compiler.windows)
    return Expression(line, compiler.needs, node, windows, compiler.labelled, work_of(windows))


class _Compiler(References):
    """Walks one tree and makes a node of each part."""

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
        if name in LAYER_FUNCTIONS:
            return NUMBER, self.layer_function(tree, name)
        if name in _SPECIAL:
            return NUMBER, _SPECIAL[name](self, tree)
        if name in WINDOW_FUNCTIONS:
            raise self.error(
                f"{name}() gives a window: reduce it, for example mean({name}(...))", tree
            )
        raise self.error(f"no function {name!r}{nearest(name, documentation())}", tree.func)

    # The kinds of calls.

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
        return nodes.reduce(reducer, reference, numbers, ast.unparse(tree))

    def layer_function(self, tree: ast.Call, name: str) -> Node:
        self.arity(tree, name, 1)
        before = len(self.windows)
        inner = self.number(tree.args[0])
        read = self.windows[before:]
        tags = dict.fromkeys(tag for window in read for tag in measured(window))
        self.labelled = True
        place, _ = LAYER_FUNCTIONS[name]
        return nodes.of_layer(place, tuple(tags), inner, ast.unparse(tree))

    def age(self, tree: ast.Call) -> Node:
        self.arity(tree, "age", 1)
        series = tree.args[0]
        if not isinstance(series, ast.Name) or series.id in self.records:
            raise self.error("age() wants the name of a measured series", series)
        return nodes.age(self.reference(series, 0, 1, 1).tag, ast.unparse(tree))

    def known(self, tree: ast.Call) -> Node:
        self.arity(tree, "known", 2)
        first, second = (self.number(argument) for argument in tree.args)
        return nodes.known(first, second)

    def when(self, tree: ast.Call) -> Node:
        self.arity(tree, "when", 2)
        guard, inner = self.condition(tree.args[0]), self.number(tree.args[1])
        return nodes.when(guard, inner, ast.unparse(tree))


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
_SPECIAL: dict[str, Callable[[_Compiler, ast.Call], Node]] = {
    "age": _Compiler.age,
    "known": _Compiler.known,
    "when": _Compiler.when,
}
