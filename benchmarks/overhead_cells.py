"""What overhead.py measures: sizes of model, settings of the monitor, cells of the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

MODES = ("graph", "jit", "pynative")
LEVELS = ("cheap", "default", "all")


@dataclass(frozen=True, slots=True)
class Size:
    """A BERT as the demo trains it, with windows of 64 tokens."""

    layers: int
    hidden: int
    heads: int
    batch: int

    def __str__(self) -> str:
        return f"{self.layers} layers, hidden {self.hidden}, {self.heads} heads, batch {self.batch}"


SIZES = {
    "tiny": Size(4, 128, 4, 8),
    "demo": Size(4, 128, 4, 64),
    "large": Size(8, 256, 8, 32),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """What a copy measures and how often: a level, or tags and families joined by "+".

    Written as text it is "default@10"; without "@" the monitor's own intervals hold.
    """

    measures: str
    interval: int | None = None

    def __str__(self) -> str:
        return self.measures if self.interval is None else f"{self.measures}@{self.interval}"

    @classmethod
    def parse(cls, text: str) -> Setting:
        """The setting that `text` stands for.

        Example:
            >>> Setting.parse("loss+grad_norm@1")
            Setting(measures='loss+grad_norm', interval=1)
        """
        measures, _, interval = text.partition("@")
        return cls(measures, int(interval) if interval else None)

    def options(self) -> dict[str, Any]:
        """Arguments of `attach`."""
        one_word = self.measures in LEVELS
        measures = self.measures if one_word else tuple(self.measures.split("+"))
        return {"measures": measures, "interval": self.interval}


CHEAP = Setting("cheap")
USUAL = (CHEAP, Setting("default", 10), Setting("all", 10))
EVERY_STEP = (Setting("default", 1), Setting("all", 1))
SELDOM = (Setting("default", 100), Setting("all", 100))
TARGETS = {"cheap": 1.01, "default@10": 1.03, "all@10": 1.05}  # on the largest model


@dataclass(frozen=True, slots=True)
class Cell:
    """One process: copies of one model in one mode that take turns."""

    size: str
    mode: str
    settings: tuple[Setting, ...]
    groups: int

    @property
    def group(self) -> int:
        """Steps of a group: as many as the longest interval, so that each holds one dear step."""
        return max([10, *(s.interval for s in self.settings if s.interval)])

    @property
    def warm_up(self) -> int:
        """Steps that are not counted: ten of the dear graph, then ten as usual.

        MindSpore's operators try out how many threads serve them best while a graph runs for the
        first six times or so: those steps take half as long again.
        """
        return 20


QUICK = (Cell("tiny", "graph", (Setting("default", 10),), groups=6),)
USUAL_CELLS = (
    Cell("large", "graph", USUAL, groups=6),
    Cell("large", "jit", USUAL, groups=4),
    Cell("large", "pynative", USUAL, groups=3),
    Cell("demo", "graph", (*USUAL, *EVERY_STEP), groups=6),
    Cell("tiny", "graph", USUAL, groups=10),
    Cell("tiny", "graph", SELDOM, groups=3),
)


def matrix() -> tuple[Cell, ...]:
    """Every size, mode, level and interval."""
    cells: list[Cell] = []
    for size, mode in product(SIZES, MODES):
        cells.append(Cell(size, mode, (*USUAL, *EVERY_STEP), groups=8))
        cells.append(Cell(size, mode, SELDOM, groups=3))
    return tuple(cells)
