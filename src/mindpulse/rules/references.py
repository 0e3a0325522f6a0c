"""Windows and plain numbers, the arguments of the functions: checked, and noted as what is read."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from mindpulse.errors import RuleError
from mindpulse.rules.derived import MAX_DEPTH, Record, work_of
from mindpulse.rules.functions import WINDOW_FUNCTIONS, documentation
from mindpulse.rules.running import WindowRef

MAX_ROWS = 100_000
# Rows that one evaluation may go through, in each column.
MAX_WORK = 1_000_000
STEP = "step"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_DECIMAL = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")
_WHOLE = re.compile(r"\d+\Z")


def is_name(name: str) -> bool:
    """Whether an expression can call a series so.

    Example:
        >>> is_name("grad_norm"), is_name("grad/norm"), is_name("mean")
        (True, False, False)
    """
    return bool(_NAME.match(name)) and name != STEP and name not in documentation()


class References:
    """What an expression reads, gathered while its tree is walked.

    Attributes:
        needs: rows that each measured series has to provide.
        windows: what is read, derived series included.
        labelled: something in it asks what the columns are.
    """

    def __init__(self, line: str, records: Mapping[str, Record]) -> None:
        self.line = line
        self.records = records
        self.needs: dict[str, int] = {}
        self.windows: list[WindowRef] = []
        self.labelled = False

    def error(self, message: str, tree: ast.expr) -> RuleError:
        return RuleError(message, self.line, tree.col_offset)

    def arity(self, tree: ast.Call, name: str, wanted: int) -> None:
        if len(tree.args) != wanted:
            plural = "" if wanted == 1 else "s"
            raise self.error(
                f"{name}() takes {wanted} argument{plural}, {len(tree.args)} given", tree
            )

    def literal(self, tree: ast.expr) -> float:
        value = tree.value if isinstance(tree, ast.Constant) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error("only plain numbers are allowed here", tree)
        if not _DECIMAL.match(self.written(tree)):
            raise self.error("write the number as 300, 0.5 or 3e-4", tree)
        if abs(value) > 1e300:
            raise self.error("this number is too large", tree)
        return float(value)

    def written(self, tree: ast.expr) -> str:
        return self.line[tree.col_offset : tree.end_col_offset]

    def window(self, tree: ast.expr, function: str, fewest: int) -> WindowRef:
        mode = ""
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            mode = tree.func.id if tree.func.id in WINDOW_FUNCTIONS else ""
        if isinstance(tree, ast.Call) and mode:
            self.arity(tree, mode, 1)
            tree = tree.args[0]
        if isinstance(tree, ast.Name) and not mode:
            if fewest > 1:
                raise self.error(f"{function}() looks at several rows: write {tree.id}[100]", tree)
            return self.reference(tree, 0, 1, fewest, mode)
        if not (isinstance(tree, ast.Subscript) and isinstance(tree.value, ast.Name)):
            raise self.error(f"{function}() wants a window, for example train_loss[100]", tree)
        skip, end = self.bounds(tree.slice)
        if end - skip < fewest:
            raise self.error(f"{function}() needs at least {fewest} rows", tree)
        return self.reference(tree.value, skip, end - skip, fewest, mode)

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
        whole = isinstance(value, int) and bool(_WHOLE.match(self.written(tree)))
        if not whole or not isinstance(value, int) or not 1 <= value <= MAX_ROWS:
            raise self.error(f"a number of rows is wanted here, 1 to {MAX_ROWS}", tree)
        return value

    def reference(
        self, tree: ast.Name, skip: int, length: int, fewest: int, mode: str = ""
    ) -> WindowRef:
        if not is_name(tree.id):
            raise self.error(f"{tree.id!r} cannot be a series here", tree)
        record = self.records.get(tree.id)
        if record is not None and record.depth > MAX_DEPTH:
            raise self.error(f"derived series read one another, more than {MAX_DEPTH} deep", tree)
        upto, in_steps = mode == "upto", mode == "steps"
        window = WindowRef(tree.id, skip, length, fewest, upto, in_steps, record)
        read = {tree.id: window.end} if record is None else record.lookback(window.end)
        for tag, rows in read.items():
            self.needs[tag] = max(self.needs.get(tag, 0), rows)
        self.windows.append(window)
        self.labelled |= record is not None and record.expression.labelled
        if work_of(self.windows) > MAX_WORK:
            raise self.error(f"all windows together have more than {MAX_WORK:,} rows", tree)
        return window
