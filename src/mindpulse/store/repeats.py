"""Rows that a writer repeated in a new part, because it could not tell if the disk had them.

They are the first of the new part and among the last of the earlier ones, with the same step and
wall time. So the search begins there and ends where nothing can come any more: the rows of a long
file are not read for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mindpulse.store.part_file import PartFile
from mindpulse.store.pieces import Piece

# Rows compared at a time; the search ends at a piece without any hit, or with only older rows.
SEARCHED_BYTES = 1 << 18


def repeated_rows(part: PartFile, before: Sequence[PartFile]) -> NDArray[np.bool_]:
    """Of the first rows of a part, which stand in an earlier part: (up to T,) bool.

    Rows behind the end of the mask are not repeated. A damaged row is none.

    Raises:
        StoreError: a file cannot be read.
    """
    masks: list[NDArray[np.bool_]] = []
    if any(other.count for other in before):
        for piece in part.pieces(most=_rows_at_once(part)):
            masks.append(_held(piece, before))
            if not masks[-1].any() and (piece.whole is None or piece.whole.any()):
                break
    return np.concatenate(masks) if masks else np.zeros(0, np.bool_)


def _rows_at_once(part: PartFile) -> int:
    return max(1, SEARCHED_BYTES // part.codec.row_bytes)


def _held(piece: Piece, before: Sequence[PartFile]) -> NDArray[np.bool_]:
    earliest = np.fmin.reduce(piece.rows["wall_time"], initial=np.inf)
    wanted: dict[tuple[int, float], bool] = {}
    for part in reversed(before):
        for older in part.pieces_backwards(_rows_at_once(part)) if part.count else ():
            if not np.any(older.rows["wall_time"] >= earliest):
                return _marked(piece, wanted)
            wanted = wanted or dict.fromkeys(_pairs(piece), False)
            wanted.update(dict.fromkeys(wanted.keys() & _pairs(older), True))
    return _marked(piece, wanted)


def _pairs(piece: Piece) -> list[tuple[int, float]]:
    rows = piece.rows if piece.whole is None else piece.rows[piece.whole]
    return list(zip(rows["step"].tolist(), rows["wall_time"].tolist(), strict=True))


def _marked(piece: Piece, wanted: dict[tuple[int, float], bool]) -> NDArray[np.bool_]:
    found = np.zeros(len(piece), np.bool_)
    if not any(wanted.values()):
        return found
    whole = np.flatnonzero(np.ones(len(piece), np.bool_) if piece.whole is None else piece.whole)
    found[whole] = [wanted[pair] for pair in _pairs(piece)]
    return found
