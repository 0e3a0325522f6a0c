"""What a training script says about debugging, read as a syntax tree; nothing of it is run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path

from mindpulse.doctor.debug_reading import GRAPH, PYNATIVE, UNKNOWN, Reading, Spot
from mindpulse.errors import UsageError

Function = ast.FunctionDef | ast.AsyncFunctionDef
# Calls that are meant to stop, or to look at a value.
STOPS = {
    *("breakpoint", "pdb.set_trace", "ipdb.set_trace", "pudb.set_trace", "debugpy.breakpoint"),
    *("pydevd.settrace", "IPython.embed", "code.interact", "mindpulse.peek", "mindpulse.snap"),
}
HOOKS = {
    *("register_forward_hook", "register_forward_pre_hook", "register_backward_hook"),
    *("register_backward_pre_hook", "register_hook"),
}
_LISTS = ("CellList", "SequentialCell", "CellDict")
_GRADS = ("grad", "value_and_grad")
_CHILDREN = ("subprocess.", "multiprocessing.", "os.fork", "os.system", "os.spawn", "os.exec")


def read_script(path: Path) -> Reading:
    """Reads one script.

    Raises:
        UsageError: it cannot be read or parsed; says where.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the script's own, as of an odd backslash
            tree = ast.parse(path.read_bytes(), str(path))
    except SyntaxError as error:
        raise UsageError(f"{path}:{error.lineno}: {error.msg}; this is not Python 3") from error
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: cannot be read as Python: {error}") from error
    return _Reader(path, tree).reading


