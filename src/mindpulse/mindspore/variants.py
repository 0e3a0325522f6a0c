"""Measures dear probes only on some steps, without changing a bit of the training.

An `if` inside the graph changes the weights slightly (measured), so thinning happens outside: the
step is compiled in a few variants, each with more probes than the one before, and the host chooses
before each step. All are compiled before the first step, so nothing is compiled later; a change of
the intervals only changes the choice. Where neither a training cell nor a step function is known
the classes are swapped to and fro, which PyNative follows and a jit function ignores; then the
probes simply run on every step, and rows that were not asked for are left out.
"""

from __future__ import annotations

import contextlib
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

import mindspore as ms

from mindpulse.mindspore.guard import Guard
from mindpulse.mindspore.tap.swap import bridge
from mindpulse.schedule import Density

REMEMBERED = 1024  # steps whose variant is known
PLAIN = -1  # the class as the user made it


class Member(Protocol):
    """Something that is part of some variants."""

    def set(self, tier: int) -> None:
        """Takes the shape that variant `tier` wants; `PLAIN` for the user's own."""


class Variants:
    """The variants of the step: numbered from 0 up, each with more probes than the one before.

    Args:
        members: all probes.
        density: which variant a step wants.

    Attributes:
        step: tells the number of the step that runs next.
        fixed: whether the largest variant runs on every step, because nothing else can be chosen.
        drop: leaves out what does not compile; returns False when nothing is left to leave out.
    """

    def __init__(self, members: Sequence[Member], density: Density) -> None:
        self.members = list(members)
        self.density = density
        self.step: Callable[[], int] = lambda: 1
        self.drop: Callable[[], bool] = lambda: False
        self.fixed = False
        self.retired = False
        self.paused = False
        self._tier = PLAIN
        self._chosen: OrderedDict[int, int] = OrderedDict()

    @property
    def count(self) -> int:
        """Number of variants."""
        return len(self.density.tiers)

    def retire(self) -> None:
        """Takes all probes out for good."""
        self.set(PLAIN)
        self.retired = True

    def begin(self, density: Density) -> None:
        """Steps are counted anew, under a density with the same tiers."""
        self.density = density
        self._chosen.clear()

    def set(self, tier: int) -> None:
        """Gives each member the shape of variant `tier`."""
        if tier != self._tier and not self.retired:
            for member in self.members:
                member.set(tier)
            self._tier = tier

    def again(self) -> None:
        """Shapes the members anew: one of them was changed."""
        tier, self._tier = self._tier, PLAIN - 1
        self.set(tier)

    def choose(self) -> int:
        """Sets the variant that the next step wants; returns it."""
        if self.paused or self.retired:
            self.set(PLAIN)
            return PLAIN
        step = self.step()
        tier = self.count - 1 if self.fixed else self.density.choose(step)
        self._chosen[step] = tier
        if len(self._chosen) > REMEMBERED:
            self._chosen.popitem(last=False)
        self.set(tier)
        return tier

    def chosen(self, step: int) -> int | None:
        """The variant that a step of late ran; None where it is not known."""
        return self._chosen.get(step)

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """The model as the user made it, as long as the block runs."""
        before, self.paused = self.paused, True
        tier = self._tier
        self.set(PLAIN)
        try:
            yield
        finally:
            self.paused = before
            self.set(tier)


