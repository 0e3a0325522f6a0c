"""What `mindpulse export` wrote: names of files and columns, and where an attempt begins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from mindpulse.interop.loaded import MAX_ATTEMPTS
from mindpulse.series import Series

_RANK = re.compile(r"\.rank-(\d{4,9})$")
_AXIS = re.compile(r"(?:^| )([^\s=]+)=")


def rank_and_tag(path: Path) -> tuple[int, str]:
    """The rank and the tag that a file name holds, as `mindpulse export` makes it.

    Example:
        >>> rank_and_tag(Path("train%2Floss.rank-0003.csv")), rank_and_tag(Path("loss.csv.gz"))
        ((3, 'train/loss'), (0, 'loss'))
    """
    stem = path.name.removesuffix(".gz")
    stem = stem.rsplit(".", 1)[0] if "." in stem else stem
    found = _RANK.search(stem)
    if found is None:
        return 0, unquote(stem)
    return int(found[1]), unquote(stem[: found.start()])


def axes_and_labels(
    names: Sequence[str],
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]] | None:
    """The axes and labels that column names like "layer=0 head=1" hold; None if they are others.

    Example:
        >>> axes_and_labels(["layer=0 head=0", "layer=0 head=1"])
        (('layer', 'head'), (('0', '0'), ('0', '1')))
    """
    axes: tuple[str, ...] | None = None
    labels: list[tuple[str, ...]] = []
    for name in names:
        parts = _AXIS.split(name)
        if len(parts) < 3 or parts[0] or (axes is not None and tuple(parts[1::2]) != axes):
            return None
        axes = tuple(parts[1::2])
        labels.append(tuple(parts[2::2]))
    return (axes, tuple(labels)) if axes else None


def attempts_in(series: Series) -> Iterator[tuple[int, Series]]:
    """The attempts of rows that were written one attempt after the other: steps go back there.

    Steps that go back too often stand in no order, and are one attempt.
    """
    ends = [0, *(np.flatnonzero(np.diff(series.steps) < 0) + 1).tolist(), len(series)]
    if len(ends) > MAX_ATTEMPTS + 1:
        ends = [0, len(series)]
    for attempt, (start, end) in enumerate(pairwise(ends), 1):
        yield attempt, Series(series.spec, series.rows[start:end])
