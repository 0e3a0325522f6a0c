"""Taps that exchange an attribute that is a primitive or a function; the cells stay as they are."""

from __future__ import annotations

from typing import Any

from mindpulse.mindspore.tap.swap import Watch

_ABSENT = object()


class AttributeTap:
    """An attribute of a cell, exchanged for a function that calls the original.

    The exchange goes past the cell's own `__setattr__`: the lists of cells, parameters and
    primitives are untouched, so names, checkpoints and `cells_and_names` do not change.

    Args:
        owner: the cell that holds the attribute.
        name: the attribute.
        wrapped: what stands in its place.
    """

    def __init__(self, owner: Any, name: str, wrapped: Any) -> None:
        self.owner, self.name, self._wrapped = owner, name, wrapped
        self._plain: Any = _ABSENT

    def on(self) -> None:
        """The attribute is watched from now on."""
        if self._plain is _ABSENT:
            self._plain = vars(self.owner)[self.name]
            vars(self.owner)[self.name] = self._wrapped

    def off(self) -> None:
        """The attribute is the user's again."""
        if self._plain is not _ABSENT:
            if vars(self.owner).get(self.name) is self._wrapped:
                vars(self.owner)[self.name] = self._plain
            self._plain = _ABSENT


def watch_attribute(owner: Any, name: str, show: Watch) -> AttributeTap:
    """Shows the first input of a primitive or function attribute, and all that it returns."""
    operator = vars(owner)[name]

    def run(before: Any, *args: Any, **kwargs: Any) -> Any:
        out = operator(before, *args, **kwargs)
        show(owner.training, before, out)
        return out

    return AttributeTap(owner, name, run)
