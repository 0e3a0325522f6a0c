"""What was found in a training script, as places, and which functions become a graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

GRAPH, PYNATIVE, UNKNOWN = "graph", "pynative", "unknown"


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a script.

    Attributes:
        text: what stands there, or the name of what begins there.
        within: the function it stands in, "" on the top level.
        full: the dotted name of what is called, imports followed.
    """

    line: int
    text: str
    within: str = ""
    full: str = ""


@dataclass(slots=True)
class Reading:
    """What was found in one script.

    Attributes:
        modes: where the mode is set: (place, "graph", "pynative" or "unknown").
        constructs: the `construct` of each class; a graph in graph mode.
        jitted: functions that are a graph in every mode.
        differentiated: functions given to `grad`; a graph in graph mode.
        calls: function -> functions of this script that it calls.
        assumed: the mode where the script sets none; another one may have set it.
        stops, hooks, element_hooks, ...: places of what the names say.
    """

    path: Path
    modes: list[tuple[Spot, str]] = field(default_factory=list)
    constructs: dict[str, Spot] = field(default_factory=dict)
    jitted: dict[str, Spot] = field(default_factory=dict)
    differentiated: dict[str, Spot] = field(default_factory=dict)
    calls: dict[str, set[str]] = field(default_factory=dict)
    stops: list[Spot] = field(default_factory=list)
    hooks: list[Spot] = field(default_factory=list)
    element_hooks: list[Spot] = field(default_factory=list)
    recomputes: list[Spot] = field(default_factory=list)
    captures: list[Spot] = field(default_factory=list)
    sinks: list[Spot] = field(default_factory=list)
    blocking: list[Spot] = field(default_factory=list)
    workers: list[Spot] = field(default_factory=list)
    data_debug: list[Spot] = field(default_factory=list)
    children: list[Spot] = field(default_factory=list)
    made_code: list[Spot] = field(default_factory=list)
    assumed: str = PYNATIVE

    @property
    def mode(self) -> str:
        """Graph where it is set anywhere; unknown where only a variable tells; else PyNative,
        which is what MindSpore begins with."""
        said = {mode for _, mode in self.modes} or {self.assumed}
        return GRAPH if GRAPH in said else (UNKNOWN if UNKNOWN in said else PYNATIVE)

    def compiled(self) -> dict[str, Spot]:
        """Functions that become a graph, those that they call included."""
        found = dict(self.jitted)
        if self.mode == GRAPH:
            found |= self.constructs | self.differentiated
        todo = list(found)
        while todo:
            for callee in self.calls.get(todo.pop(), ()):
                if callee not in found:
                    found[callee] = Spot(0, callee)
                    todo.append(callee)
        return found
