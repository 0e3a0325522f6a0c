"""Waiting for bytes that have not arrived yet, and for how long.

On a network file system the size of a file may grow before its bytes come, page by page and in any
order; until then there are zeros. In a file that nobody has written for a while, zeros are damage.
"""

from __future__ import annotations

PATIENCE_S = 10.0
_KEY, _SUM_KEY_FROM_END = 0, -5
# In a row longer than a page, zeros may stand in its middle.
_PAGE_BYTES, _HOLE_BYTES = 4096, 512


class Patience:
    """How long what seems to be missing in a file is waited for.

    Attributes:
        waits: something is missing, so the file has to be looked at again though it did not change.

    Example:
        >>> patience = Patience()
        >>> patience.look(100.0, modified=99.0, size=8192)
        >>> patience.hold_at(4096)
        True
        >>> patience.look(111.0, modified=110.0, size=9000)
        >>> patience.hold_at(4096), patience.hold_at(8500)
        (False, True)
    """

    def __init__(self) -> None:
        self.waits = False
        self._now = 0.0
        self._young = False
        self._size = 0
        # Since when something before which end of the file was missing.
        self._since: tuple[float, int] | None = None

    def look(self, now: float, modified: float, size: int) -> None:
        """Begins a look at the file; `now` and `modified` in seconds since the epoch."""
        self.waits = False
        self._now, self._size = now, size
        self._young = abs(now - modified) < PATIENCE_S

    def hold(self, missing: bool) -> bool:
        """Whether to look again: something is missing, and the file is young."""
        self.waits = self.waits or (missing and self._young)
        return self.waits

    def hold_at(self, at: int) -> bool:
        """Whether to wait for bytes at this position, before which all has been read."""
        if not self._young:
            return False
        if self._since is None or (at >= self._since[1] and self._since[1] < self._size):
            self._since = (self._now, self._size)
        since, end = self._since
        if at < end and self._now - since >= PATIENCE_S:
            return False
        self.waits = True
        return True


def is_unwritten(row: bytes) -> bool:
    """Zeros stand where a row always has other bytes, or where a whole page might be missing."""
    if not row[_KEY] or not row[_SUM_KEY_FROM_END]:
        return True
    return len(row) > _PAGE_BYTES and bytes(_HOLE_BYTES) in row
