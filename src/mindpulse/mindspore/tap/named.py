"""Taps on a name of a module: whoever uses the name is watched, in a cell or in a plain function.

A step function belongs to the user, and nobody hands it over; what it calls is found by name in the
module where the framework defines it, by PyNative at each call and by the graph compiler when it
compiles. So this reaches steps that no cell holds.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

Show = Callable[[Any], None]
Wrap = Callable[[Any, tuple[Show, ...]], Any]


class NameTap:
    """Shows the first argument of what stands behind a name; any number may sit on one name.

    Args:
        module, name: where it is defined.
        wrap: `wrap(original, shows)` stands there instead, as long as one tap is on.
        show: called with the argument, inside the step.
    """

    def __init__(self, module: ModuleType, name: str, wrap: Wrap, show: Show) -> None:
        self.wrap, self.show = wrap, show
        self._name = _names.setdefault((module.__name__, name), _Name(module, name))

    def on(self) -> None:
        """It is watched from now on."""
        if self not in self._name.taps:
            self._name.taps.append(self)
            self._name.renew()

    def off(self) -> None:
        """Other taps stay; with the last one the original comes back."""
        if self in self._name.taps:
            self._name.taps.remove(self)
            self._name.renew()


class _Name:
    """A name, the taps on it, and what they are put over."""

    def __init__(self, module: ModuleType, name: str) -> None:
        self.taps: list[NameTap] = []
        self._space, self._name = vars(module), name
        self._original: Any = None
        self._made: Any = None

    def renew(self) -> None:
        """Puts a new object there: the compiler remembers what it has seen."""
        if self._made is None:
            self._original = self._space[self._name]
        shows = tuple(tap.show for tap in self.taps)
        self._made = self.taps[0].wrap(self._original, shows) if shows else None
        self._space[self._name] = self._original if self._made is None else self._made


_names: dict[tuple[str, str], _Name] = {}


def shown_by_cell(plain: Any, shows: tuple[Show, ...]) -> Any:
    """A cell's class: what it is called with."""

    class Shown(plain):  # type: ignore[misc]
        def construct(self, first: Any) -> Any:
            for show in shows:
                show(first)
            return super().construct(first)

    Shown.__name__, Shown.__qualname__ = plain.__name__, plain.__qualname__
    return Shown


def shown_by_function(plain: Any, shows: tuple[Show, ...]) -> Any:
    """A function: its first argument."""

    def run(first: Any, *rest: Any) -> Any:
        for show in shows:
            show(first)
        return plain(first, *rest)

    return run
