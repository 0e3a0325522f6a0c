"""Taps on a function that a cell's methods call, as `ops.softmax(...)` in `construct`.

The methods on the way to it, and the functions that they go through, are copied. The copies share
the code with the originals, but look names up in *shadow modules*: copies of the modules' names in
which the function is replaced by one that watches, and in which `ops` in `ops.softmax` is a copy of
that module too. The graph compiler finds the names of a function by importing the module that it
says it comes from, so shadow modules are in `sys.modules` from `on` to `off`.
"""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Callable
from types import CellType, FunctionType, ModuleType
from typing import Any

from mindpulse.errors import PlantError
from mindpulse.mindspore.structure import calls
from mindpulse.mindspore.tap.attribute import AttributeTap
from mindpulse.mindspore.tap.swap import ClassTap, Watch, bridge

_numbers = itertools.count()


class FunctionTap(ClassTap):
    """A cell whose class is exchanged for one whose methods call a watched function.

    Args:
        cell: the cell whose methods call it.
        shadow: gives the shadows for the class that the cell has when the tap goes on.
    """

    def __init__(self, cell: Any, shadow: Callable[[], Shadows]) -> None:
        super().__init__(cell, self._shadowed)
        self._shadow = shadow
        self._shadows: dict[type, Shadows] = {}
        self._attributes: list[AttributeTap] = []

    def _shadowed(self, plain: type) -> type:
        shadows = self._shadows[plain] = self._shadow()
        return shadows.subclass(plain)

    def on(self) -> None:
        """The cell is watched from now on."""
        if self.is_on():
            return
        super().on()
        for shadows in self._shadows.values():
            shadows.enter()
            self._attributes = shadows.attributes(self.cell)
        for attribute in self._attributes:
            attribute.on()

    def off(self) -> None:
        """The cell has its own class again."""
        super().off()
        for attribute in self._attributes:
            attribute.off()
        for shadows in self._shadows.values():
            shadows.leave()


