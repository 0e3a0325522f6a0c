"""burst, snapshot and stop: a closer look, and the end."""

from __future__ import annotations

from typing import Protocol

from mindpulse.mindspore.acting.verb import Args, Data, RefusedError


class Sampler(Protocol):
    """What can measure more densely."""

    def burst(self, steps: int) -> None:
        """Measures everything on each of the next steps."""

    def snapshot(self) -> None:
        """Keeps the attention maps of the next step."""


class Burst:
    """Args: steps."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    def consider(self, args: Args) -> Data:
        """Always possible."""
        return {}

    def do(self, args: Args, step: int) -> tuple[str, Data]:
        """Measures more."""
        steps = int(args["steps"])
        self._sampler.burst(steps)
        return f"everything is measured on each of the next {steps} steps", {}

    def undo(self, args: Args, data: Data) -> tuple[str, Data]:
        """Not possible, and not needed: it changes nothing."""
        raise RefusedError("a closer look changes nothing that could be taken back")


class Snapshot:
    """No arguments."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    def consider(self, args: Args) -> Data:
        """Always possible."""
        return {}

    def do(self, args: Args, step: int) -> tuple[str, Data]:
        """Keeps the maps."""
        self._sampler.snapshot()
        return "the attention maps of the next step are kept", {}

    def undo(self, args: Args, data: Data) -> tuple[str, Data]:
        """Not possible, and not needed."""
        raise RefusedError("a snapshot changes nothing that could be taken back")


class Stop:
    """No arguments.

    Attributes:
        asked: whether the loop is to end.
    """

    def __init__(self) -> None:
        self.asked = False

    def consider(self, args: Args) -> Data:
        """Always possible."""
        return {}

    def do(self, args: Args, step: int) -> tuple[str, Data]:
        """Tells the loop."""
        self.asked = True
        return "the training stops after this step", {}

    def undo(self, args: Args, data: Data) -> tuple[str, Data]:
        """The loop has been told."""
        raise RefusedError("the training has ended: start it again")