class _Reader:
    """Walks over one tree."""

    def __init__(self, path: Path, tree: ast.Module) -> None:
        self.reading = Reading(path)
        self.aliases = dict(_aliases(tree))
        self.lists = _assigned_lists(tree)
        self.elements: set[str] = set()
        self.functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        self._body(tree, "", "")

    def full(self, node: ast.AST) -> str:
        """The dotted name of an expression, imports followed: "mindspore.jit"; "" if it has none.

        What is called or indexed on the way is left out.
        """
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            before = self.full(node.value)
            return f"{before}.{node.attr}" if before else f".{node.attr}"
        return ""

    def _body(self, node: ast.AST, function: str, owner: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                self._body(child, function, child.name)
            elif isinstance(child, Function):
                name = function or _qualified(owner, child.name)
                if not function:
                    self._function(child, name, owner)
                self._body(child, name, owner)
            else:
                self._look(child, function, owner)
                self._body(child, function, owner)

    def _function(self, node: Function, name: str, owner: str) -> None:
        spot = Spot(node.lineno, name)
        if owner and node.name == "construct":
            self.reading.constructs[name] = spot
        for decorator in node.decorator_list:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            if self._is_jit(call):
                self.reading.jitted[name] = spot

    def _is_jit(self, node: ast.AST) -> bool:
        full = self.full(node)
        root, _, last = full.rpartition(".")
        if last not in ("jit", "ms_function"):
            return False
        return not root or root.startswith("mindspore") or root not in self.aliases.values()

    def _look(self, node: ast.AST, function: str, owner: str) -> None:
        if isinstance(node, ast.For | ast.comprehension):
            self._loop(node.target, node.iter)
        if not isinstance(node, ast.Call):
            return
        full = self.full(node.func)
        spot = Spot(node.lineno, ast.unparse(node.func), function, full)
        if function:
            self._called(node, full, function, owner)
        self._context(node, full, function)
        self._compiling(node, full)
        if full in STOPS:
            self.reading.stops.append(spot)
        if full.rpartition(".")[2] in HOOKS and isinstance(node.func, ast.Attribute):
            self.reading.hooks.append(spot)
            if self._is_element(node.func.value):
                self.reading.element_hooks.append(spot)
        self._others(node, full, spot)

    def _called(self, node: ast.Call, full: str, function: str, owner: str) -> None:
        """Notes which functions of this script a function calls."""
        callee = ""
        if full.startswith("self.") and full.count(".") == 1:
            callee = _qualified(owner, full.removeprefix("self."))
        elif full in self.functions:
            callee = full
        if callee:
            self.reading.calls.setdefault(function, set()).add(callee)

    def _context(self, node: ast.Call, full: str, function: str) -> None:
        if full.rpartition(".")[2] != "set_context":
            return
        words = {word.arg: word.value for word in node.keywords}
        if "mode" in words:
            spot = Spot(node.lineno, ast.unparse(words["mode"]), function)
            self.reading.modes.append((spot, self._mode(words["mode"])))
        if _is(words.get("pynative_synchronize"), True):
            self.reading.blocking.append(Spot(node.lineno, "pynative_synchronize=True"))

    def _mode(self, value: ast.expr) -> str:
        last = self.full(value).rpartition(".")[2]
        number = value.value if isinstance(value, ast.Constant) else None
        if last == "GRAPH_MODE" or number == 0:
            return GRAPH
        return PYNATIVE if last == "PYNATIVE_MODE" or number == 1 else UNKNOWN

    def _compiling(self, node: ast.Call, full: str) -> None:
        """`jit(step)`, `value_and_grad(forward)`, and how they capture."""
        first = node.args[0] if node.args else None
        last = full.rpartition(".")[2]
        if self._is_jit(node.func):
            if isinstance(first, ast.Name) and first.id in self.functions:
                self.reading.jitted[first.id] = Spot(node.lineno, first.id)
            for word in node.keywords:
                if word.arg == "capture_mode" and not _is(word.value, "ast"):
                    self.reading.captures.append(Spot(node.lineno, ast.unparse(word.value)))
        elif last in _GRADS and isinstance(first, ast.Name) and first.id in self.functions:
            self.reading.differentiated[first.id] = Spot(node.lineno, first.id)

    def _others(self, node: ast.Call, full: str, spot: Spot) -> None:
        reading, last = self.reading, full.rpartition(".")[2]
        words = {word.arg: word.value for word in node.keywords}
        if last == "recompute" and isinstance(node.func, ast.Attribute):
            reading.recomputes.append(spot)
        if _is(words.get("dataset_sink_mode"), True):
            reading.sinks.append(spot)
        if last == "launch_blocking":
            reading.blocking.append(spot)
        if last == "set_debug_mode":
            reading.data_debug.append(spot)
        if _in_workers(last, words):
            reading.workers.append(spot)
        if full.startswith(_CHILDREN):
            reading.children.append(spot)
        if full in ("exec", "compile"):
            reading.made_code.append(spot)

    def _loop(self, target: ast.expr, source: ast.expr) -> None:
        """Names that stand for the elements of a list of cells."""
        if isinstance(source, ast.Call) and self.full(source.func) == "enumerate" and source.args:
            source = source.args[0]
            target = target.elts[-1] if isinstance(target, ast.Tuple) else target
        if self._is_list(source) and isinstance(target, ast.Name):
            self.elements.add(target.id)

    def _is_list(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name | ast.Attribute) and (
            self.full(node).rpartition(".")[2] in self.lists
        )

    def _is_element(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Subscript):
            return self._is_list(node.value)
        return isinstance(node, ast.Name) and node.id in self.elements


def _aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Local name -> what it stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    yield alias.asname, alias.name
                else:
                    root = alias.name.partition(".")[0]
                    yield root, root
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _assigned_lists(tree: ast.Module) -> set[str]:
    """Names of attributes and variables that hold a list of cells."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made = ast.unparse(node.value.func).rpartition(".")[2]
            if made in _LISTS:
                found |= {ast.unparse(target).rpartition(".")[2] for target in node.targets}
    return found


def _qualified(owner: str, name: str) -> str:
    return f"{owner}.{name}" if owner else name


def _is(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value == value


def _in_workers(last: str, words: dict[str | None, ast.expr]) -> bool:
    """Whether a step of a dataset runs in processes of its own."""
    if _is(words.get("python_multiprocessing"), False):
        return False
    if last == "GeneratorDataset":
        count = words.get("num_parallel_workers")
        return count is not None and not _is(count, 1)
    return last in ("map", "batch") and _is(words.get("python_multiprocessing"), True)
