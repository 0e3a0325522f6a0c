"""Which functions a cell's methods call, read from their bytecode and not from their names alone.

A softmax that is called as `ops.softmax(...)` in `construct`, in another method or in a function of
the module leaves no trace in the tree of cells. Here the calls are followed from the methods of a
cell through helper functions to the function that is looked for.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from mindspore import mint, nn, ops
from mindspore.ops.function import nn_func

SOFTMAX: tuple[Any, ...] = (ops.softmax, nn_func.softmax_ext, mint.softmax, ops.Softmax)
CROSS_ENTROPY: tuple[Any, ...] = (ops.cross_entropy, mint.nn.functional.cross_entropy)
FUSED: tuple[Any, ...] = (ops.flash_attention_score,)
_ACTIVATIONS = ("relu", "gelu", "silu", "relu6", "elu", "fast_gelu", "leaky_relu", "mish", "tanh")
_ACTIVATION_IDS = {
    id(getattr(module, name))
    for module in (ops, mint.nn.functional)
    for name in _ACTIVATIONS
    if hasattr(module, name)
}
_FRAMEWORK = "mindspore"
_TENSOR_METHOD = "softmax"


@dataclass(frozen=True, slots=True)
class Reference:
    """A name that a function uses: ("ops", "softmax") from its globals, its closure or `self`."""

    root: str
    chain: tuple[str, ...]
    value: Any


@dataclass(slots=True)
class Reached:
    """What lies between a cell's methods and the functions looked for.

    Attributes:
        found: whether one of them is reached at all.
        methods: the cell's methods on the way, by name.
        inherited: those that are reached through `super()`.
        functions: names of the functions and methods on the way.
        callers: names of those that call what is looked for themselves.
        on_way: each function on the way with the references that lead on from it.
        obstacle: why the way cannot be copied, or "".
        methods_of_tensors: a tensor's own method of that name is called (softmax only).
    """

    found: bool = False
    methods: dict[str, Any] = field(default_factory=dict)
    inherited: dict[str, Any] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    callers: list[str] = field(default_factory=list)
    on_way: dict[FunctionType, list[Reference]] = field(default_factory=dict)
    obstacle: str = ""
    methods_of_tensors: bool = False


def is_softmax(value: Any) -> bool:
    """Whether the value is one of the framework's softmax functions."""
    return any(value is target for target in SOFTMAX[:3])


def is_activation(value: Any) -> bool:
    """Whether the value is one of the framework's activation functions."""
    return id(value) in _ACTIVATION_IDS


def reach(cell: Any, targets: tuple[Any, ...]) -> Reached:
    """Follows the calls of the cell's methods to one of `targets`."""
    reached = Reached()
    if _is_plain_framework_cell(cell):
        return reached
    search = _Search(cell, targets, reached)
    for name in _method_names(type(cell)):
        method = method_of(cell, name)
        if method is not None and search.leads(method):
            reached.methods[name] = method
    reached.functions = [function.__name__ for function in reached.on_way]
    reached.found = bool(reached.methods)
    for method in reached.inherited.values():
        if any(reference.root == "super" for reference in reached.on_way[method]):
            reached.obstacle = f"{method.__name__} calls it through super() more than once"
    return reached


class _Search:
    """Depth-first, each function once; what lies on a cycle counts if any of it leads on."""

    def __init__(self, cell: Any, targets: tuple[Any, ...], reached: Reached) -> None:
        self.cell, self.targets, self.reached = cell, targets, reached
        self.known: dict[FunctionType, bool] = {}

    def leads(self, function: FunctionType) -> bool:
        if function in self.known:
            return self.known[function]
        self.known[function] = False
        onward = []
        for reference in self._references(function):
            value = reference.value
            if any(value is target for target in self.targets):
                if reference.root == "self":
                    continue  # an attribute, which is a place of its own
                if function.__name__ not in self.reached.callers:
                    self.reached.callers.append(function.__name__)
                onward.append(reference)
            elif isinstance(value, FunctionType) and _is_followed(value) and self.leads(value):
                onward.append(reference)
                if reference.root == "self":
                    self.reached.methods[reference.chain[0]] = value
                elif reference.root == "super":
                    self.reached.inherited[reference.chain[0]] = value
        if not onward:
            return False
        self.known[function] = True
        self.reached.on_way[function] = onward
        self._note_obstacle(function, onward)
        return True

    def _references(self, function: FunctionType) -> Iterator[Reference]:
        for root, chain in _chains(function):
            if root == "self":
                yield Reference(root, chain[:1], method_of(self.cell, chain[0]))
            elif root == "super":
                yield Reference(root, chain, _method_above(type(self.cell), function, chain[0]))
            elif root == "tensor":
                if chain == (_TENSOR_METHOD,) and self.targets is SOFTMAX:
                    self.reached.methods_of_tensors = True
            else:
                yield _resolve(function, root, chain)

    def _note_obstacle(self, function: FunctionType, onward: list[Reference]) -> None:
        if getattr(function, "__wrapped_by_jit__", False):
            self.reached.obstacle = f"{function.__name__} is compiled by a @jit of its own"
        elif function.__name__ == "<lambda>":
            self.reached.obstacle = "it is called in a lambda"


