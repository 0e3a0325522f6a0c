"""Measures dear probes only on some steps, without changing a bit of the training.

An `if` inside the graph changes the weights slightly (measured), so thinning happens outside: the
training cell is compiled twice, once with the dear probes and once without, and the host chooses
before each step. Both graphs are compiled before the first step, so nothing is compiled later.
Where no training cell is known (functional loops) the classes are swapped to and fro, which
PyNative follows and a jit function ignores; then the probes simply run on every step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms

from mindpulse.mindspore.guard import Guard
from mindpulse.mindspore.plant import Swap
from mindpulse.schedule import Every


class Thinning:
    """The dear probes of one monitor, and on which steps they are in.

    Args:
        swaps: the dear probes.
        every: on which steps they measure.
        step: tells the step that runs next, 1-based.
    """

    def __init__(self, swaps: list[Swap], every: Every, step: Callable[[], int]) -> None:
        self.swaps = swaps
        self.every = every
        self.step = step
        self.fixed = False
        self.retired = False
        self._on = False

    @property
    def thins(self) -> bool:
        """False where the probes run on every step anyway, or on none."""
        return self.every.interval > 1 and not self.fixed and not self.retired

    def retire(self) -> None:
        """Takes the probes out for good."""
        self.set(False)
        self.retired = True

    def set(self, on: bool) -> None:
        """Puts the probes in or takes them out."""
        if on != self._on and not self.retired:
            for swap in self.swaps:
                swap.on() if on else swap.off()
            self._on = on

    def choose(self) -> bool:
        """Sets the probes as the next step wants them; returns whether they are in."""
        self.set(not self.thins or self.every(self.step()))
        return self._on


def watched(
    cell: Any, name: str, thinning: Thinning, guard: Guard, gave_up: Callable[[], None]
) -> Swap:
    """Swaps a training cell so that it chooses its variant before each call.

    Both variants have phases of their own, named after the monitor: the graph that the cell had
    before, or will have after the monitor is closed, holds no probe; and the next monitor of the
    same cell does not meet the graphs of this one.

    Args:
        cell: the cell that one training step calls, such as `nn.TrainOneStepCell`.
        name: of the monitor, unique in the process.
        thinning: the dear probes.
        guard: runs the compilation with probes.
        gave_up: called when the graph does not compile with the probes; it must take all probes
            out. The
            training then goes on without them.
    """

    def make(plain: type) -> type:
        class Watched(plain):  # type: ignore[misc]
            def __call__(self, *args: Any, **kwargs: Any) -> Any:
                call = super().__call__
                if ms.get_context("mode") != ms.GRAPH_MODE:
                    thinning.choose()
                    return call(*args, **kwargs)
                key = _key(args, kwargs)
                if key not in compiled:
                    compiled.add(key)
                    _compile_both(self, name, thinning, guard, gave_up, args, kwargs)
                if type(self) is plain:  # all probes were taken out
                    return call(*args, **kwargs)
                with _Phase(self, name, thinning.choose()):
                    return call(*args, **kwargs)

        return Watched

    compiled: set[Any] = set()
    return Swap(cell, make)


class _Phase:
    """The cell under the phase of one of its variants; each phase has a graph of its own."""

    def __init__(self, cell: Any, name: str, dear: bool) -> None:
        self.cell = cell
        self.plain = cell.phase
        self.phase = f"{self.plain}.{name}" + (".all" if dear else "")

    def __enter__(self) -> None:
        self.cell.phase = self.phase

    def __exit__(self, *exc: object) -> None:
        self.cell.phase = self.plain


def _compile_both(
    cell: Any,
    name: str,
    thinning: Thinning,
    guard: Guard,
    gave_up: Callable[[], None],
    args: Any,
    kwargs: Any,
) -> None:
    """Compiles with the probes, and without the dear ones where they are thinned.

    A probe that the compiler refuses must not cost the user a training: first the dear ones go,
    then all.
    """

    def compile_now(dear: bool) -> None:
        thinning.set(dear)
        with _Phase(cell, name, dear):
            cell.compile(*args, **kwargs)

    if not guard("compiling with all probes", lambda: compile_now(True)):
        thinning.retire()
    thinned = thinning.thins or thinning.retired
    if thinned and not guard("compiling with the cheap probes", lambda: compile_now(False)):
        gave_up()


def _key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What makes MindSpore compile anew: the shapes and types of the inputs."""
    return tuple(
        (getattr(x, "shape", None), str(getattr(x, "dtype", type(x))))
        for x in (*args, *kwargs.values())
    )