class Shadows:
    """Copies of functions and modules in which one function is replaced.

    Args:
        reached: the functions on the way.
        replaced: what stands for a function that is looked for.
    """

    def __init__(self, reached: calls.Reached, replaced: Callable[[Any], Any]) -> None:
        self.modules: dict[str, ModuleType] = {}
        self._reached, self._replaced = reached, replaced
        self._prefix = f"mindpulse_shadow_{next(_numbers)}"
        self._spaces: dict[int, ModuleType] = {}
        self._proxies: dict[int, ModuleType] = {}
        self._copies: dict[FunctionType, FunctionType] = {}
        for function in reached.on_way:
            self._copies[function] = self._copy(function)
        for function, references in reached.on_way.items():
            self._redirect(function, references)

    def subclass(self, plain: type) -> type:
        """`plain` with the copies for its methods."""
        base, members = bridge(plain)
        for name, method in self._reached.inherited.items():
            setattr(base, name, self._copies[method])
        for name, method in self._reached.methods.items():
            if inspect.getattr_static(plain, name, None) is not None:
                members[name] = _as_declared(plain, name, self._copies[method])
        made = type(plain.__name__, (base,), members)
        for function, references in self._reached.on_way.items():
            if any(reference.root == "super" for reference in references):
                _closure(self._copies[function])["__class__"].cell_contents = made
        return made

    def attributes(self, cell: Any) -> list[AttributeTap]:
        """Taps on the functions that the cell holds as plain attributes."""
        return [
            AttributeTap(cell, name, self._copies[method])
            for name, method in self._reached.methods.items()
            if vars(cell).get(name) is method
        ]

    def enter(self) -> None:
        """The graph compiler can import the shadow modules."""
        sys.modules.update(self.modules)

    def leave(self) -> None:
        """Nobody can import them any more."""
        for name in self.modules:
            sys.modules.pop(name, None)

    def _copy(self, function: FunctionType) -> FunctionType:
        space = self._space(function)
        copy = FunctionType(
            function.__code__, vars(space), function.__name__, function.__defaults__,
            tuple(CellType() for _ in function.__closure__ or ()),
        )  # fmt: skip
        copy.__kwdefaults__, copy.__qualname__ = function.__kwdefaults__, function.__qualname__
        copy.__dict__.update(function.__dict__)
        copy.__annotations__ = function.__annotations__
        copy.__module__ = space.__name__
        return copy

    def _space(self, function: FunctionType) -> ModuleType:
        """The shadow of the module that the function looks its names up in."""
        key = id(function.__globals__)
        if key not in self._spaces:
            self._spaces[key] = self._shadow(function.__module__, function.__globals__)
        return self._spaces[key]

    def _shadow(self, name: str, names: dict[str, Any]) -> ModuleType:
        shadow = ModuleType(f"{self._prefix}_{len(self.modules)}_{name.replace('.', '_')}")
        own = {key: vars(shadow)[key] for key in ("__name__",)}
        vars(shadow).update(names)
        vars(shadow).update(own)
        self.modules[shadow.__name__] = shadow
        return shadow

    def _redirect(self, function: FunctionType, references: list[calls.Reference]) -> None:
        """Lets the copy's names lead to copies and to what is replaced."""
        copy = self._copies[function]
        closure = _closure(copy)
        for name, cell in zip(closure, function.__closure__ or (), strict=True):
            closure[name].cell_contents = cell.cell_contents
        for reference in references:
            new = self._new(reference.value)
            if reference.root == "closure" and len(reference.chain) == 1:
                closure[reference.chain[0]].cell_contents = new
            elif reference.root == "closure":
                module = closure[reference.chain[0]].cell_contents
                closure[reference.chain[0]].cell_contents = self._lead(
                    module, reference.chain[1:], new
                )
            elif reference.root == "global":
                space = vars(self._space(function))
                first = reference.chain[0]
                space[first] = self._lead(space[first], reference.chain[1:], new)
        wrapped = function.__dict__.get("__wrapped__")
        if wrapped in self._copies:
            copy.__dict__["__wrapped__"] = self._copies[wrapped]

    def _lead(self, value: Any, chain: tuple[str, ...], new: Any) -> Any:
        """`new`, or a copy of the module `value` in which the chain leads to `new`."""
        if not chain:
            return new
        proxy = self._proxy(value)
        vars(proxy)[chain[0]] = self._lead(getattr(value, chain[0]), chain[1:], new)
        return proxy

    def _proxy(self, module: ModuleType) -> ModuleType:
        if module.__name__ in self.modules:
            return module
        if id(module) not in self._proxies:
            self._proxies[id(module)] = self._shadow(module.__name__, vars(module))
        return self._proxies[id(module)]

    def _new(self, value: Any) -> Any:
        return self._copies[value] if value in self._copies else self._replaced(value)


def _closure(function: FunctionType) -> dict[str, CellType]:
    return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


def _as_declared(plain: type, name: str, copy: FunctionType) -> Any:
    for cls in plain.__mro__:
        if name in vars(cls):
            return staticmethod(copy) if isinstance(vars(cls)[name], staticmethod) else copy
    return copy


def watch_function(cell: Any, targets: tuple[Any, ...], wrap: Any, watch: Watch) -> FunctionTap:
    """Watches each of `targets` that the cell's methods call.

    Args:
        cell: the cell whose methods call it.
        targets: the functions looked for (`calls.SOFTMAX`, `calls.CROSS_ENTROPY`).
        wrap: `wrap(target, cell, watch)` gives what is called in its place.
        watch: see `tap`.

    The tap raises PlantError when it goes on and the function is not reached any more.
    """
    made: dict[int, Any] = {}

    def replaced(target: Any) -> Any:
        if id(target) not in made:
            made[id(target)] = wrap(target, cell, watch)
        return made[id(target)]

    def shadow() -> Shadows:
        reached = calls.reach(cell, targets)
        if not reached.found or reached.obstacle:
            why = reached.obstacle or "no such call is reached"
            raise PlantError(f"{type(cell).__name__}: {why}")
        return Shadows(reached, replaced)

    return FunctionTap(cell, shadow)
