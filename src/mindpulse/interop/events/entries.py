"""What the index of an event file keeps: of each tag a few numbers, and the texts and images."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mindpulse.interop.events.decode import ImagePlace

Key = tuple[bytes, str]
MAX_COLUMNS = 1 << 16
FILLED_TIMES = 16


@dataclass(slots=True)
class TagInfo:
    """What a file says under one tag, of one kind.

    Attributes:
        rows: whole values.
        first_step: the smallest step.
        shape: of tensors, the largest along each axis; (bins,) of histograms.
        dtype: type of the numbers; "<f8" where they differ or have to be decoded.
        statistics: names of what is said of a histogram's values.
        values: numbers in all rows together.
        company: the same for tags that stand together in all records.
    """

    rows: int = 0
    first_step: int = 0
    shape: tuple[int, ...] = ()
    dtype: str = ""
    statistics: tuple[str, ...] = ()
    values: int = 0
    company: int = 0

    @property
    def is_series(self) -> bool:
        """Whether the values fit the columns of a series without being mostly filled up.

        A file with one large tensor among many small ones under one tag would take many times
        its own size in memory.
        """
        width = prod(self.shape)
        filled = self.rows * width - self.values
        return width <= MAX_COLUMNS and filled <= FILLED_TIMES * self.values + MAX_COLUMNS

    def meet(self, offset: int, count: int) -> None:
        """Takes note of the records in which a value stood."""
        self.company = hash((self.company, offset, count))

    def add(self, count: int, step: int, dtype: str, shape: tuple[int, ...]) -> None:
        """Counts values; a tensor of another number of axes than the first is not counted."""
        if self.rows and len(shape) != len(self.shape):
            return
        self.first_step = min(self.first_step, step) if self.rows else step
        self.dtype = dtype if self.dtype in ("", dtype) else "<f8"
        if shape != self.shape:
            before = self.shape or (0,) * len(shape)
            self.shape = tuple(max(a, b) for a, b in zip(before, shape, strict=True))
        self.rows += count
        self.values += count * prod(shape)

    def join(self, other: TagInfo) -> None:
        """Adds what another file says."""
        values = self.values + other.values
        self.add(other.rows, other.first_step, other.dtype, other.shape)
        self.values = values
        self.meet(other.company, other.rows)


@dataclass(frozen=True, slots=True)
class Text:
    """A text that was recorded."""

    tag: bytes
    step: int
    wall_time: float
    text: str


@dataclass(frozen=True, slots=True)
class ImageEntry:
    """An image that was recorded: where its encoded bytes stand in the file."""

    tag: bytes
    step: int
    wall_time: float
    place: ImagePlace
