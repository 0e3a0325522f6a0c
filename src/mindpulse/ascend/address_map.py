"""Which addresses of a pool are taken, which are free, and how large the largest free piece is."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator


class Spans:
    """Disjoint half-open spans [start, end) of addresses, with the sizes of all of them in order.

    Each change costs a search and a move in a list, so tens of thousands of spans are no trouble.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._sizes: list[int] = []
        self.total = 0

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(list(zip(self._starts, self._ends, strict=True)))

    @property
    def largest(self) -> int:
        """Size of the largest span, 0 where there is none."""
        return self._sizes[-1] if self._sizes else 0

    def add(self, start: int, end: int) -> None:
        """Takes [start, end) in, grown together with its neighbours."""
        left = bisect_left(self._ends, start)
        right = bisect_right(self._starts, end)
        if left < right:
            start = min(start, self._starts[left])
            end = max(end, self._ends[right - 1])
        self._replace(left, right, [(start, end)])

    def remove(self, start: int, end: int) -> None:
        """Takes [start, end) out; what is not in is no matter."""
        left = bisect_right(self._ends, start)
        right = bisect_left(self._starts, end)
        if left >= right:
            return
        first, last = self._starts[left], self._ends[right - 1]
        rest = [(first, start)] if first < start else []
        rest += [(end, last)] if end < last else []
        self._replace(left, right, rest)

    def inside(self, start: int, end: int) -> int:
        """How much of [start, end) is in."""
        return end - start - sum(b - a for a, b in self._outside(start, end))

    def _outside(self, start: int, end: int) -> list[tuple[int, int]]:
        """The parts of [start, end) that are in no span."""
        parts = []
        index = bisect_right(self._ends, start)
        while start < end:
            begins = self._starts[index] if index < len(self._starts) else end
            if start < begins:
                parts.append((start, min(begins, end)))
            if index >= len(self._starts):
                break
            start = max(start, self._ends[index])
            index += 1
        return parts

    def _replace(self, left: int, right: int, spans: list[tuple[int, int]]) -> None:
        for start, end in zip(self._starts[left:right], self._ends[left:right], strict=True):
            del self._sizes[bisect_left(self._sizes, end - start)]
            self.total -= end - start
        self._starts[left:right] = [start for start, _ in spans]
        self._ends[left:right] = [end for _, end in spans]
        for start, end in spans:
            insort(self._sizes, end - start)
            self.total += end - start


class AddressMap:
    """The addresses of one pool: those it ever gave out, and which of them are free now.

    The log does not say what the pool took from the device and never gave out; that is in neither
    number.
    """

    def __init__(self) -> None:
        self._known = Spans()
        self._free = Spans()

    def overlaps(self, start: int, end: int) -> bool:
        """Whether any of [start, end) is given out."""
        taken = self._known.inside(start, end) - self._free.inside(start, end)
        return taken > 0

    def take(self, start: int, end: int) -> None:
        """A block is given out."""
        self._known.add(start, end)
        self._free.remove(start, end)

    def give(self, start: int, end: int) -> None:
        """A block comes back."""
        self._free.add(start, end)

    @property
    def known(self) -> int:
        """Bytes ever given out."""
        return self._known.total

    @property
    def free(self) -> int:
        """Bytes of them that hold nothing now."""
        return self._free.total

    @property
    def largest_free(self) -> int:
        """Bytes of the largest free piece."""
        return self._free.largest

    @property
    def pieces(self) -> int:
        """How many free pieces there are."""
        return len(self._free)

    @property
    def fragmentation(self) -> float:
        """1 - largest free piece / all that is free; 0 where nothing is free."""
        return 1.0 - self.largest_free / self.free if self.free else 0.0