def watched(
    plain: type,
    bare: type,
    name: str,
    variants: Variants,
    guard: Guard,
    gave_up: Callable[[], None],
    seen: Callable[[tuple[Any, ...]], None],
) -> type:
    """A subclass of a training cell's class that chooses its variant before each call.

    The variants have phases of their own, named after the monitor: the graph that the cell had
    before, or will have after the monitor is closed, holds no probe; and the next monitor of the
    same cell does not meet the graphs of this one.

    Args:
        plain: class of the cell that one training step calls, such as `nn.TrainOneStepCell`.
        bare: the class that the cell has without any probe.
        name: of the monitor, unique in the process.
        guard: runs the compilation with probes.
        gave_up: called when the graph does not compile with any probe; it must take all out. The
            training then goes on without them.
        seen: called with the inputs of each step.
    """
    compiled: set[Any] = set()

    base, members = bridge(plain)  # a cell whose construct calls super().construct

    class Watched(base):  # type: ignore[misc, valid-type]
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            call = super().__call__
            seen((*args, *kwargs.values()))
            if ms.get_context("mode") != ms.GRAPH_MODE:
                variants.choose()
                return call(*args, **kwargs)
            key = _key(args, kwargs)
            if key not in compiled:
                compiled.add(key)
                _compile_all(self, name, variants, guard, gave_up, args, kwargs)
            if type(self) is bare:  # all probes were taken out
                return call(*args, **kwargs)
            with _Phase(self, name, variants.choose()):
                return call(*args, **kwargs)

    for member, value in members.items():
        setattr(Watched, member, value)
    Watched.__name__, Watched.__qualname__ = bare.__name__, bare.__qualname__
    return Watched


class _Phase:
    """The cell under the phase of one of its variants; each phase has a graph of its own."""

    def __init__(self, cell: Any, name: str, tier: int) -> None:
        self.cell = cell
        self.plain = cell.phase
        self.phase = f"{self.plain}.{name}.{tier}" if tier != PLAIN else self.plain

    def __enter__(self) -> None:
        self.cell.phase = self.phase

    def __exit__(self, *exc: object) -> None:
        self.cell.phase = self.plain


def _compile_all(
    cell: Any,
    name: str,
    variants: Variants,
    guard: Guard,
    gave_up: Callable[[], None],
    args: Any,
    kwargs: Any,
) -> None:
    """Compiles every variant, the largest first.

    A probe that the compiler refuses must not cost the user a training: one kind after the other
    is left out, at last all.
    """

    def compile_now(tier: int) -> None:
        # As a call does before it compiles: Parameters of the same name get names of their own.
        cell._self_check()
        variants.again()
        variants.set(tier)
        with _Phase(cell, name, tier):
            cell.compile(*args, **kwargs)

    for tier in reversed(range(variants.count)):
        while not guard("compiling the step with probes", partial(compile_now, tier)):
            if not variants.drop():
                gave_up()
                return


def _key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What makes MindSpore compile anew: the shapes and types of the inputs."""
    return tuple(
        (getattr(x, "shape", None), str(getattr(x, "dtype", type(x))))
        for x in (*args, *kwargs.values())
    )


def jitted(
    function: Callable[..., Any],
    variants: Variants,
    guard: Guard,
    gave_up: Callable[[], None],
    seen: Callable[[tuple[Any, ...]], None],
) -> Callable[..., Any]:
    """A step function compiled in variants: `monitor.jit`.

    Args:
        function: the step as plain Python, or already under `ms.jit`.
        variants, guard, gave_up, seen: as for `watched`.
    """
    plain = getattr(function, "__wrapped__", function)
    made: dict[int, Callable[..., Any]] = {}
    ran: set[Any] = set()

    def step(*args: Any, **kwargs: Any) -> Any:
        seen((*args, *kwargs.values()))
        tier = variants.choose()
        key = (tier, _key(args, kwargs))
        if key in ran or tier == PLAIN:
            return _made(made, plain, tier)(*args, **kwargs)
        ran.add(key)
        found: list[Any] = []

        def run(args: Any, kwargs: Any) -> Any:
            return _made(made, plain, tier)(*args, **kwargs)

        while True:
            if guard("compiling the step with probes", lambda: found.append(run(args, kwargs))):
                return found[0]
            if not variants.drop():
                gave_up()
                return _made(made, plain, PLAIN)(*args, **kwargs)
            variants.again()
            made.clear()

    return step


def _made(
    made: dict[int, Callable[..., Any]], plain: Callable[..., Any], tier: int
) -> Callable[..., Any]:
    """The function of a variant; each is an object of its own, so that each has its own graph."""
    if tier not in made:
        copy = types.FunctionType(
            plain.__code__, plain.__globals__, plain.__name__, plain.__defaults__, plain.__closure__
        )
        copy.__kwdefaults__, copy.__module__ = plain.__kwdefaults__, plain.__module__
        made[tier] = ms.jit(copy)
    return made[tier]
