"""How a probe runs in PyNative: its errors end with it, and soon it is a small graph of its own.

The graph compiler looks through these wrappers at the function itself (it follows `__wrapped__`),
so they exist in PyNative only. There an operator by itself costs ten times what it costs in a
graph, and many of MindSpore's operators leave some hundred bytes behind at each call. So a probe
that meets the same shapes again and again is compiled. Compiling takes a few tenths of a second,
hence not at first sight and not for every shape that comes by.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import mindspore as ms

from mindpulse.mindspore.guard import Guard
from mindpulse.mindspore.precision import keep_precision, kept_precision

SIGHTINGS = 3  # of the same shapes, before they are compiled
SHAPES = 3  # that are compiled at most


def guarded(
    function: Callable[..., Any], guard: Guard, what: str, compiles: bool = True
) -> Callable[..., Any]:
    """The function, whose errors end with it: after the first one it is not called again.

    Args:
        function: runs inside the step.
        guard: counts and reports what fails.
        what: names it in reports.
        compiles: whether it may become a graph of its own in PyNative.
    """
    keep_precision(function)
    runs = _Compiled(function) if compiles else function
    failed: list[bool] = []

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        found: list[Any] = [None]

        def call() -> None:
            with kept_precision():
                found[0] = runs(*args)

        if not failed and not guard(what, call):
            failed.append(True)
        return found[0]

    return run


class _Compiled:
    """A function that is compiled for the shapes that it meets most."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._plain = function
        self._graph: Callable[..., Any] | None = None
        self._seen: Counter[Any] = Counter()
        self._shapes: set[Any] = set()

    def __call__(self, *args: Any) -> Any:
        key = _shapes_of(args)
        if key not in self._shapes:
            self._seen[key] += 1
            if self._seen[key] <= SIGHTINGS or len(self._shapes) >= SHAPES:
                if len(self._seen) > 100:  # every batch has another shape
                    self._seen.clear()
                return self._plain(*args)
            self._shapes.add(key)
        if self._graph is None:
            self._graph = _graph_of(self._plain, args)
        return self._graph(*args)


def _graph_of(function: Callable[..., Any], args: tuple[Any, ...]) -> Callable[..., Any]:
    """The function as a graph. Tuples become single tensors: in a tuple each would be a constant,
    and the graph would be compiled anew at every call."""
    if not any(isinstance(arg, (tuple, list)) for arg in args):
        return ms.jit(function)  # type: ignore[no-any-return]
    first = len(args[0])

    def flat(*tensors: Any) -> Any:
        return function(tensors[:first], tensors[first:])

    graph = ms.jit(flat)

    def call(gradients: Any, old: Any) -> Any:
        return graph(*gradients, *old)

    return call


def _shapes_of(args: Any) -> Any:
    if isinstance(args, (tuple, list)):
        return tuple(_shapes_of(arg) for arg in args)
    return (args.shape, args.dtype) if hasattr(args, "dtype") else args
