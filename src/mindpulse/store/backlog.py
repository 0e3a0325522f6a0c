"""Rows of one series on their way to the disk: that wait, or that may not be there yet."""

from __future__ import annotations

from collections import deque

from mindpulse.series import Rows

# What a block costs in memory besides its values: four Python objects.
BLOCK_OVERHEAD_BYTES = 512
# Memory for rows that are written but not synced, for a caller who never syncs.
MAX_UNSYNCED_BYTES = 32 << 20


def block_bytes(rows: Rows) -> int:
    """Memory that a waiting block takes, roughly."""
    return rows.values.nbytes + 16 * len(rows) + BLOCK_OVERHEAD_BYTES


class Waiting:
    """Blocks of rows that wait to be written, the oldest first.

    Attributes:
        blocks: none of them empty.
        size_bytes: memory that they take.
    """

    def __init__(self) -> None:
        self.blocks: deque[Rows] = deque()
        self.size_bytes = 0
        # Rows at the front that were written before, into a file that is not trusted.
        self._repeated = 0

    def __len__(self) -> int:
        return len(self.blocks)

    @property
    def since(self) -> float:
        """Time of the oldest row, seconds since the epoch."""
        return float(self.blocks[0].wall_times[0])

    def append(self, rows: Rows) -> None:
        """Adds a block behind the others."""
        if len(rows):
            self.blocks.append(rows)
            self.size_bytes += block_bytes(rows)

    def front(self, most: int) -> tuple[Rows, int]:
        """The first blocks as one, about `most` rows, and how many blocks; they stay."""
        count = self._blocks_of(most)
        return Rows.concat([self.blocks[index] for index in range(count)]), count

    def _blocks_of(self, most: int) -> int:
        for count, rows in enumerate(self.blocks):
            most -= len(rows)
            if most < 0:
                return max(1, count)
        return len(self.blocks)

    def take(self, blocks: int, rest: Rows) -> None:
        """Takes away the first blocks, and puts back what is left of them."""
        for _ in range(blocks):
            self.size_bytes -= block_bytes(self.blocks.popleft())
        self._put_back(rest)

    def _put_back(self, rows: Rows) -> None:
        if len(rows):
            self.blocks.appendleft(rows)
            self.size_bytes += block_bytes(rows)

    def repeat(self, blocks: Unsynced, written: int = 0) -> None:
        """Puts rows that were written to the front again.

        Args:
            blocks: these rows; they are forgotten there.
            written: so many of the rows that wait at the front now were written, too.
        """
        self._repeated += written
        for rows in reversed(blocks.blocks):
            self._put_back(rows)
            self._repeated += len(rows)
        blocks.clear()

    def drop_oldest(self) -> int:
        """Forgets the oldest block; how many of its rows were never written."""
        rows = self.blocks.popleft()
        self.size_bytes -= block_bytes(rows)
        return self.never_written(len(rows))

    def never_written(self, count: int) -> int:
        """How many of the first `count` rows are no repeats; these no longer count as waiting."""
        repeated = min(count, self._repeated)
        self._repeated -= repeated
        return count - repeated


class Unsynced:
    """Rows that the system has but the disk may not, the oldest first."""

    def __init__(self) -> None:
        self.blocks: deque[Rows] = deque()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self.blocks)

    def append(self, rows: Rows) -> None:
        """Remembers rows; where they are too many, the oldest are left to the system."""
        self.blocks.append(rows)
        self.size_bytes += block_bytes(rows)
        while self.size_bytes > MAX_UNSYNCED_BYTES:
            self.size_bytes -= block_bytes(self.blocks.popleft())

    def clear(self) -> None:
        """All of them are on the disk."""
        self.blocks.clear()
        self.size_bytes = 0