def method_of(cell: Any, name: str) -> Any:
    """The plain function behind `cell.name`, or None."""
    value = vars(cell).get(name)
    if value is None:
        value = inspect.getattr_static(type(cell), name, None)
        value = value.__func__ if isinstance(value, staticmethod) else value
    return value if isinstance(value, FunctionType) else None


def _method_names(plain: type) -> list[str]:
    names: dict[str, None] = {"construct": None}
    for cls in plain.__mro__:
        if cls is nn.Cell:
            break
        names.update(dict.fromkeys(name for name in vars(cls) if not name.startswith("__")))
    return list(names)


def _method_above(plain: type, function: FunctionType, name: str) -> Any:
    """What `super().name` means in `function`."""
    mro = list(plain.__mro__)
    for position, cls in enumerate(mro):
        if function in vars(cls).values():
            for above in mro[position + 1 :]:
                if name in vars(above):
                    value = vars(above)[name]
                    return value if isinstance(value, FunctionType) else None
    return None


def _is_plain_framework_cell(cell: Any) -> bool:
    """The framework's cells call nothing of interest, but for its attention."""
    plain = type(cell)
    return _is_of_framework(plain.__module__) and "attention" not in plain.__name__.lower()


def _is_followed(function: FunctionType) -> bool:
    if _is_of_framework(function.__module__ or ""):
        return "attention" in function.__name__
    return True


def _is_of_framework(module: str) -> bool:
    return module.split(".")[0] == _FRAMEWORK


def _resolve(function: FunctionType, root: str, chain: tuple[str, ...]) -> Reference:
    """Follows the chain as far as modules go."""
    space = _closure(function) if root == "closure" else function.__globals__
    value, used = space.get(chain[0]), 1
    while isinstance(value, ModuleType) and used < len(chain):
        value = getattr(value, chain[used], None)
        used += 1
    return Reference(root, chain[:used], value)


def _closure(function: FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found = {}
    for name, cell in cells:
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not filled yet
            continue
    return found


_cache: WeakKeyDictionary[FunctionType, list[tuple[str, tuple[str, ...]]]] = WeakKeyDictionary()


def _chains(function: FunctionType) -> list[tuple[str, tuple[str, ...]]]:
    """(root, attribute chain) of every name that the function loads."""
    if function not in _cache:
        code = function.__code__
        first = code.co_varnames[0] if code.co_argcount else ""
        _cache[function] = list(dict.fromkeys(_chains_of_code(code, first)))
    return _cache[function]


def _chains_of_code(code: CodeType, first: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    chain: list[str] = []
    root = after_super = ""
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
            if name == "LOAD_SUPER_ATTR" or after_super:
                yield "super", (instruction.argval,)
                root = after_super = ""
            elif root:
                chain.append(instruction.argval)
            else:
                yield "tensor", (instruction.argval,)
            continue
        if root and chain:
            yield from _ended(root, chain)
        root, chain = "", []
        if name in ("LOAD_GLOBAL", "LOAD_NAME"):
            after_super = "super" if instruction.argval == "super" else ""
            root, chain = ("", []) if after_super else ("global", [instruction.argval])
        elif name in ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_DEREF", "LOAD_CLOSURE"):
            if instruction.argval == first:
                root, chain = "self", []
            elif name == "LOAD_DEREF":
                root, chain = "closure", [instruction.argval]
            else:
                root, chain = "local", []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _chains_of_code(constant, first)


def _ended(root: str, chain: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    if root == "local":
        yield "tensor", tuple(chain)
    else:
        yield root, tuple(chain)
