"""Taps that exchange the class of one cell for a subclass; no name and no checkpoint changes.

The graph compiler takes `super()` for "the class after the instance's own", whichever class it is
written in. So a subclass would send the `super().construct(...)` of the user's class back to the
user's class, for ever. What stands between them here is a class that answers for the user's bases:

    watched -> bridge (what the user's bases have) -> the user's class -> its bases
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any

Watch = Callable[[Any, Any, Any], None]

_numbers = itertools.count()
_MISSING = object()


class ClassTap:
    """One cell's class, exchanged for a subclass of it.

    Several may sit on one cell and go off in any order.

    Args:
        cell: the cell to tap.
        make: gives the subclass of the class that the cell has when the tap goes on.
    """

    def __init__(self, cell: Any, make: Callable[[type], type]) -> None:
        self.cell, self._make = cell, make
        self._made: dict[type, type] = {}
        self._own: Any = None  # the cell's own construct, where amp "auto" has put one over it

    def on(self) -> None:
        """The cell is watched from now on."""
        if self.is_on():
            return
        plain = type(self.cell)
        if plain not in self._made:
            made = self._made[plain] = self._make(plain)
            # The compiler and amp tell cells apart by these names.
            made.__name__, made.__qualname__ = plain.__name__, plain.__qualname__
            made.__module__ = plain.__module__
            made._mindpulse_tap, made._mindpulse_plain = self, plain  # type: ignore[attr-defined]
        self.cell.__class__ = self._made[plain]
        self._own = vars(self.cell).pop("construct", None)

    def off(self) -> None:
        """The cell has its own class again; taps that went on later stay."""
        if not self.is_on():
            return
        above: list[ClassTap] = []
        while True:
            top = type(self.cell)
            self.cell.__class__ = top._mindpulse_plain
            found = vars(top)["_mindpulse_tap"]
            if found._own is not None:
                vars(self.cell)["construct"] = found._own
            if found is self:
                break
            above.append(found)
        for later in reversed(above):
            later.on()

    def is_on(self) -> bool:
        """Whether the cell is watched, under other taps or not."""
        return any(vars(cls).get("_mindpulse_tap") is self for cls in type(self.cell).__mro__)


def bridge(plain: type) -> tuple[type, dict[str, Any]]:
    """A subclass of `plain` that answers for its bases, and the members that belong above it."""
    below: dict[str, Any] = {}
    members: dict[str, Any] = {}
    for name, value in vars(plain).items():
        inherited = _inherited(plain, name)
        if not name.startswith("__") and inspect.isfunction(value) and inherited is not _MISSING:
            below[name], members[name] = inherited, value
    return type(plain.__name__, (plain,), below), members


def complete(made: type, plain: type, members: dict[str, Any], called: str) -> None:
    """Gives a subclass of a bridge what belongs above it; `plain`'s construct becomes `called`."""
    for name, member in members.items():
        if name != "construct":
            setattr(made, name, member)
    setattr(made, called, plain.construct)  # type: ignore[attr-defined]
    # The compiler and amp tell cells apart by these names.
    made.__name__, made.__qualname__ = plain.__name__, plain.__qualname__


def _inherited(plain: type, name: str) -> Any:
    for cls in plain.__mro__[1:]:
        if name in vars(cls):
            return vars(cls)[name]
    return _MISSING


def watch_cell(cell: Any, show: Watch) -> ClassTap:
    """Shows a cell's first input and all that it returns."""

    def make(plain: type) -> type:
        base, members = bridge(plain)
        original = f"_mindpulse_construct_{next(_numbers)}"

        def construct(self: Any, *args: Any, **kwargs: Any) -> Any:
            out = getattr(self, original)(*args, **kwargs)
            before = args[0] if args else list(kwargs.values())[0]  # noqa: RUF015 (graphs)
            show(self.training, before, out)
            return out

        own = vars(cell).get("construct")
        members |= {
            original: own.__func__ if own is not None else plain.construct,  # type: ignore[attr-defined]
            "construct": construct,
        }
        return type(plain.__name__, (base,), members)

    return ClassTap(cell, make)


def watch_mark(cell: Any, watch: Watch) -> ClassTap:
    """Watches what the model hands to a `Mark`."""

    def make(plain: type) -> type:
        def construct(self: Any, measured: Any, before: Any = None) -> Any:
            watch(self.training, measured if before is None else before, measured)
            return measured

        return type(plain.__name__, (plain,), {"construct": construct})

    return ClassTap(cell, make)
